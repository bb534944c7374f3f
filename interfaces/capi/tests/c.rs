//! The programs of this folder in C: compiled strictly as C99 and as C++, and run: linked either
//! way, under valgrind, with the address sanitizer; and what the guide and the examples say, as it
//! stands there.
//!
//! The library is built and installed as users install it (`cargo xtask install-c`), under a prefix
//! of the tests' own. A tool that is not there is said, and its test does nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The programs: each gets a folder of its own as its argument, and returns 0 if all is as it
/// should be.
const PROGRAMS: [&str; 14] = [
    "entries",
    "figures",
    "views",
    "changes",
    "expiring",
    "multimap",
    "multimap_views",
    "broken",
    "wrong",
    "threads",
    "kill",
    "fork",
    "follow",
    "encrypted",
];
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the library is installed.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-prefix");
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--package", "xtask", "--", "install-c", "--prefix"]);
        check(command.arg(&prefix).arg("--dev").current_dir(folder().join("../..")));
        prefix
    })
}

/// Runs a command, which must succeed.
fn check(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    output
}

/// Whether a tool is there; if not, that is said.
fn has(tool: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// Compiles a file and links it with the static library, or the shared one.
fn compile(compiler: &[&str], source: &Path, is_shared: bool, program: &Path) {
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(STRICT);
    command.arg("-I").arg(prefix().join("include")).arg("-I").arg(folder().join("tests"));
    command.arg(source).arg("-o").arg(program);
    let lib = prefix().join("lib");
    match is_shared {
        true => command.arg("-L").arg(&lib).arg("-ladamant").arg("-Wl,-rpath").arg(&lib),
        // Behind `-x c++` everything would be a source.
        false => command.args(["-x", "none"]).arg(lib.join("libadamant.a")),
    };
    check(command.args(["-lpthread", "-ldl", "-lm"]));
}

/// Compiles and runs all programs by a command before each.
fn run_all(compiler: &[&str], is_shared: bool, before: &[&str]) {
    for name in PROGRAMS {
        let source = folder().join(format!("tests/{name}.c"));
        let scratch = tempfile::tempdir().expect("a folder for the test");
        let program = scratch.path().join(name);
        compile(compiler, &source, is_shared, &program);
        let store = scratch.path().join("stores");
        std::fs::create_dir(&store).expect("a folder in that folder");
        let mut words = before.iter().map(std::ffi::OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().expect("there is the program"));
        check(command.args(words).arg(&store));
    }
}

#[test]
fn as_c_with_the_static_library() {
    if has("cc") {
        run_all(&["cc", "-std=c99"], false, &[]);
    }
}

#[test]
fn as_c_with_the_shared_library() {
    if has("cc") {
        run_all(&["cc", "-std=c99"], true, &[]);
    }
}

#[test]
fn as_cpp() {
    if has("c++") {
        run_all(&["c++", "-std=c++11", "-x", "c++"], false, &[]);
    }
}

#[test]
fn under_valgrind() {
    if has("cc") && has("valgrind") {
        let valgrind = [
            "valgrind",
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite,indirect,possible",
        ];
        run_all(&["cc", "-std=c99"], false, &valgrind);
    }
}

#[test]
fn with_the_address_sanitizer() {
    if has("cc") {
        run_all(&["cc", "-std=c99", "-fsanitize=address,undefined"], false, &[]);
    }
}

/// A file system of 16 MiB in memory, which fills up.
#[test]
fn on_a_file_system_that_is_full() {
    let scratch = tempfile::tempdir().expect("a folder for the test");
    let small = scratch.path().join("small");
    std::fs::create_dir(&small).expect("a folder in that folder");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&small);
    if !has("cc") || !mount.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: mounting a tmpfs needs the privilege");
        return;
    }
    let program = scratch.path().join("broken");
    let ran = std::panic::catch_unwind(|| {
        compile(&["cc", "-std=c99"], &folder().join("tests/broken.c"), false, &program);
        check(Command::new(&program).arg(scratch.path()).arg(&small));
    });
    check(Command::new("umount").arg(&small));
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Each function of the header is called by one of the programs.
#[test]
fn every_function_is_tried() {
    let read = |path: &str| std::fs::read_to_string(folder().join(path)).expect("it is there");
    let programs: Vec<String> =
        PROGRAMS.iter().map(|name| read(&format!("tests/{name}.c"))).collect();
    let tools = read("tests/check.h");
    let header = read("include/adamant.h");
    let mut count = 0;
    for line in header.lines().filter(|line| !line.starts_with([' ', '/', '#', 't', '}'])) {
        let Some((words, _)) = line.split_once('(') else { continue };
        let Some(name) = words.rsplit([' ', '*']).next() else { continue };
        let call = format!("{name}(");
        let is_tried = programs.iter().chain([&tools]).any(|text| text.contains(&call));
        assert!(is_tried, "{name} is not tried");
        count += 1;
    }
    assert!(count > 60, "{count} functions were found");
}

