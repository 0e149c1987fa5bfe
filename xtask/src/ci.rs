//! `cargo xtask ci`: everything that continuous integration checks, one step after another.
//!
//! A step is one command. Its output goes to `target/ci/<step>.log`; one line on the terminal says
//! how it went and how long it took, and the end of the log follows where it failed. A tool that is
//! missing fails its step, with the command that installs it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Crates with `unsafe` code: the ones that the address sanitizer watches.
const UNSAFE_CRATES: [&str; 4] = [
    "osteon-memory",
    "osteon-kernels",
    "osteon-tensor",
    "osteon-io",
];
/// Crates whose locks loom explores.
const LOOM_CRATES: [&str; 2] = ["osteon-memory", "osteon-kernels"];
const FUZZ_SECONDS: u32 = 10;
/// How much of a failed step's log is shown.
const LOG_TAIL: usize = 60;

struct Step {
    name: &'static str,
    /// The subcommand of cargo that the step needs, where cargo does not bring it.
    tool: Option<&'static str>,
    commands: fn(&Path) -> Result<Vec<Command>, String>,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        tool: None,
        commands: |_| one(cargo(&["fmt", "--all", "--check"])),
    },
    Step {
        name: "tidy",
        tool: None,
        commands: |_| one(xtask(&["tidy"])?),
    },
    Step {
        name: "clippy",
        tool: None,
        commands: |_| {
            one(cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]))
        },
    },
    Step {
        name: "docs",
        tool: None,
        commands: docs,
    },
    Step {
        name: "nextest",
        tool: Some("nextest"),
        commands: |_| one(cargo(&["nextest", "run", "--workspace"])),
    },
    Step {
        name: "doctest",
        tool: None,
        commands: |_| one(cargo(&["test", "--workspace", "--doc"])),
    },
    Step {
        name: "browser",
        tool: None,
        commands: browser,
    },
    Step {
        name: "kernels",
        tool: None,
        commands: kernels,
    },
    Step {
        name: "conformance",
        tool: None,
        commands: conformance,
    },
    Step {
        name: "bench",
        tool: None,
        commands: |_| one(xtask(&["bench", "--check"])?),
    },
    Step {
        name: "loom",
        tool: None,
        commands: loom,
    },
    Step {
        name: "asan",
        tool: None,
        commands: asan,
    },
    Step {
        name: "fuzz",
        tool: Some("fuzz"),
        commands: fuzz,
    },
];

/// The steps asked for: those of `--only`, or all but those of `--skip`.
#[derive(Debug, Default)]
pub struct Selection {
    only: Vec<String>,
    skip: Vec<String>,
}

impl Selection {
    /// Reads `--only a,b` and `--skip a,b`.
    ///
    /// # Errors
    /// A message for an argument or a step that does not exist.
    pub fn parse(args: &[String]) -> Result<Selection, String> {
        let mut selection = Selection::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let list = match arg.as_str() {
                "--only" => &mut selection.only,
                "--skip" => &mut selection.skip,
                _ => {
                    return Err(format!(
                        "ci: unknown argument {arg:?}; it takes --only and --skip, with steps"
                    ));
                }
            };
            let names = args
                .next()
                .ok_or_else(|| format!("ci: {arg} needs names of steps"))?;
            for name in names.split(',') {
                if !STEPS.iter().any(|s| s.name == name) {
                    let known: Vec<&str> = STEPS.iter().map(|s| s.name).collect();
                    return Err(format!(
                        "ci: no step {name:?}; the steps are {}",
                        known.join(", ")
                    ));
                }
                list.push(name.to_owned());
            }
        }
        Ok(selection)
    }

    fn has(&self, step: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|n| n == step);
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }
}

/// Runs the steps; true when all passed.
///
/// # Errors
/// A message where no log can be written.
pub fn run(root: &Path, selection: &Selection) -> Result<bool, String> {
    let logs = root.join("target/ci");
    fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let started = Instant::now();
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    for step in STEPS.iter().filter(|s| selection.has(s.name)) {
        let begun = Instant::now();
        let log = logs.join(format!("{}.log", step.name));
        match step.run(root, &log) {
            Ok(note) => {
                println!(
                    "{:<12} ok     {:>7}  {note}",
                    step.name,
                    seconds(begun.elapsed())
                );
                passed.push(step.name);
            }
            Err(why) => {
                println!(
                    "{:<12} FAILED {:>7}  {why}",
                    step.name,
                    seconds(begun.elapsed())
                );
                failed.push(step.name);
            }
        }
    }
    let total = seconds(started.elapsed());
    if failed.is_empty() {
        println!("ci: {} steps passed in {total}", passed.len());
    } else {
        println!(
            "ci: {} steps passed, {} failed in {total}: {}",
            passed.len(),
            failed.len(),
            failed.join(", ")
        );
    }
    Ok(failed.is_empty())
}

