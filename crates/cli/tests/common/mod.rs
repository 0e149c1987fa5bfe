//! Runs the command as users do.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run of the command left.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The command in an environment that asks for nothing.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osteon"));
    command.args(args);
    for name in ["LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}

pub fn osteon(args: &[&str]) -> Ran {
    ran(command(args).output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().expect("no signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Checkpoints that PyTorch, safetensors and NumPy wrote.
pub fn data(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../io/tests/data")
        .join(file);
    path.to_str().unwrap().to_owned()
}

/// The larger set of files next to the project, where it is there.
pub fn shared() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/checkpoints");
    if !dir.exists() {
        println!("skipped: {} is not there", dir.display());
        return None;
    }
    Some(dir)
}

/// A safetensors file of one-byte tensors with these names, as they stand in JSON.
pub fn safetensors(path: &Path, names: &[String]) {
    let entries: Vec<_> = (0..names.len())
        .map(|i| {
            format!(
                r#""{}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#,
                names[i],
                i + 1
            )
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + names.len(), 0);
    std::fs::write(path, bytes).unwrap();
}
