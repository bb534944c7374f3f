//! `cargo xtask layers`: allowed dependencies between crates, and cycles within a crate.
//!
//! The order is `slice, wire -> medium -> heap -> trees, lsm -> store -> interfaces`: a folder of a
//! later step may use those of earlier steps, never one of its own step or a later one. Services
//! use only the store, like interfaces, and the server also `replica`.

use crate::source::modules;
use crate::source::workspace::{Dependency, Package, Workspace};

/// The role of a package, by its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// A crate of the product and its step in the order.
    Product(u8),
    /// Uses only the store, for the server.
    Replica,
    /// Uses only the store.
    Interface,
    /// Uses only the store and replicas.
    Server,
    /// Imported only by other testing packages, as a development dependency, and by xtask.
    Testing,
    /// Small programs that use the store, or the bare heap and its maps; never imported.
    Examples,
    /// This package; never imported.
    Tasks,
}

const HEAP_STEP: u8 = 3;
const STORE_STEP: u8 = 5;

fn room(folder: &str) -> Option<Room> {
    Some(match folder {
        "base/slice" | "base/wire" => Room::Product(1),
        "base/medium" => Room::Product(2),
        "base/heap" => Room::Product(HEAP_STEP),
        "engines/trees" | "engines/lsm" => Room::Product(4),
        "store" => Room::Product(STORE_STEP),
        "services/replica" => Room::Replica,
        "examples" => Room::Examples,
        "xtask" => Room::Tasks,
        "services/server" => Room::Server,
        "services/remote" => Room::Interface,
        _ if folder.starts_with("interfaces/") => Room::Interface,
        _ if folder.starts_with("testing/") || folder.starts_with("bench/") => Room::Testing,
        _ => return None,
    })
}

/// Whether a package of room `user` may depend on one of room `used`.
fn may_use(user: Room, used: Room, development: bool) -> bool {
    match (user, used) {
        (_, Room::Tasks | Room::Examples) => false,
        (Room::Tasks, _) => true,
        (_, Room::Testing) => development || user == Room::Testing,
        (Room::Product(user), Room::Product(used)) => used < user,
        (Room::Interface | Room::Replica | Room::Server, Room::Product(used)) => used == STORE_STEP,
        (Room::Server, Room::Replica) => true,
        (Room::Examples, Room::Product(used)) => (HEAP_STEP..=STORE_STEP).contains(&used),
        (Room::Testing, Room::Product(_)) => true,
        (_, Room::Replica | Room::Interface | Room::Server) => false,
    }
}

/// Checks all packages and all their modules; prints the problems. True if there are none.
pub(crate) fn run() -> Result<bool, String> {
    let workspace = Workspace::with_services()?;
    let mut problems = Vec::new();
    let mut edge_count = 0;
    for package in &workspace.packages {
        for dependency in &package.dependencies {
            edge_count += 1;
            problems.extend(verify(&workspace, package, dependency));
        }
        if room(&package.folder).is_none() {
            problems.push(format!(
                "{}: the folder {} has no place in the order; give it one in xtask/src/lint/layers.rs",
                package.name, package.folder
            ));
        }
    }
    let (mut module_count, mut import_count) = (0, 0);
    for package in &workspace.packages {
        for entry in &package.entries {
            let graph = modules::Graph::load(entry)?;
            module_count += graph.len();
            import_count += graph.import_count();
            for cycle in graph.cycles() {
                problems.push(format!("{}: modules import each other: {cycle}", package.name));
            }
            for upward in graph.upward() {
                problems.push(format!("{}: {upward}", package.name));
            }
        }
    }
    for problem in &problems {
        eprintln!("layers: {problem}");
    }
    println!(
        "layers: {} packages with {edge_count} dependencies between them, {module_count} modules \
         with {import_count} imports, {} wrong",
        workspace.packages.len(),
        problems.len()
    );
    Ok(problems.is_empty())
}

fn verify(workspace: &Workspace, user: &Package, dependency: &Dependency) -> Option<String> {
    let used = workspace.package(&dependency.name)?;
    if used.name == user.name {
        return None;
    }
    let allowed = may_use(room(&user.folder)?, room(&used.folder)?, dependency.development);
    (!allowed).then(|| {
        format!(
            "{} ({}) may not use {} ({}): the order is slice, wire -> medium -> heap -> trees, lsm \
             -> store -> interfaces and services, and testing and bench are for tests only",
            user.name, user.folder, used.name, used.folder
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(user: &str, used: &str) -> bool {
        may_use(room(user).unwrap(), room(used).unwrap(), false)
    }

    #[test]
    fn the_order_runs_one_way() {
        let order = ["base/wire", "base/medium", "base/heap", "engines/trees", "store"];
        for (index, upper) in order.iter().enumerate() {
            for (other, lower) in order.iter().enumerate() {
                assert_eq!(allowed(upper, lower), other < index, "{upper} uses {lower}");
            }
        }
        assert!(!allowed("engines/trees", "engines/lsm"));
        assert!(!allowed("base/slice", "base/wire"));
    }

    #[test]
    fn interfaces_see_only_the_store() {
        assert!(allowed("interfaces/cli", "store"));
        assert!(!allowed("interfaces/cli", "base/heap"));
        assert!(!allowed("interfaces/cli", "interfaces/capi"));
        assert!(!allowed("store", "interfaces/cli"));
    }

    #[test]
    fn replicas_lie_between_the_store_and_the_server() {
        assert!(
            allowed("services/replica", "store") && allowed("services/server", "services/replica")
        );
        assert!(
            !allowed("services/replica", "base/heap")
                && !allowed("services/replica", "services/server")
        );
        assert!(!allowed("store", "services/replica") && !allowed("examples", "services/replica"));
    }

    #[test]
    fn examples_see_what_users_see() {
        assert!(allowed("examples", "store") && allowed("examples", "base/heap"));
        assert!(allowed("examples", "engines/trees"));
        assert!(!allowed("examples", "base/medium"));
    }

    #[test]
    fn testing_is_for_tests() {
        assert!(!allowed("store", "testing/sim"));
        assert!(may_use(Room::Product(3), Room::Testing, true));
        assert!(allowed("testing/scenarios", "testing/sim"));
        assert!(allowed("bench/adamant", "testing/sim"));
        assert!(allowed("testing/sim", "base/medium"));
        assert!(!allowed("testing/sim", "interfaces/cli"));
    }

    #[test]
    fn unknown_folders_have_no_room() {
        assert_eq!(room("elsewhere"), None);
    }
}