impl Step {
    /// The last line of the log that says something, or why the step failed.
    fn run(&self, root: &Path, log: &Path) -> Result<String, String> {
        let io = |e: std::io::Error| format!("{}: {e}", log.display());
        let mut out = File::create(log).map_err(io)?;
        if let Some(tool) = self.tool.filter(|t| !installed(t)) {
            return Err(format!(
                "cargo-{tool} is missing: cargo install --locked cargo-{tool}"
            ));
        }
        for mut command in (self.commands)(root)? {
            writeln!(out, "$ {}", shown(&command)).map_err(io)?;
            let status = command
                .current_dir(root)
                .stdin(Stdio::null())
                .stdout(out.try_clone().map_err(io)?)
                .stderr(out.try_clone().map_err(io)?)
                .status()
                .map_err(|e| format!("{}: {e}", shown(&command)))?;
            if !status.success() {
                let tail = tail(&fs::read_to_string(log).map_err(io)?, LOG_TAIL);
                return Err(format!("{status}: {}\n{tail}", shown(&command)));
            }
        }
        Ok(note(&String::from_utf8_lossy(&fs::read(log).map_err(io)?)))
    }
}

fn one(command: Command) -> Result<Vec<Command>, String> {
    Ok(vec![command])
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args);
    // What runs this program must not leak into what it runs.
    command
        .env_remove("CARGO")
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("RUSTFLAGS");
    command
}

/// This program again, so that its steps are logged like all others.
fn xtask(args: &[&str]) -> Result<Command, String> {
    let mut command =
        Command::new(std::env::current_exe().map_err(|e| format!("this program: {e}"))?);
    command.args(args);
    Ok(command)
}

fn docs(_: &Path) -> Result<Vec<Command>, String> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    one(command)
}

/// The pages in a real browser; `cargo test` passes without one, this does not.
fn browser(_: &Path) -> Result<Vec<Command>, String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&paths).any(|dir| names.iter().any(|name| dir.join(name).is_file()));
    if !on_path && std::env::var_os("CHROMIUM").is_none() {
        return Err("Chromium is missing: apt-get install -y chromium".into());
    }
    one(cargo(&[
        "test",
        "-p",
        "osteon-memory",
        "-p",
        "osteon-cli",
        "--test",
        "browser",
    ]))
}

/// The loops as users run them, optimised, with each of the CPU's instruction sets: debug builds have only one variant of
/// most.
fn kernels(_: &Path) -> Result<Vec<Command>, String> {
    let with = |capability: &str| {
        let mut command = cargo(&["test", "--release", "--package", "osteon-kernels"]);
        command.env("OSTEON_CPU_CAPABILITY", capability);
        command
    };
    Ok(["default", "avx2", "avx512", "avx512_bf16"]
        .map(with)
        .into())
}

fn conformance(root: &Path) -> Result<Vec<Command>, String> {
    let mut command = xtask(&["conformance"])?;
    command.args(files_in(&root.join("conformance"), ".jsonl.gz")?);
    one(command)
}

/// A crate's tests under every interleaving are in `src/interleavings.rs`, where they see its insides, or in
/// `tests/loom_*.rs`.
fn loom(root: &Path) -> Result<Vec<Command>, String> {
    let mut commands = Vec::new();
    for name in LOOM_CRATES {
        let here = root.join("crates").join(name.trim_start_matches("osteon-"));
        let mut command = cargo(&["test", "--release", "--package", name]);
        command
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", "target/loom");
        if here.join("src/interleavings.rs").exists() {
            command.args(["--lib", "interleavings"]);
        } else {
            let tests = files_in(&here.join("tests"), ".rs")?;
            let targets = tests
                .iter()
                .filter_map(|f| f.file_stem()?.to_str())
                .filter(|target| target.starts_with("loom_"));
            let before = command.get_args().count();
            command.args(targets.flat_map(|target| ["--test", target]));
            if command.get_args().count() == before {
                return Err(format!("no tests for loom in {name}"));
            }
        }
        commands.push(command);
    }
    Ok(commands)
}

