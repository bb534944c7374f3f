//! Rust source files, and the module tree below a root file.

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item};

/// A module that has a file of its own or stands in braces within one.
pub(crate) struct Module {
    /// Names from the root of the crate down; empty for the root.
    pub(crate) path: Vec<String>,
    /// The file that its text is in.
    pub(crate) file: PathBuf,
    /// Whether it stands in braces within another module's file.
    pub(crate) inline: bool,
    /// Its items, without test-only ones; modules in braces are entries of their own.
    pub(crate) items: Vec<Item>,
    /// Names of its submodules, in the order of their `mod` lines.
    pub(crate) children: Vec<String>,
}

/// All `.rs` files below a folder, as [`files`].
///
/// # Errors
/// As [`files`].
pub(crate) fn rust_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    files(root, ".rs")
}

/// All files below a folder whose names have this ending, sorted, without build products and hidden
/// folders.
///
/// # Errors
/// In words, when a folder cannot be read.
pub(crate) fn files(root: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .map_err(|error| format!("could not list {}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file as text.
///
/// # Errors
/// In words, when it cannot be read or is not UTF-8.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("could not read {}: {error}", file.display()))
}

/// Parses a file's text.
///
/// # Errors
/// In words, with the line, when it is not Rust.
pub(crate) fn parse(file: &Path, text: &str) -> Result<syn::File, String> {
    syn::parse_file(text).map_err(|error| {
        format!("{}:{}: not Rust: {error}", file.display(), error.span().start().line)
    })
}

/// All modules of the crate whose root file is `entry`, parents before children, without test-only
/// modules.
///
/// # Errors
/// In words, when a file is missing or is not Rust.
pub(crate) fn tree(entry: &Path) -> Result<Vec<Module>, String> {
    let mut modules = Vec::new();
    let file = parse(entry, &read(entry)?)?;
    let folder = entry.parent().unwrap_or(Path::new("")).to_owned();
    let root = Module {
        path: Vec::new(),
        file: entry.to_owned(),
        inline: false,
        items: Vec::new(),
        children: Vec::new(),
    };
    descend(root, &folder, file.items, &mut modules)?;
    Ok(modules)
}

/// Adds a module and everything below it; `folder` holds its submodules' files.
fn descend(
    mut module: Module,
    folder: &Path,
    items: Vec<Item>,
    modules: &mut Vec<Module>,
) -> Result<(), String> {
    let mut below = Vec::new();
    for item in items {
        if attributes(&item).is_some_and(for_tests_only) {
            continue;
        }
        let Item::Mod(declared) = item else {
            module.items.push(item);
            continue;
        };
        let name = declared.ident.to_string();
        let mut path = module.path.clone();
        path.push(name.clone());
        module.children.push(name.clone());
        let (file, inline, items, child_folder) = match declared.content {
            Some((_, items)) => (module.file.clone(), true, items, folder.join(&name)),
            None => {
                let (file, child_folder) = locate(&declared.attrs, folder, &name)?;
                let parsed = parse(&file, &read(&file)?)?;
                (file, false, parsed.items, child_folder)
            }
        };
        let child = Module { path, file, inline, items: Vec::new(), children: Vec::new() };
        below.push((child, child_folder, items));
    }
    modules.push(module);
    for (child, child_folder, items) in below {
        descend(child, &child_folder, items, modules)?;
    }
    Ok(())
}

/// The file of `mod name;` and the folder of its own submodules.
fn locate(
    attributes: &[Attribute],
    folder: &Path,
    name: &str,
) -> Result<(PathBuf, PathBuf), String> {
    for attribute in attributes {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("path")
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value
        {
            let file = folder.join(text.value());
            let below = file.parent().unwrap_or(folder).to_owned();
            return Ok((file, below));
        }
    }
    let below = folder.join(name);
    for file in [folder.join(format!("{name}.rs")), below.join("mod.rs")] {
        if file.is_file() {
            return Ok((file, below));
        }
    }
    Err(format!("mod {name}; has no file in {}", folder.display()))
}

/// Whether an attribute is `cfg(test)` or a combination that needs it.
pub(crate) fn for_tests_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test")
        }
        _ => false,
    })
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}
