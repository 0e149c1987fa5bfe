//! The four mysteries: each program's output names its guilty line.

use std::path::Path;
use std::process::Command;

/// Runs a mystery. Returns what it prints, and `file:line` of the only line of its source that has this in it.
fn run(name: &str, guilty: &str) -> (String, String) {
    let file = format!("examples/mysteries/{name}.rs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(&file);
    let source = std::fs::read_to_string(source).expect("the mystery's source");
    let mut lines = source
        .lines()
        .enumerate()
        .filter(|(_, l)| l.contains(guilty));
    let (line, _) = lines.next().expect("the guilty line");
    assert_eq!(lines.next(), None, "one guilty line");
    // Cargo builds it where that was not done yet, as for whoever reads the docs.
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo
        .args(["run", "-q", "-p", "osteon", "--example", name])
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    (text, format!("{file}:{}", line + 1))
}

/// The sum of the losses keeps each loss's graph, and with it the activations.
#[test]
fn leaks() {
    let (text, line) = run("leaks", "total = total.add");
    assert!(
        text.contains("live bytes of 4 lines only grow\n  +256 KiB a step  tanh at "),
        "{text}"
    );
    // Everything that grows is kept by that line.
    assert_eq!(
        text.matches(&format!("in the graph of add at {line}"))
            .count(),
        4,
        "{text}"
    );
}

/// The summaries are made between what comes and goes.
#[test]
fn fragments() {
    let (text, line) = run("fragments", ".copy()");
    for part in [
        "verdict      fragmentation: 206 MiB are free, but the largest run of them is 1.50 MiB\n"
            .to_owned(),
        format!("holders 100 storages (50 MiB):\n    50 MiB  100 storages  copy at {line}\n"),
        format!(
            "to make room, let go of 36 storages (18 MiB):\n    18 MiB  36 storages  copy at {line}\n"
        ),
    ] {
        assert!(text.contains(&part), "{part} in\n{text}");
    }
}

/// Heads side by side again: no strides say that, so that `flatten` copies.
#[test]
fn copies() {
    let (text, line) = run("copies", ".flatten(");
    assert!(text.contains("5 copies, 640 KiB"), "{text}");
    assert!(
        text.contains(&format!("  flatten at {line} (reshape)\n")),
        "{text}"
    );
}

/// Four samples of a batch keep the batch.
#[test]
fn pins() {
    let (text, line) = run("pins", "chart.push");
    let part = format!("  96.0 MiB  6 tensors  index at {line}  reaching 3 KiB  of 6 storages\n");
    assert!(text.contains(&part), "{text}");
    assert!(text.contains("compact() would free 96.0 MiB\n"), "{text}");
}
