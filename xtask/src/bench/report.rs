//! The table of a comparison, as a page for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Record;
use super::compare::Joined;
use super::goals;
use super::limits::Limits;

/// Groups that compare languages as well as engines.
pub const APART: [&str; 2] = ["A", "I"];

/// The limits with each number of threads.
pub type ByThreads = BTreeMap<usize, Limits>;

/// The page.
pub fn text(joined: &Joined, limits: &ByThreads) -> String {
    let mut out = format!(
        "# Speed\n\n\
         Written by `cargo xtask bench --compare PYTHON`: interleaved rounds of each program, each cell the middle one of the rounds'\n\
         medians. Machine: {}. PyTorch eager and NumPy run from the same cores with the same number of threads.\n\
         \"×\" is PyTorch's time divided by osteon's: above 1, osteon is faster. The fraction is of the machine's limit, measured in the\n\
         same run: streaming copy, triad or read for what moves bytes, multiply-adds for products. Such machines are\n\
         shared: the same program may be a third slower an hour later, so ratios near 1 say little.\n\n",
        machine()
    );
    let _ = writeln!(
        out,
        "| threads | rounds | copy GB/s | triad GB/s | read GB/s | f32 GFLOP/s |\n|---|---|---|---|---|---|"
    );
    for (threads, l) in limits {
        let _ = writeln!(
            out,
            "| {threads} | {} | {:.1} | {:.1} | {:.1} | {:.0} |",
            l.rounds, l.copy, l.triad, l.read, l.flops
        );
    }
    let _ = writeln!(out, "\n{}", summary(joined));
    let _ = writeln!(out, "\n## Goals\n\n{}", goals::text(joined, limits));
    let mut groups: Vec<&String> = joined.keys().map(|(group, ..)| group).collect();
    groups.sort();
    groups.dedup();
    for group in groups {
        let _ = writeln!(out, "\n## {group}: {}\n", title(group));
        let _ = writeln!(
            out,
            "| case | sizes | threads | osteon | PyTorch | NumPy | × | of the limit |\n|---|---|---|---|---|---|---|---|"
        );
        for ((of, case, params, threads), peers) in joined {
            if of == group
                && let Some(own) = peers.get("osteon")
            {
                let limit = limits.get(threads).copied().unwrap_or_default();
                let _ = writeln!(
                    out,
                    "| {case} | {params} | {threads} | {} | {} | {} | {} | {} |",
                    time(Some(own)),
                    time(peers.get("torch")),
                    time(peers.get("numpy")),
                    ratio(peers).map_or("–".into(), |r| format!("{r:.2}")),
                    fraction(own, limit).map_or("–".into(), |f| format!("{:.0} %", 100.0 * f)),
                );
            }
        }
    }
    out
}

/// How many cases are faster, by how much on the whole, and which are not.
pub fn summary(joined: &Joined) -> String {
    let mut out = String::new();
    let mut threads: Vec<usize> = joined.keys().map(|key| key.3).collect();
    threads.sort_unstable();
    threads.dedup();
    for threads in threads.into_iter().rev() {
        let of = joined
            .iter()
            .filter(|(key, _)| key.3 == threads && !APART.contains(&key.0.as_str()));
        let ratios: Vec<(String, f64)> = of
            .filter_map(|(key, peers)| {
                Some((format!("{} {} ({})", key.0, key.1, key.2), ratio(peers)?))
            })
            .collect();
        if ratios.is_empty() {
            continue;
        }
        let mean = (ratios.iter().map(|(_, r)| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let slower: Vec<String> = ratios
            .iter()
            .filter(|(_, r)| *r < 0.95)
            .map(|(name, r)| format!("{name} {r:.2}"))
            .collect();
        let _ = writeln!(
            out,
            "{threads} threads: geometric mean {mean:.2} times PyTorch's speed over {} cases (groups A and I apart); slower in {}{}{}",
            ratios.len(),
            slower.len(),
            if slower.is_empty() { "" } else { ": " },
            slower.join("; "),
        );
    }
    out.trim_end().to_owned()
}

fn ratio(peers: &BTreeMap<String, Record>) -> Option<f64> {
    let own = peers.get("osteon").filter(|r| r.median_ns > 0.0)?;
    let torch = peers.get("torch").filter(|r| r.median_ns > 0.0)?;
    Some(torch.median_ns / own.median_ns)
}

fn fraction(record: &Record, limit: Limits) -> Option<f64> {
    if record.median_ns <= 0.0 {
        return None;
    }
    let bytes = record.bytes / record.median_ns;
    let share = match record.group.as_str() {
        // What fits into a cache has another limit.
        "B" | "C" | "D" if record.bytes < 64e6 => return None,
        "B" => bytes / limit.copy,
        "C" => bytes / limit.triad,
        "D" => bytes / limit.read,
        "E" if record.bytes > 0.0 => bytes / limit.read,
        "E" | "G" | "H" if record.flops > 0.0 => record.flops / record.median_ns / limit.flops,
        _ => return None,
    };
    share.is_finite().then_some(share)
}

fn time(record: Option<&Record>) -> String {
    match record {
        Some(r) if r.error.is_some() => "failed".into(),
        Some(r) if r.median_ns >= 1e6 => format!("{:.2} ms", r.median_ns / 1e6),
        Some(r) if r.median_ns >= 1e3 => format!("{:.1} µs", r.median_ns / 1e3),
        Some(r) if r.median_ns > 0.0 => format!("{:.0} ns", r.median_ns),
        _ => "–".into(),
    }
}

fn title(group: &str) -> &'static str {
    match group {
        "A" => "views, made and dropped",
        "B" => "strided copies",
        "C" => "element by element",
        "D" => "reductions, softmax, normalisation",
        "E" => "matrix products",
        "F" => "new tensors",
        "G" => "a training step",
        "H" => "a sentence encoder",
        _ => "chains of tiny operations",
    }
}

/// The processor and the number of its cores.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| {
        l.strip_prefix("model name")?
            .split_once(':')
            .map(|(_, m)| m.trim())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}
