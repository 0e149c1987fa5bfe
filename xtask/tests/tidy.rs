//! Each rule of `cargo xtask tidy` is broken on purpose, and must be the one that says so.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use xtask::tidy::{Violation, check};

/// A small workspace that breaks no rule.
fn tidy_workspace() -> TempDir {
    let dir = TempDir::new().expect("a temporary folder");
    let root = dir.path();
    write(
        root,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
    );
    package(root, "spec", &[]);
    package(root, "memory", &["spec"]);
    package(root, "io", &["memory"]);
    write(
        root,
        "crates/spec/src/lib.rs",
        "#![forbid(unsafe_code)]\n#![deny(missing_docs)]\n",
    );
    write(
        root,
        "crates/memory/src/lib.rs",
        "#![deny(missing_docs)]\nunsafe fn f() {}\n",
    );
    write(
        root,
        "crates/io/src/lib.rs",
        "#![deny(unsafe_code)]\n#![deny(missing_docs)]\n",
    );
    write(root, "crates/io/src/mmap.rs", "unsafe fn f() {}\n");
    write(root, "README.md", "# One\n\n```\n# not a heading\n```\n");
    write(root, "README.zh-CN.md", "# 一\n\n```\n```\n");
    dir
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn package(root: &Path, name: &str, dependencies: &[&str]) {
    let mut manifest =
        format!("[package]\nname = \"osteon-{name}\"\nedition = \"2024\"\n[dependencies]\n");
    for to in dependencies {
        manifest += &format!("osteon-{to} = {{ path = \"../{to}\" }}\n");
    }
    write(root, &format!("crates/{name}/Cargo.toml"), &manifest);
    write(root, &format!("crates/{name}/src/lib.rs"), "");
}

/// What tidy says of the workspace with these files put in.
fn with(files: &[(&str, &str)]) -> Vec<Violation> {
    let dir = tidy_workspace();
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    check(dir.path()).expect("a readable workspace")
}

fn assert_only(found: &[Violation], rule: &str, place: &str, line: Option<usize>) {
    let found: Vec<_> = found
        .iter()
        .map(|v| (v.rule, v.place.as_str(), v.line))
        .collect();
    assert_eq!(found, [(rule, place, line)]);
}

#[test]
fn a_tidy_workspace_passes() {
    assert_eq!(with(&[]), []);
}

#[test]
fn this_project_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let found: Vec<String> = check(root)
        .expect("a readable project")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn an_arrow_that_points_up_is_caught() {
    let dir = tidy_workspace();
    package(dir.path(), "memory", &["io"]);
    write(
        dir.path(),
        "crates/memory/src/lib.rs",
        "#![deny(missing_docs)]\n",
    );
    package(dir.path(), "io", &["spec"]);
    write(
        dir.path(),
        "crates/io/src/lib.rs",
        "#![deny(unsafe_code)]\n#![deny(missing_docs)]\n",
    );
    let found = check(dir.path()).expect("a readable workspace");
    assert_only(&found, "arrows", "osteon-memory", None);
    assert!(
        found[0]
            .message
            .contains("depends on osteon-io; it may depend on osteon-spec"),
        "{}",
        found[0]
    );
}

#[test]
fn a_crate_without_a_row_is_caught() {
    let manifest = "[package]\nname = \"osteon-new\"\nedition = \"2024\"\n";
    let lib = "#![forbid(unsafe_code)]\n#![deny(missing_docs)]\n";
    let found = with(&[
        ("crates/new/Cargo.toml", manifest),
        ("crates/new/src/lib.rs", lib),
    ]);
    assert_only(&found, "arrows", "osteon-new", None);
}

#[test]
fn a_long_file_is_caught_by_its_code_and_not_by_its_tests() {
    let code = "const A: u8 = 0;\n";
    assert_eq!(with(&[("crates/spec/src/a.rs", &code.repeat(500))]), []);
    let found = with(&[("crates/spec/src/a.rs", &code.repeat(501))]);
    assert_only(&found, "file-length", "crates/spec/src/a.rs", None);

    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", code.repeat(600));
    assert_eq!(
        with(&[(
            "crates/spec/src/a.rs",
            &format!("{}{tests}", code.repeat(500))
        )]),
        []
    );
    assert_eq!(with(&[("crates/spec/tests/a.rs", &code.repeat(900))]), []);

    let comments = format!("{}{}", code.repeat(400), "// words\n\n".repeat(200));
    assert_eq!(with(&[("crates/spec/src/a.rs", &comments)]), []);
    let found = with(&[("crates/spec/src/a.rs", &(comments + "// one more\n"))]);
    assert_only(&found, "file-length", "crates/spec/src/a.rs", None);
}

#[test]
fn unsafe_outside_its_layers_is_caught() {
    let found = with(&[(
        "crates/io/src/zip.rs",
        "// unsafe\nconst A: &str = \"unsafe\";\nunsafe fn f() {}\n",
    )]);
    assert_only(&found, "unsafe-places", "crates/io/src/zip.rs", Some(3));
}

#[test]
fn a_crate_that_does_not_forbid_unsafe_is_caught() {
    let found = with(&[(
        "crates/spec/src/lib.rs",
        "// #![forbid(unsafe_code)]\n#![deny(missing_docs)]\n",
    )]);
    assert_only(&found, "unsafe-forbidden", "crates/spec/src/lib.rs", None);
    let found = with(&[("crates/io/src/lib.rs", "#![deny(missing_docs)]\n")]);
    assert_only(&found, "unsafe-forbidden", "crates/io/src/lib.rs", None);
}

#[test]
fn a_library_without_required_docs_is_caught() {
    let found = with(&[("crates/spec/src/lib.rs", "#![forbid(unsafe_code)]\n")]);
    assert_only(&found, "docs-required", "crates/spec/src/lib.rs", None);
}

#[test]
fn a_match_over_dtypes_is_caught() {
    let four = "fn f(d: DType) -> u8 {\n    match d {\n        DType::I8 => 0,\n        \
                DType::F32 | DType::F64 => { 1 }\n        DType::Bool => 2,\n        _ => 3,\n    }\n}\n";
    let found = with(&[("crates/memory/src/a.rs", four)]);
    assert_only(&found, "dtype-match", "crates/memory/src/a.rs", Some(2));

    // Where the table of dtypes lives, in tests, and in the macro's own file it is right.
    assert_eq!(with(&[("crates/spec/src/dtype.rs", four)]), []);
    assert_eq!(
        with(&[(
            "crates/memory/src/a.rs",
            &format!("#[cfg(test)]\nmod tests {{\n{four}}}\n")
        )]),
        []
    );
    // Dtypes as values, and a match that tells few apart, are no dispatch.
    let values = "fn f(n: u8) -> DType {\n    match n {\n        0 => DType::I8,\n        1 => if n > 0 { DType::F32 } \
                  else { DType::F64 },\n        2 => { DType::F16 }\n        3 => DType::Bool,\n        _ => DType::U8,\n    }\n}\n";
    assert_eq!(with(&[("crates/memory/src/a.rs", values)]), []);
    let few = "fn f(d: DType) -> u8 { match d { DType::I8 | DType::U8 => 0, DType::Bool => 1, _ => 2 } }\n";
    assert_eq!(with(&[("crates/memory/src/a.rs", few)]), []);
}

#[test]
fn leftovers_are_caught_in_code_and_in_text() {
    let mark = ["TO", "DO"].concat();
    let found = with(&[("docs/notes.md", &format!("one\n{mark}: two\n"))]);
    assert_only(&found, "leftovers", "docs/notes.md", Some(2));
    let mark = ["dbg", "!(1);"].concat();
    let found = with(&[(
        "crates/memory/src/a.rs",
        &format!("fn f() {{\n    {mark}\n}}\n"),
    )]);
    assert_only(&found, "leftovers", "crates/memory/src/a.rs", Some(2));
    assert_eq!(
        with(&[("docs/notes.md", &["MAS", "TO", "DON"].concat())]),
        []
    );
}

#[test]
fn paths_of_one_machine_are_caught() {
    for mark in [
        ["/wo", "rk/main"].concat(),
        ["https://pypi", ".org/simple"].concat(),
    ] {
        let found = with(&[("docs/notes.md", &mark)]);
        assert_only(&found, "one-machine", "docs/notes.md", Some(1));
    }
}

#[test]
fn readmes_that_drift_apart_are_caught() {
    let found = with(&[("README.zh-CN.md", "# 一\n\n## 二\n\n```\n```\n")]);
    assert_only(&found, "readmes", "README.zh-CN.md", None);
    let found = with(&[("README.md", "# One\n\n```\n```\n\n```\n```\n")]);
    assert_only(&found, "readmes", "README.zh-CN.md", None);

    let dir = tidy_workspace();
    fs::remove_file(dir.path().join("README.zh-CN.md")).expect("a file");
    assert_only(
        &check(dir.path()).expect("a readable workspace"),
        "readmes",
        "README.zh-CN.md",
        None,
    );
}

#[test]
fn a_page_of_operations_out_of_date_is_caught() {
    let found = with(&[
        ("crates/spec/src/ops.rs", "//! The table.\n"),
        ("docs/ops.md", "# Old\n"),
    ]);
    assert_only(&found, "ops-page", "docs/ops.md", None);
}
