//! Interleaved runs of this program and the peers' script, and what they joined say.

use std::collections::BTreeMap;
use std::path::Path;
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
                    for record in one(options, peers, peer, group, threads, &[])? {
                        whole &= peer != "osteon" || record.error.is_none();
                        let of_case = rounds.entry(record.key()).or_default();
                        of_case.entry(record.peer.clone()).or_default().push(record);
                    }
                }
            }
        }
    }
    let mut joined: Joined = rounds
        .into_iter()
        .map(|(key, of_peers)| {
            let middles = of_peers
                .into_iter()
                .filter_map(|(peer, list)| Some((peer, middle(list)?)));
            (key, middles.collect())
        })
        .collect();
    let most = options.threads.iter().copied().max().unwrap_or(1);
    for &group in &options.groups {
        println!("group {group}, {most} threads, beside a busy neighbour");
        for record in one(options, peers, "osteon", group, most, &["--neighbour"])? {
            let of_case = joined.get_mut(&record.key());
            if let Some(own) = of_case.and_then(|peers| peers.get_mut("osteon")) {
                own.neighbour = record.neighbour;
            }
        }
    }
    for &threads in &options.threads {
        let limits =
            limits::measure(threads, peers.rounds).map_err(|e| format!("bench: limits: {e}"))?;
        let record = limits.to_record(threads);
        joined.insert(record.key(), [(record.peer.clone(), record)].into());
    }
    if let Some(path) = &options.json {
        let records = joined.values().flat_map(|of_case| of_case.values());
        let lines: String = records.map(|r| r.to_json() + "\n").collect();
        std::fs::write(path, lines).map_err(|e| format!("bench: {}: {e}", path.display()))?;
    }
    write(joined, &peers.report)?;
    Ok(whole)
}

/// The page from the figures that a comparison wrote with `--json`.
///
/// # Errors
/// A message for a file that cannot be read or written.
pub fn again(figures: &Path, report: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(figures)
        .map_err(|e| format!("bench: {}: {e}", figures.display()))?;
    let mut joined = Joined::new();
    for (n, line) in text.lines().enumerate() {
        let record: Record = serde_json::from_str(line)
            .map_err(|e| format!("bench: {}: line {}: {e}", figures.display(), n + 1))?;
        let of_case = joined.entry(record.key()).or_default();
        of_case.insert(record.peer.clone(), record);
    }
    write(joined, report).map(|()| true)
}

/// Writes the page, and says where it is.
fn write(mut joined: Joined, path: &Path) -> Result<(), String> {
    let mut measured = report::ByThreads::new();
    joined.retain(|key, peers| {
        let limits = peers.get("limits").and_then(|r| r.limits);
        measured.extend(limits.map(|limits| (key.3, limits)));
        limits.is_none()
    });
    let text = report::text(&joined, &measured);
    std::fs::write(path, text).map_err(|e| format!("bench: {}: {e}", path.display()))?;
    println!("{}", report::summary(&joined));
    println!("written to {}", path.display());
    Ok(())
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
    more: &[&str],
) -> Result<Vec<Record>, String> {
    let said = |e: &dyn std::fmt::Display| format!("bench: {peer}: {e}");
    let group = group.to_string();
    let mut command = if peer == "osteon" {
        let program = std::env::current_exe().map_err(|e| said(&e))?;
        let mut command = Command::new(program);
        command.args(["bench", "--json", "/dev/stderr"]).args(more);
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