/// The number of the binary interface is the same in the header and in the name of the library.
#[test]
fn the_name_has_the_number() {
    let header = std::fs::read_to_string(prefix().join("include/adamant.h")).expect("a header");
    let number = header.lines().find_map(|line| line.strip_prefix("#define ADAMANT_ABI "));
    let name = format!("libadamant.so.{}", number.expect("the number is in the header"));
    assert!(prefix().join("lib").join(&name).exists(), "{name} is not installed");
    let library = std::fs::read(prefix().join("lib/libadamant.so")).expect("the library");
    let is_named = library.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(is_named, "the library does not say that it is {name}");
}

/// The pieces of a page in one language, in their order.
fn pieces(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = page.split(&fence).skip(1);
    parts.filter_map(|part| part.split_once("\n```")).map(|(code, _)| format!("{code}\n")).collect()
}

fn guide() -> String {
    let page = folder().join("../../docs/guide/c.md");
    std::fs::read_to_string(page).expect("the guide is there")
}

/// What comes before the pieces of the guide, beside what its first one has.
const BEFORE: &str = "#include <stdint.h>\n#include <string.h>\n";
/// Functions of the pieces: a clock that tells what it points to, and one that shows changes.
const FUNCTIONS: &str = "static uint64_t tell(void *now)\n{\nreturn *(uint64_t *)now;\n}\n\
    static void show(void *context, const adamant_change *change)\n{\n(void)context;\n\
    printf(\"change %d: %.*s %.*s\\n\", change->kind, (int)change->keyspace.len, \
    change->keyspace.data, (int)change->key.len, change->key.data);\n}\n";

#[test]
fn the_guide() {
    if !has("cc") {
        return;
    }
    let pieces = pieces(&guide(), "c");
    let (program, others) = pieces.split_first().expect("the guide has a program");
    let check = program.split("int main").next().expect("what is before the main function");
    let mut source = format!("{BEFORE}{check}{FUNCTIONS}");
    for (at, piece) in others.iter().enumerate() {
        source += &format!(
            "static void piece_{at}(adamant_store *store, adamant_keyspace *users)\n\
             {{\n{piece}(void)store;\n(void)users;\n}}\n"
        );
    }
    source += "int main(void)\n{\nadamant_store *store;\nadamant_keyspace *users;\n\
               check(adamant_open(\"guide.adamant\", NULL, &store));\n\
               check(adamant_keyspace_open(store, \"users\", NULL, &users));\n\
               check(adamant_put(users, adamant_text(\"ada\"), adamant_text(\"Ada\")));\n";
    (0..others.len()).for_each(|at| source += &format!("piece_{at}(store, users);\n"));
    source += "adamant_keyspace_free(users);\ncheck(adamant_close(store));\n\
               adamant_store_free(store);\nreturn 0;\n}\n";
    assert!(others.len() >= 8, "{} pieces", others.len());

    let scratch = tempfile::tempdir().expect("a folder for the test");
    let (file, run) = (scratch.path().join("guide.c"), scratch.path().join("guide"));
    std::fs::write(&file, source).expect("a file in that folder");
    compile(&["cc", "-std=c99"], &file, false, &run);
    let output = check_in(scratch.path(), &mut Command::new(&run));
    assert!(output.contains("before: Ada\n"), "{output}");
    assert!(output.contains("the last one below b: ada\n"), "{output}");
    assert!(output.contains("ada for some 30 minutes\n"), "{output}");
    assert!(output.contains("the code is over\n"), "{output}");
    assert!(output.contains("room 7 is swept\n"), "{output}");
    assert!(output.contains("change 1: users bob\n"), "{output}");
    assert!(output.contains("\"clean\":true"), "{output}");
}

