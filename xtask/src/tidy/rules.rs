//! The rules that read text.

use super::Violation;
use super::source::{block_after, code_only, line_of, without_tests, words};
use super::tree::{File, Tree};
use crate::codegen;

/// Crates that hold the thin layers of `unsafe`.
const UNSAFE_CRATES: &[&str] = &["crates/memory/", "crates/kernels/"];
/// Crates that are safe but for these files and folders: they deny `unsafe`, and those allow it.
const UNSAFE_FILES: &[&str] = &[
    "crates/io/src/mmap.rs",
    "crates/tensor/src/cpu/",
    "crates/tensor/src/guard.rs",
];
/// Where all dtypes may be told apart.
const DTYPE_FILE: &str = "crates/spec/src/dtype.rs";
const DTYPE_MACRO: &str = "macro_rules! with_element";

const MAX_CODE_LINES: usize = 500;
const MAX_LINES: usize = 800;
/// From this many dtypes named in its patterns on, a `match` is one over dtypes.
const DTYPES_IN_A_MATCH: usize = 4;

type Found = Result<Vec<Violation>, String>;

fn at(rule: &'static str, file: &File, offset: usize, message: String) -> Violation {
    Violation {
        rule,
        place: file.path.clone(),
        line: Some(line_of(&file.text, offset)),
        message,
    }
}

fn whole(rule: &'static str, place: &str, message: String) -> Violation {
    Violation {
        rule,
        place: place.to_owned(),
        line: None,
        message,
    }
}

/// Files are short: at most 500 lines of code, and 800 lines with blanks and comments; tests apart.
pub fn file_length(tree: &Tree) -> Found {
    let mut found = Vec::new();
    for file in tree.rust().filter(|f| !f.is_test()) {
        let code = code_only(&file.text);
        let kept = without_tests(&code);
        let code_lines = kept.lines().filter(|l| !l.trim().is_empty()).count();
        let test_lines = kept
            .lines()
            .zip(code.lines())
            .filter(|(kept, all)| kept != all)
            .count();
        let lines = file.text.lines().count() - test_lines;
        if code_lines > MAX_CODE_LINES || lines > MAX_LINES {
            found.push(whole(
                "file-length",
                &file.path,
                format!(
                    "{code_lines} lines of code, {lines} in all without tests; \
                     the limits are {MAX_CODE_LINES} and {MAX_LINES}: split it by what it is about"
                ),
            ));
        }
    }
    Ok(found)
}

/// `unsafe` stays in its layers.
pub fn unsafe_places(tree: &Tree) -> Found {
    let mut found = Vec::new();
    for file in tree.rust() {
        let path = file.path.as_str();
        if UNSAFE_CRATES.iter().any(|c| path.starts_with(c))
            || UNSAFE_FILES.iter().any(|f| path.starts_with(f))
        {
            continue;
        }
        let code = code_only(&file.text);
        if let Some((offset, _)) = words(&code).find(|(_, w)| *w == "unsafe") {
            let message = format!(
                "`unsafe` outside {} and {}",
                UNSAFE_CRATES.join(", "),
                UNSAFE_FILES.join(", ")
            );
            found.push(at("unsafe-places", file, offset, message));
        }
    }
    Ok(found)
}

/// Every other crate says so itself, so that the compiler holds it.
pub fn unsafe_forbidden(tree: &Tree) -> Found {
    let mut found = Vec::new();
    for file in crate_roots(tree) {
        let folder = folder_of_root(file);
        if UNSAFE_CRATES.contains(&folder) {
            continue;
        }
        let wanted = if UNSAFE_FILES.iter().any(|f| f.starts_with(folder)) {
            "#![deny(unsafe_code)]"
        } else {
            "#![forbid(unsafe_code)]"
        };
        if !code_only(&file.text).contains(wanted) {
            found.push(whole(
                "unsafe-forbidden",
                &file.path,
                format!("lacks `{wanted}`"),
            ));
        }
    }
    Ok(found)
}

/// Every library asks for documentation of all that it shows.
pub fn docs_required(tree: &Tree) -> Found {
    let wanted = "#![deny(missing_docs)]";
    Ok(crate_roots(tree)
        .filter(|f| f.path.ends_with("/lib.rs") && !code_only(&f.text).contains(wanted))
        .map(|f| whole("docs-required", &f.path, format!("lacks `{wanted}`")))
        .collect())
}

fn crate_roots(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|f| {
        let below = f
            .path
            .strip_prefix("crates/")
            .and_then(|p| p.split_once('/'));
        let inside = below
            .map(|(_, rest)| rest)
            .or(f.path.strip_prefix("xtask/"));
        matches!(inside, Some("src/lib.rs" | "src/main.rs"))
    })
}

fn folder_of_root(file: &File) -> &str {
    file.path.find("src/").map_or("", |n| &file.path[..n])
}

