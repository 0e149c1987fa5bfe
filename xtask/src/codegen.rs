//! `cargo xtask codegen`: what is written from the table of operations.

use std::fs;
use std::path::Path;

use osteon::ops::{Class, DIFFERENCES, OPS, OpInfo};

use crate::conformance::dtypes_of;

/// Where the page of operations lies in the project.
pub const PAGE: &str = "docs/ops.md";

const HEAD: &str = "\
# Operations

Every operation of `Tensor`, by its PyTorch name; written by `cargo xtask codegen` from `crates/spec/src/ops/`. A name with `_` at its
end writes in place, one with `_out` into a given tensor. *Costs* speaks of the first name. Views never copy, whatever the strides; nothing
copies an operand first. *dtypes* are those that an operation on equal operands accepts: `b` bool, `u` and `i` integers, `f` floats (half
precision included), `c` complex; a letter stands for the whole family.
";

/// Writes the files into the project at `root`; true always.
///
/// # Errors
/// A message where a file cannot be written.
pub fn run(root: &Path) -> Result<bool, String> {
    fs::write(root.join(PAGE), page()).map_err(|e| format!("{PAGE}: {e}"))?;
    println!("codegen: {PAGE}, {} operations", OPS.len());
    Ok(true)
}

/// The page of operations.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut class = None;
    for op in OPS {
        let elementwise = op.class == Class::Elementwise;
        let row = |cells: [&str; 5]| {
            let [name, does, costs, dtypes, unlike] = cells;
            if elementwise {
                format!("| {name} | {does} | {costs} | {dtypes} | {unlike} |\n")
            } else {
                format!("| {name} | {does} | {costs} | {unlike} |\n")
            }
        };
        if class.replace(op.class) != Some(op.class) {
            text += &format!("\n## {}\n\n", title(op.class));
            text += &row(["operation", "does", "costs", "dtypes", "unlike PyTorch"]);
            text += &row(["---"; 5]);
        }
        let names: Vec<String> = op.names.iter().map(|n| format!("`{n}`")).collect();
        let dtypes = if elementwise {
            dtypes_of(op.name())
        } else {
            None
        };
        text += &row([
            &names.join(" "),
            &op.doc.replace('|', "\\|"),
            op.cost.text(),
            &dtypes.unwrap_or_default(),
            difference(op),
        ]);
    }
    text
}

fn title(class: Class) -> &'static str {
    match class {
        Class::View => "Views",
        Class::Copy => "Copies, where they must",
        Class::Elementwise => "Element by element",
        Class::Reduction => "Reductions",
        Class::Scan => "Running",
        Class::Product => "Products",
        Class::Index => "By index and mask",
        Class::Sort => "By order",
        Class::Arrange => "Elements in other places",
        Class::Create => "New tensors",
        Class::InPlace => "In place",
    }
}

fn difference(op: &OpInfo) -> &'static str {
    let of = |(name, text): &(&str, &'static str)| op.names.contains(name).then_some(*text);
    DIFFERENCES.iter().find_map(of).unwrap_or_default()
}
