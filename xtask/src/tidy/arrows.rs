//! Which crate may depend on which.

use std::process::Command;

use serde_json::Value;

use super::{Tree, Violation};

const BELOW_FACADE: &[&str] = &[
    "osteon-spec",
    "osteon-memory",
    "osteon-kernels",
    "osteon-tensor",
    "osteon-autograd",
    "osteon-io",
];

/// The arrows, in one place. Every crate may also say things in `osteon-spec`'s words.
const ARROWS: &[(&str, &[&str])] = &[
    ("osteon-spec", &[]),
    ("osteon-memory", &["osteon-spec"]),
    ("osteon-kernels", &["osteon-spec"]),
    (
        "osteon-tensor",
        &["osteon-spec", "osteon-memory", "osteon-kernels"],
    ),
    (
        "osteon-autograd",
        &["osteon-spec", "osteon-memory", "osteon-tensor"],
    ),
    (
        "osteon-io",
        &["osteon-spec", "osteon-memory", "osteon-tensor"],
    ),
    ("osteon", BELOW_FACADE),
    ("osteon-cli", &["osteon-spec", "osteon"]),
    ("xtask", &["osteon-spec", "osteon"]),
];

/// Dependencies, of whatever kind, follow the arrows.
pub fn arrows(tree: &Tree) -> Result<Vec<Violation>, String> {
    let metadata = metadata(tree)?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata has no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut found = Vec::new();
    let mut broken = |place: &str, message: String| {
        found.push(Violation {
            rule: "arrows",
            place: place.to_owned(),
            line: None,
            message,
        });
    };
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            broken(
                name,
                "a crate without a row in xtask/src/tidy/arrows.rs".to_owned(),
            );
            continue;
        };
        let dependencies = package["dependencies"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        for to in dependencies.iter().filter_map(|d| d["name"].as_str()) {
            if ours.contains(&to) && !allowed.contains(&to) {
                broken(
                    name,
                    format!("depends on {to}; it may depend on {}", list(allowed)),
                );
            }
        }
    }
    Ok(found)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing of ours".to_owned()
    } else {
        names.join(", ")
    }
}

fn metadata(tree: &Tree) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(tree.root())
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
}