/// A `match` over dtypes stands in two places.
pub fn dtype_matches(tree: &Tree) -> Found {
    let mut found = Vec::new();
    for file in tree.rust().filter(|f| !f.is_test() && f.path != DTYPE_FILE) {
        let code = without_tests(&code_only(&file.text));
        if file.path.starts_with("crates/kernels/") && code.contains(DTYPE_MACRO) {
            continue;
        }
        for (offset, _) in words(&code).filter(|(_, w)| *w == "match") {
            let Some(body) = block_after(&code, offset) else {
                continue;
            };
            let named = dtypes_in_patterns(body);
            if named >= DTYPES_IN_A_MATCH {
                let message = format!(
                    "a `match` that tells {named} dtypes apart: ask the dtype (its methods), \
                     or use `with_element!`"
                );
                found.push(at("dtype-match", file, offset, message));
            }
        }
    }
    Ok(found)
}

/// Counts `DType::X` on the left of the arrows of a match body, not inside nested blocks.
fn dtypes_in_patterns(body: &str) -> usize {
    let (mut depth, mut in_pattern, mut named) = (0usize, true, 0);
    for (i, c) in body.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                // An arm whose value is a block needs no comma.
                in_pattern |= depth == 0 && c == '}' && !continues(body[i + 1..].trim_start());
            }
            ',' if depth == 0 => in_pattern = true,
            '=' if depth == 0 && body[i..].starts_with("=>") => in_pattern = false,
            'D' if in_pattern && body[i..].starts_with("DType::") => named += 1,
            _ => {}
        }
    }
    named
}

/// Whether what follows a `}` still belongs to the same arm.
fn continues(after: &str) -> bool {
    ["=>", "else", ".", "?"]
        .iter()
        .any(|s| after.starts_with(s))
}

/// Nothing half done is left lying about.
pub fn leftovers(tree: &Tree) -> Found {
    // Spelled in two halves, so that this file passes its own rule.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!"),
        concat!("unimplemented", "!"),
        concat!("dbg", "!"),
    ];
    Ok(mentions(tree, "leftovers", &marks, |mark| {
        format!("`{mark}`: finish it, or take it out")
    }))
}

/// Nothing in the project belongs to the machine it was written on, or to one registry.
pub fn one_machine(tree: &Tree) -> Found {
    let marks = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("pypi", ".org"),
        concat!("pythonhosted", ".org"),
    ];
    Ok(mentions(tree, "one-machine", &marks, |mark| {
        format!("`{mark}` belongs to one machine or registry")
    }))
}

fn mentions(
    tree: &Tree,
    rule: &'static str,
    marks: &[&str],
    message: impl Fn(&str) -> String,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files() {
        for (number, line) in file.text.lines().enumerate() {
            for mark in marks.iter().filter(|m| has_word(line, m)) {
                found.push(Violation {
                    rule,
                    place: file.path.clone(),
                    line: Some(number + 1),
                    message: message(mark),
                });
            }
        }
    }
    found
}

/// `mark` in the line, not as the middle of a longer word.
fn has_word(line: &str, mark: &str) -> bool {
    let joins = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(i, _)| {
        let before = mark.starts_with(joins) && line[..i].ends_with(joins);
        let after = mark.ends_with(joins) && line[i + mark.len()..].starts_with(joins);
        !before && !after
    })
}

/// The two READMEs are one text in two languages: the same headings and code blocks.
pub fn readmes_agree(tree: &Tree) -> Found {
    const NAMES: [&str; 2] = ["README.md", "README.zh-CN.md"];
    let mut found = Vec::new();
    let mut shapes = Vec::new();
    for name in NAMES {
        match tree.file(name) {
            Some(file) => shapes.push(readme_shape(&file.text)),
            None => found.push(whole("readmes", name, "is missing".to_owned())),
        }
    }
    if let [english, chinese] = shapes[..]
        && english != chinese
    {
        found.push(whole(
            "readmes",
            NAMES[1],
            format!(
                "has {} headings and {} code blocks; {} has {} and {}",
                chinese.0, chinese.1, NAMES[0], english.0, english.1
            ),
        ));
    }
    Ok(found)
}

/// The page of operations says what the table of operations says.
pub fn operations_page(tree: &Tree) -> Found {
    // The table is compiled into this program: a tree without it has no page either.
    let table = tree.file("crates/spec/src/ops.rs").is_some();
    let page = tree.file(codegen::PAGE).map(|f| f.text.as_str());
    let right = !table || page == Some(&codegen::page());
    Ok((!right)
        .then(|| {
            whole(
                "ops-page",
                codegen::PAGE,
                "is out of date: run `cargo xtask codegen`".to_owned(),
            )
        })
        .into_iter()
        .collect())
}

/// Headings and fenced code blocks of a Markdown text.
fn readme_shape(text: &str) -> (usize, usize) {
    let (mut headings, mut fences) = (0, 0);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fences += 1;
        } else if fences % 2 == 0 && line.starts_with('#') {
            headings += 1;
        }
    }
    (headings, fences / 2)
}