#[test]
fn the_readme() {
    if !has("cc") {
        return;
    }
    let page = std::fs::read_to_string(folder().join("../../README.md")).expect("it is there");
    let lines = pieces(&page, "c").concat();
    let source = format!(
        "#include <adamant.h>\n#include <stdio.h>\nint main(void)\n{{\n{lines}return 0;\n}}\n"
    );
    let scratch = tempfile::tempdir().expect("a folder for the test");
    let (file, run) = (scratch.path().join("readme.c"), scratch.path().join("readme"));
    std::fs::write(&file, source).expect("a file in that folder");
    compile(&["cc", "-std=c99"], &file, false, &run);
    assert_eq!(check_in(scratch.path(), &mut Command::new(&run)), "7 is Ada Lovelace\n");
}

/// Runs a command in a folder; what it said.
fn check_in(scratch: &Path, command: &mut Command) -> String {
    let output = check(command.current_dir(scratch));
    String::from_utf8(output.stdout).expect("text")
}

/// Nobody installs what only debuggers look at.
#[test]
fn what_is_installed_has_no_debug_sections() {
    if !has("strip") || !has("readelf") {
        return;
    }
    for name in ["libadamant.a", "libadamant.so"] {
        let mut readelf = Command::new("readelf");
        let output =
            check(readelf.args(["--wide", "--sections"]).arg(prefix().join("lib").join(name)));
        let sections = String::from_utf8_lossy(&output.stdout);
        assert!(sections.contains(" .text"), "{name} has code");
        assert!(!sections.contains(" .debug_"), "{name} has what only debuggers look at");
    }
}

/// The one command of the guide, for its program and for the example.
#[test]
fn the_command_that_compiles() {
    if !has("cc") || !has("pkg-config") {
        return;
    }
    let page = guide();
    let commands = pieces(&page, "sh").concat();
    let command = commands.lines().find(|line| line.starts_with("cc ")).expect("it is there");
    let example = folder().join("examples/first.c");
    let example = std::fs::read_to_string(example).expect("the example is there");
    let lib = prefix().join("lib");
    for (source, expected) in [
        (&pieces(&page, "c")[0], "Ada Lovelace\n"),
        (&example, "ada@example.org is Ada Lovelace\n"),
    ] {
        let scratch = tempfile::tempdir().expect("a folder for the test");
        std::fs::write(scratch.path().join("first.c"), source).expect("a file in that folder");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{command} && ./first"));
        shell.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).env("LD_LIBRARY_PATH", &lib);
        assert_eq!(check_in(scratch.path(), &mut shell), expected);
    }
}

#[test]
fn the_queue_of_two_processes() {
    if !has("cc") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder for the test");
    let run = scratch.path().join("queue");
    compile(&["cc", "-std=c99"], &folder().join("examples/queue.c"), false, &run);
    // Once more it goes on where the feed is.
    for first in [2, 7] {
        let expected = (0..5).map(|job| format!("commit {}: sweep room {job}\n", first + job));
        let output = check_in(scratch.path(), &mut Command::new(&run));
        assert_eq!(output, expected.collect::<String>());
    }
}

#[test]
fn by_cmake() {
    if !has("cmake") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder for the test");
    let mut command = Command::new("cmake");
    command.arg("-S").arg(folder().join("examples/cmake")).arg("-B").arg(scratch.path());
    check(command.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    check(Command::new("cmake").arg("--build").arg(scratch.path()));
    for program in ["first", "first_static"] {
        let mut first = Command::new(scratch.path().join(program));
        assert_eq!(check_in(scratch.path(), &mut first), "ada@example.org is Ada Lovelace\n");
    }
}
