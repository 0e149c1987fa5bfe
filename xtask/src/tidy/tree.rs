//! The text of the project, read once for all rules.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the project.
#[derive(Debug)]
pub struct File {
    /// Path from the root, with `/` on every system.
    pub path: String,
    /// Its text as it stands.
    pub text: String,
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Integration tests, fuzz targets and benches are tests from the first line to the last.
    pub fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "fuzz"))
    }
}

/// All text files below a root.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

impl Tree {
    /// Reads every text file below `root`; built and recorded things are left out.
    pub fn load(root: &Path) -> Result<Tree, String> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree {
            root: root.to_owned(),
            files,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|f| f.is_rust())
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|f| f.path == path)
    }
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<File>) -> Result<(), String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: {e}", dir.display()))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(|e| format!("{path}: {e}"))?;
        if kind.is_dir() {
            if !skipped(name) {
                walk(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).map_err(|e| format!("{path}: {e}"))?;
            // What is not UTF-8 is data, and no rule speaks of data.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path, text });
            }
        }
    }
    Ok(())
}

/// What `.gitignore` names, and git's own folder.
fn skipped(name: &str) -> bool {
    matches!(name, ".git" | "target" | "corpus" | "artifacts") || name.starts_with("target-")
}
