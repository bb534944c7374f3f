//! The imports of a module within its own crate.

use std::collections::{BTreeSet, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use crate::source::sources::{self, Module};

/// The paths into its own crate that a module contains, and the names that it defines.
pub(crate) struct Imports {
    /// Full paths, without `crate`, and the line of each.
    pub(crate) paths: Vec<(Vec<String>, usize)>,
    /// Names that `use` imports, with the full path of each.
    pub(crate) renamed: HashMap<String, Vec<String>>,
    /// Full paths of imports with `*`.
    pub(crate) globs: Vec<Vec<String>>,
    /// Names of the items defined here.
    pub(crate) defined: BTreeSet<String>,
    here: Vec<String>,
    children: Vec<String>,
}

impl Imports {
    /// Reads a module's items.
    pub(crate) fn of(module: &Module) -> Self {
        let mut imports = Self {
            paths: Vec::new(),
            renamed: HashMap::new(),
            globs: Vec::new(),
            defined: BTreeSet::new(),
            here: module.path.clone(),
            children: module.children.clone(),
        };
        for item in &module.items {
            if let Some(name) = defined_name(item) {
                imports.defined.insert(name);
            }
            imports.visit_item(item);
        }
        imports
    }

    /// The full path of `names`, if it leads into this crate.
    fn full(&self, names: &[String]) -> Option<Vec<String>> {
        let (first, rest) = names.split_first()?;
        let mut path = self.here.clone();
        let mut rest = rest;
        match first.as_str() {
            "crate" => path.clear(),
            "self" => {}
            "super" => {
                path.pop()?;
            }
            name if self.children.iter().any(|child| child == name) => path.push(name.to_owned()),
            _ => return None,
        }
        while let Some((name, below)) = rest.split_first()
            && name == "super"
        {
            path.pop()?;
            rest = below;
        }
        path.extend_from_slice(rest);
        Some(path)
    }

    fn take(&mut self, names: &[String], line: usize) {
        if names.len() > 1
            && let Some(path) = self.full(names)
        {
            self.paths.push((path, line));
        }
    }

    fn take_use(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.take_use(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.take_use(tree, prefix));
            }
            UseTree::Name(name) => self.take_leaf(prefix, &name.ident, &name.ident),
            UseTree::Rename(name) => self.take_leaf(prefix, &name.ident, &name.rename),
            UseTree::Glob(star) => {
                if let Some(path) = self.full(prefix) {
                    let line = star.star_token.spans[0].start().line;
                    self.paths.push((path.clone(), line));
                    self.globs.push(path);
                }
            }
        }
    }

    fn take_leaf(&mut self, prefix: &[String], name: &syn::Ident, renamed: &syn::Ident) {
        let mut names = prefix.to_vec();
        let mut known_as = renamed.to_string();
        if name == "self" {
            // `use a::b::{self}` brings in the name b.
            if known_as == "self" {
                known_as = prefix.last().cloned().unwrap_or_default();
            }
        } else {
            names.push(name.to_string());
        }
        if let Some(path) = self.full(&names) {
            self.paths.push((path.clone(), name.span().start().line));
            self.renamed.insert(known_as, path);
        }
    }

    /// Paths in the arguments of a macro, which are not parsed.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(it)) if it.as_char() == ':');
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut names = vec![first.to_string()];
                    while is_colon(at + 1)
                        && is_colon(at + 2)
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                    {
                        names.push(next.to_string());
                        at += 3;
                    }
                    self.take(&names, first.span().start().line);
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Use(item) => self.take_use(&item.tree, &mut Vec::new()),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let for_tests = match item {
            syn::ImplItem::Fn(method) => sources::for_tests_only(&method.attrs),
            _ => false,
        };
        if !for_tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(first) = path.segments.first()
            && path.leading_colon.is_none()
        {
            self.take(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.take_tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }

    /// `pub(in crate::a)` is about visibility, not use.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

fn defined_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}
