//! The project's own rules, checked over the text of the project.
//!
//! A rule is a function from the tree of files to what breaks it. Each has a test that breaks it on purpose.

mod arrows;
mod rules;
mod source;
mod tree;

use std::fmt;
use std::path::Path;

use tree::Tree;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name.
    pub rule: &'static str,
    /// The file, relative to the project, or the crate.
    pub place: String,
    /// The line in the file, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {} [{}]", self.message, self.rule)
    }
}

type Rule = fn(&Tree) -> Result<Vec<Violation>, String>;

const RULES: &[Rule] = &[
    arrows::arrows,
    rules::file_length,
    rules::unsafe_places,
    rules::unsafe_forbidden,
    rules::docs_required,
    rules::dtype_matches,
    rules::leftovers,
    rules::one_machine,
    rules::readmes_agree,
    rules::operations_page,
];

/// Everything in the project at `root` that breaks a rule.
///
/// # Errors
/// A message where the project cannot be read at all.
pub fn check(root: &Path) -> Result<Vec<Violation>, String> {
    let tree = Tree::load(root)?;
    let mut found = Vec::new();
    for rule in RULES {
        found.extend(rule(&tree)?);
    }
    Ok(found)
}

/// `cargo xtask tidy`: prints what breaks a rule; true when nothing does.
///
/// # Errors
/// A message where the project cannot be read at all.
pub fn run(root: &Path) -> Result<bool, String> {
    let found = check(root)?;
    for violation in &found {
        println!("{violation}");
    }
    println!("tidy: {} rules, {} violations", RULES.len(), found.len());
    Ok(found.is_empty())
}
