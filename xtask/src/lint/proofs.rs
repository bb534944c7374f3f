//! Unsafe code check: every `unsafe` needs a safety proof.
//!
//! Purpose: a block, an impl and an extern block need a comment with `SAFETY:` right above them or
//! above the statement they are in; a function and a trait need a `# Safety` section in their
//! documentation. A method of a trait's impl has it at the trait. In macros, which are not parsed,
//! `unsafe {` is searched for among the tokens.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta};

/// Lines with an `unsafe` that has no proof, and its kind.
pub(crate) fn check(text: &str, file: &syn::File) -> Vec<(usize, String)> {
    let lines = text.lines().collect();
    let mut search =
        Search { lines, starts: Vec::new(), in_trait_impl: false, problems: Vec::new() };
    search.visit_file(file);
    search.problems
}

struct Search<'a> {
    lines: Vec<&'a str>,
    /// First lines of the enclosing statements, match arms and items.
    starts: Vec<usize>,
    in_trait_impl: bool,
    problems: Vec<(usize, String)>,
}

impl Search<'_> {
    fn need_comment(&mut self, line: usize, what: &str) {
        let here = [line].into_iter().chain(self.starts.last().copied());
        let proved = here.into_iter().any(|start| self.has_comment(start));
        if !proved {
            self.problems.push((line, format!("{what} without a `// SAFETY:` proof above it")));
        }
    }

    /// Whether the line or the comment right above it has `SAFETY:`. Lines count from 1.
    fn has_comment(&self, line: usize) -> bool {
        if self.lines[line - 1].contains("SAFETY:") {
            return true;
        }
        self.lines[..line - 1]
            .iter()
            .rev()
            .map(|line| line.trim_start())
            .take_while(|line| line.starts_with("//") || line.starts_with("#["))
            .any(|line| line.contains("SAFETY:"))
    }

    fn need_section(&mut self, line: usize, attributes: &[Attribute], what: &str) {
        if !documentation(attributes).contains("# Safety") {
            self.problems.push((line, format!("{what} without a `# Safety` section")));
        }
    }

    fn within(&mut self, start: usize, inner: impl FnOnce(&mut Self)) {
        self.starts.push(start);
        inner(self);
        self.starts.pop();
    }

    fn search_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.search_tokens(group.stream()),
                TokenTree::Ident(word) if word == "unsafe" => {
                    if let Some(TokenTree::Group(body)) = tokens.get(at + 1)
                        && body.delimiter() == Delimiter::Brace
                    {
                        self.need_comment(word.span().start().line, "an unsafe block in a macro");
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let start = statement.span().start().line;
        self.within(start, |search| visit::visit_stmt(search, statement));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let start = arm.span().start().line;
        self.within(start, |search| visit::visit_arm(search, arm));
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let start = item.span().start().line;
        self.within(start, |search| visit::visit_item(search, item));
    }

    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.need_comment(block.unsafe_token.span.start().line, "an unsafe block");
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some(word) = item.unsafety {
            self.need_comment(word.span.start().line, "an unsafe impl");
        }
        let before = std::mem::replace(&mut self.in_trait_impl, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.in_trait_impl = before;
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        self.need_comment(item.abi.extern_token.span.start().line, "an extern block");
        visit::visit_item_foreign_mod(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if item.unsafety.is_some() {
            self.need_section(item.ident.span().start().line, &item.attrs, "an unsafe trait");
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.unsafety.is_some() {
            self.need_section(item.sig.ident.span().start().line, &item.attrs, "an unsafe fn");
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.unsafety.is_some() && !self.in_trait_impl {
            self.need_section(item.sig.ident.span().start().line, &item.attrs, "an unsafe fn");
        }
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if item.sig.unsafety.is_some() {
            self.need_section(item.sig.ident.span().start().line, &item.attrs, "an unsafe fn");
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.search_tokens(invocation.tokens.clone());
    }
}

fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(syn::ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            text.push_str(&line.value());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        let file = syn::parse_file(text).unwrap();
        check(text, &file).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_proof_right_above_will_do() {
        assert_eq!(lines("fn f() {\n    // SAFETY: so.\n    unsafe { g() }\n}"), NONE);
        assert_eq!(
            lines("fn f() {\n    // SAFETY: so.\n    let a =\n        unsafe { g() };\n}"),
            NONE
        );
        assert_eq!(lines("// SAFETY: so.\nunsafe impl Send for A {}"), NONE);
        assert_eq!(lines("/// Does.\n/// # Safety\n/// So.\nunsafe fn f() {}"), NONE);
        assert_eq!(lines("impl A for B { unsafe fn f() {} }"), NONE);
    }

    #[test]
    fn without_one_it_is_found() {
        assert_eq!(lines("fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(
            lines("fn f() {\n    // SAFETY: so.\n    unsafe { g() };\n    unsafe { g() }\n}"),
            [4]
        );
        assert_eq!(lines("// SAFETY: no.\n\nunsafe impl Send for A {}"), [3]);
        assert_eq!(lines("/// Does.\nunsafe fn f() {}"), [2]);
        assert_eq!(lines("impl B { unsafe fn f() {} }"), [1]);
        assert_eq!(lines("fn f() {\n    assert!(unsafe { g() });\n}"), [2]);
    }
}
