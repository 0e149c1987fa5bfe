//! Interleaved runs of this program and the peers' script, and what they joined say.

use std::collections::BTreeMap;
use std::process::Command;

use super::{Options, Peers, Record, limits, report};

/// The figures of one case: the medians of each peer's rounds.
pub type Joined = BTreeMap<(String, String, String, usize), BTreeMap<String, Record>>;

/// Runs all rounds, writes the table, and says where it is; false when a case of our own failed.
///
/// # Errors
/// A message for a program that cannot be run, or a table that cannot be written.
pub fn run(options: &Options, peers: &Peers) -> Result<bool, String> {
    let mut rounds: BTreeMap<_, BTreeMap<String, Vec<Record>>> = BTreeMap::new();
    let mut whole = true;
    for round in 0..peers.rounds {
        for &group in &options.groups {
            for &threads in &options.threads {
                for peer in ["osteon", "torch", "numpy"] {
                    println!(
                        "round {} of {}: group {group}, {threads} threads, {peer}",
                        round + 1,
                        peers.rounds
                    );
                    for record in one(options, peers, peer, group, threads)? {
                        whole &= peer != "osteon" || record.error.is_none();
                        let of_case = rounds.entry(record.key()).or_default();
                        of_case.entry(record.peer.clone()).or_default().push(record);
                    }
                }
            }
        }
    }
    let joined: Joined = rounds
        .into_iter()
        .map(|(key, of_peers)| {
            (
                key,
                of_peers
                    .into_iter()
                    .filter_map(|(peer, list)| Some((peer, middle(list)?)))
                    .collect(),
            )
        })
        .collect();
    let mut measured = BTreeMap::new();
    for &threads in &options.threads {
        measured.insert(
            threads,
            limits::measure(threads).map_err(|e| format!("bench: limits: {e}"))?,
        );
    }
    let text = report::text(&joined, &measured, peers.rounds);
    std::fs::write(&peers.report, text)
        .map_err(|e| format!("bench: {}: {e}", peers.report.display()))?;
    println!("{}", report::summary(&joined));
    println!("written to {}", peers.report.display());
    if let Some(path) = &options.json {
        let records = joined.values().flat_map(|of_case| of_case.values());
        let lines: String = records.map(|r| r.to_json() + "\n").collect();
        std::fs::write(path, lines).map_err(|e| format!("bench: {}: {e}", path.display()))?;
    }
    Ok(whole)
}

/// The round whose median is the middle one.
fn middle(mut rounds: Vec<Record>) -> Option<Record> {
    rounds.sort_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
    let at = rounds.len() / 2;
    (at < rounds.len()).then(|| rounds.swap_remove(at))
}

/// One peer's run of one group, in a process of its own.
fn one(
    options: &Options,
    peers: &Peers,
    peer: &str,
    group: char,
    threads: usize,
) -> Result<Vec<Record>, String> {
    let said = |e: &dyn std::fmt::Display| format!("bench: {peer}: {e}");
    let group = group.to_string();
    let mut command = if peer == "osteon" {
        let program = std::env::current_exe().map_err(|e| said(&e))?;
        let mut command = Command::new(program);
        command.args(["bench", "--json", "/dev/stderr"]);
        command
    } else {
        let mut command = Command::new(&peers.python);
        command.arg(&peers.script).args(["--peer", peer]);
        command
    };
    command.args(["--group", &group, "--threads", &threads.to_string()]);
    if let Some(filter) = &options.filter {
        command.args(["--filter", filter]);
    }
    command.env("OMP_NUM_THREADS", threads.to_string());
    let output = command.output().map_err(|e| said(&e))?;
    let text = if peer == "osteon" {
        &output.stderr
    } else {
        &output.stdout
    };
    let text = String::from_utf8_lossy(text);
    if !output.status.success() && peer == "osteon" && !text.contains("\"peer\"") {
        return Err(said(&format!("{}: {text}", output.status)));
    }
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}