/// `RUSTC_BOOTSTRAP` lets the stable compiler take the one flag that is still unstable.
fn asan(_: &Path) -> Result<Vec<Command>, String> {
    let host = host()?;
    let mut command = cargo(&["test", "--lib", "--tests", "--target", &host]);
    for name in UNSAFE_CRATES {
        command.args(["--package", name]);
    }
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        // Tests ask for more than there is, to see the error.
        .env("ASAN_OPTIONS", "allocator_may_return_null=1")
        .env("CARGO_TARGET_DIR", "target/asan");
    one(command)
}

fn fuzz(root: &Path) -> Result<Vec<Command>, String> {
    let targets = files_in(&root.join("fuzz/fuzz_targets"), ".rs")?;
    if targets.is_empty() {
        return Err("no targets in fuzz/fuzz_targets".to_owned());
    }
    Ok(targets
        .iter()
        .filter_map(|f| f.file_stem()?.to_str())
        .map(|target| {
            let mut command = cargo(&["fuzz", "run", target, "--"]);
            command
                .arg(format!("-max_total_time={FUZZ_SECONDS}"))
                .env("RUSTC_BOOTSTRAP", "1");
            command
        })
        .collect())
}

fn host() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|e| format!("rustc -vV: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .find_map(|l| l.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn installed(tool: &str) -> bool {
    cargo(&[tool, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn files_in(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.to_str().is_some_and(|p| p.ends_with(ending)))
        .collect();
    files.sort();
    Ok(files)
}

fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let mut words: Vec<String> = variables
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// What a log says in one line: the tests that ran, or its last line where nothing was tested.
fn note(log: &str) -> String {
    let count = |word: &str| -> u64 {
        log.lines()
            .filter_map(|l| l.trim().strip_prefix("test result:"))
            .flat_map(|l| l.split(['.', ';']))
            .filter_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
            .sum()
    };
    if log.contains("test result:") {
        return format!(
            "{} tests passed, {} ignored",
            count("passed"),
            count("ignored")
        );
    }
    let said = |l: &&str| !l.trim().is_empty() && !l.starts_with("$ ");
    log.lines()
        .rev()
        .find(said)
        .map_or(String::new(), |l| l.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn steps_are_selected_by_name() {
        let only = Selection::parse(&words("--only fmt,tidy")).unwrap();
        assert!(only.has("fmt") && only.has("tidy") && !only.has("asan"));
        let skip = Selection::parse(&words("--skip nextest,doctest")).unwrap();
        assert!(skip.has("fmt") && !skip.has("nextest") && !skip.has("doctest"));
        assert!(Selection::parse(&[]).unwrap().has("fuzz"));
    }

    #[test]
    fn a_step_that_does_not_exist_is_named() {
        let said = Selection::parse(&words("--only fmt,nope")).unwrap_err();
        assert!(
            said.contains("\"nope\"") && said.contains("clippy"),
            "{said}"
        );
        assert!(Selection::parse(&words("--only")).is_err());
        assert!(Selection::parse(&words("nope")).is_err());
    }

    #[test]
    fn a_log_is_summed_up_in_one_line() {
        let log = "$ cargo test\nrunning 3 tests\n\
                   test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
                   test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        assert_eq!(note(log), "43 tests passed, 1 ignored");
        assert_eq!(note("$ a\nb\nlast\n\n"), "last");
        assert_eq!(note(""), "");
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
    }

    #[test]
    fn a_failed_command_and_a_missing_tool_fail_the_step() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let failing = Step {
            name: "x",
            tool: None,
            commands: |_| one(cargo(&["no-such-subcommand"])),
        };
        let said = failing.run(dir.path(), &log).unwrap_err();
        assert!(said.contains("$ cargo no-such-subcommand"), "{said}");
        let missing = Step {
            name: "x",
            tool: Some("no-such-tool"),
            commands: |_| Ok(Vec::new()),
        };
        let said = missing.run(dir.path(), &log).unwrap_err();
        assert!(
            said.contains("cargo install --locked cargo-no-such-tool"),
            "{said}"
        );
    }
}
