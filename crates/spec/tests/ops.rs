//! The table of operations against the methods of the users' tensor, read as text.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use osteon_spec::ops::{DIFFERENCES, OPS};

/// The methods of `Tensor` that operate: those of its `impl` blocks, and the rows of macros that make them. What a
/// tensor says of itself, in `tensor.rs` and `provenance.rs`, is no operation.
fn methods() -> Option<BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../autograd/src");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if !["tensor.rs", "provenance.rs"]
            .map(OsStr::new)
            .contains(&path.file_name()?)
        {
            collect(&fs::read_to_string(path).ok()?, &mut names);
        }
    }
    Some(names)
}

fn collect(text: &str, names: &mut BTreeSet<String>) {
    let (mut in_impl, mut in_rows, mut documented) = (false, false, false);
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            in_impl = line == "impl Tensor {";
            in_rows = line.contains("! {") && !line.starts_with("macro_rules");
        } else if let Some(rest) = line.strip_prefix("    pub fn ").filter(|_| in_impl) {
            let rest = rest.strip_prefix("r#").unwrap_or(rest);
            names.insert(rest.split(['<', '(']).next().unwrap_or_default().to_owned());
        } else if in_rows && documented && line.starts_with("    ") {
            let is_name =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ' ';
            let row: String = line[4..].chars().take_while(|&c| is_name(c)).collect();
            let mut words = row.split(' ').filter(|w| !w.is_empty());
            let Some(first) = words.next() else { continue };
            names.insert(first.to_owned());
            names.extend(words.filter(|w| w.starts_with(first)).map(str::to_owned));
        }
        documented = line.starts_with("    ///");
    }
}

#[test]
fn every_method_is_in_the_table_and_the_table_names_no_other() {
    let Some(methods) = methods() else {
        println!("skipped: the crate of the methods is not here");
        return;
    };
    let listed: BTreeSet<String> = OPS
        .iter()
        .flat_map(|op| op.names)
        .map(|n| (*n).to_owned())
        .collect();
    assert_eq!(
        listed.len(),
        OPS.iter().map(|op| op.names.len()).sum(),
        "a name twice"
    );
    let missing: Vec<_> = methods.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&methods).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "missing {missing:?}, without a method {gone:?}"
    );
    assert!(methods.len() > 300, "the methods are read wrongly");
}

#[test]
fn differences_are_of_operations() {
    for (name, _) in DIFFERENCES {
        assert!(OPS.iter().any(|op| op.names.contains(name)), "{name}");
    }
}
