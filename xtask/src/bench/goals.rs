//! What the engine is meant to reach, held against what was measured.

use std::fmt::Write as _;

use super::compare::Joined;
use super::limits::Limits;
use super::{Record, report};

/// How a figure is held against a goal; each says by what share of it the goal is reached, 1 and more being met.
type Reached = fn(&Case<'_>) -> Option<f64>;

/// One measured case, and all that it is compared with.
struct Case<'a> {
    own: &'a Record,
    torch: Option<&'a Record>,
    limits: Limits,
    /// The same case on one thread.
    alone: Option<&'a Record>,
}

struct Goal {
    name: &'static str,
    threads: usize,
    reached: Reached,
    /// Why it is missed where it is.
    why: &'static str,
}

const GOALS: &[Goal] = &[
    Goal {
        name: "no case slower than PyTorch (5 %)",
        threads: 2,
        reached: |c| Some(c.torch?.median_ns / c.own.median_ns / 0.95),
        why: "what is bound by memory alone is level with PyTorch, and a round decides; results of some 12 to 16 MB fit the shared cache or not, \
              as its other users leave room; rows of 100 bytes pay for a call each; products of `bf16` take 3 to 10 % longer, in some rounds half as \
              long again.",
    },
    Goal {
        name: "strided copies of `f32` and `f64`: HPTT's share of the copy limit",
        threads: 2,
        reached: |c| Some(c.rate() / (hptt(c.own)? * c.limits.copy / COPY_LIMIT)),
        why: "the matrices of these permutations are small (32 × 40, 64 × 56 × 56), and their edges fill no whole line.",
    },
    Goal {
        name: "strided copies of `u8` and `bf16`: half of that",
        threads: 2,
        reached: |c| {
            let narrow = c.own.params.starts_with("u8") || c.own.params.starts_with("bf16");
            let like = Record {
                params: format!("f32 {}", c.own.params.split_once(' ')?.1),
                ..c.own.clone()
            };
            Some(c.rate() / (0.5 * hptt(&like).filter(|_| narrow)? * c.limits.copy / COPY_LIMIT))
        },
        why: "lines of 32 or 40 elements are less than one vector of bytes.",
    },
    Goal {
        name: "16M elements, fresh: 80 % of the triad limit; exp, gelu, sigmoid 65 %; transposed + contiguous 50 %",
        threads: 2,
        reached: |c| {
            let r = c.own;
            if r.group != "C"
                || r.params != "16M"
                || r.case.contains("into")
                || r.case.contains("inplace")
            {
                return None;
            }
            let share = match r.case.as_str() {
                "exp" | "gelu_erf" | "gelu_tanh" | "sigmoid" => 0.65,
                "add transposed+contig" => 0.5,
                _ => 0.8,
            };
            // Two operations write and read what is between them.
            let bytes = if r.case == "a*b+c" { 1.5 } else { 1.0 } * r.bytes;
            Some(bytes / r.median_ns / c.limits.triad / share)
        },
        why: "gelu is bound by arithmetic; results of several operands go past the caches in short pieces, which is slower than the limit's own \
              loop; transposed operands go through tiles in the second-level cache.",
    },
    Goal {
        name: "reductions, softmax and layer_norm of 4096x4096: 80 % of the read limit",
        threads: 2,
        reached: |c| {
            let large = c.own.group == "D" && c.own.bytes > 40e6;
            large.then(|| c.rate() / c.limits.read / 0.8)
        },
        why: "softmax along dim 0 reads memory twice and takes two exponentials an element.",
    },
    Goal {
        name: "`f32` products of 512 and 1024, any strides: 90 % of the multiply-add peak",
        threads: 2,
        reached: |c| {
            let r = c.own;
            let square = r.case.starts_with("matmul") && (r.params == "512" || r.params == "1024");
            (square || r.case.starts_with("A[:"))
                .then(|| r.flops / r.median_ns / c.limits.flops / 0.9)
        },
        why: "packing both operands takes 8 to 10 % of the time.",
    },
    Goal {
        name: "vector times matrix: the read limit (95 %)",
        threads: 2,
        reached: |c| {
            c.own
                .case
                .starts_with("vec-mat")
                .then(|| c.rate() / c.limits.read / 0.95)
        },
        why: "sums of columns are loaded and stored once for every eight rows.",
    },
    Goal {
        name: "batches of small matrices and attention views: 1.5 times PyTorch",
        threads: 2,
        reached: |c| times_torch(c, &["batched"], 1.5),
        why: "the products run at nine tenths of the multiply-add peak, and PyTorch's at six to seven tenths.",
    },
    Goal {
        name: "`bf16` products: PyTorch's speed",
        threads: 2,
        reached: |c| {
            let bf16 = c.own.case == "matmul" && c.own.params.starts_with("bf16");
            bf16.then_some(c.torch?.median_ns / c.own.median_ns)
        },
        why: "the right panel is packed in pairs, which is not free, and the tile has the shape that suits `float32`.",
    },
    Goal {
        name: "a view: 60 ns",
        threads: 1,
        // Two views are made where the case says so.
        reached: |c| {
            let views = 1.0 + f64::from(c.own.case.contains('+'));
            (c.own.group == "A").then(|| views * 60.0 / c.own.median_ns)
        },
        why: "a view is in the registry and notes its operation, line and base; what is left are atomic exchanges of some 5 ns each.",
    },
    Goal {
        name: "`empty`: 100 ns of 1 KiB, 1 µs of 64 MiB",
        threads: 1,
        reached: |c| match (c.own.case.as_str(), c.own.params.as_str()) {
            ("empty", "1KiB") => Some(100.0 / c.own.median_ns),
            ("empty", "64MiB") => Some(1000.0 / c.own.median_ns),
            _ => None,
        },
        why: "a storage is counted, recorded and registered with its line; what is left is eleven atomic exchanges.",
    },
    Goal {
        name: "a chained add of 16 floats: 150 ns, with history 250 ns, forward and backward 700 ns",
        threads: 1,
        reached: |c| {
            let each = match c.own.case.as_str() {
                "chain add fwd (nograd)" => 150.0,
                "chain add fwd (grad)" => 250.0,
                "chain add fwd+bwd" => 700.0,
                _ => return None,
            };
            Some(each * 1000.0 / c.own.median_ns)
        },
        why: "of an addition without history a third is the storage of its result (see `empty`); with history a node is made, linked, and dropped.",
    },
    Goal {
        name: "the training step: 1.2 times PyTorch",
        threads: 2,
        reached: |c| times_torch(c, &["mlp step"], 1.2),
        why: "products are three quarters of the step, and take from 2 to 4 ms according to how the shared cache is used by others.",
    },
    Goal {
        name: "two threads: 1.8 times one where arithmetic is the limit",
        threads: 2,
        reached: |c| {
            let r = c.own;
            let square = r.case.starts_with("matmul") && r.flops >= 2e8;
            (square || r.case == "mlp step")
                .then(|| Some(c.alone?.median_ns / r.median_ns / 1.8))?
        },
        why: "memory and the shared cache serve both threads.",
    },
    Goal {
        name: "beside a busy neighbour on one of two cores: at most 1.6 times the time",
        threads: 2,
        reached: |c| Some(1.6 / c.own.neighbour?),
        why: "a thread that the system puts aside for its neighbour keeps its chunk until the one that waits lends it its core, and a third of two \
              cores is the neighbour's; what is bound by memory shares its bandwidth too.",
    },
    Goal {
        name: "memory: reserved and resident bytes within 10 % + 4 MiB of the live ones",
        threads: 2,
        reached: |c| {
            let r = c.own;
            let of_group = ["B", "C", "G"].contains(&r.group.as_str());
            let most = 1.1 * r.peak_live? as f64 + (4 << 20) as f64;
            let used = r.peak_reserved?.max(r.peak_rss?);
            of_group.then(|| most / used as f64)
        },
        why: "the pool takes memory from the system in blocks of 2 MiB and more.",
    },
];

/// Streaming copies on the machine where HPTT was measured, GB/s.
const COPY_LIMIT: f64 = 65.0;

/// What HPTT (a library of tensor transposes) reached there on two threads, GB/s: `f32` and `f64`.
const HPTT: [(&str, [f64; 2]); 8] = [
    ("T 4096x4096", [19.0, 20.8]),
    ("T 8192x2048", [18.6, 21.4]),
    ("T 1000x1000", [21.3, 54.2]),
    ("heads 0213 [32,128,12,64]", [48.8, 35.7]),
    ("NCHW->NHWC [32,64,56,56]", [30.3, 20.3]),
    ("NHWC->NCHW [32,56,56,64]", [31.5, 29.5]),
    ("perm 210 [256,256,256]", [18.2, 15.1]),
    ("perm 3102 [64,48,32,40]", [53.8, 29.6]),
];

fn hptt(record: &Record) -> Option<f64> {
    let which = ["f32 ", "f64 "]
        .iter()
        .position(|short| record.group == "B" && record.params.starts_with(short))?;
    let (_, rates) = HPTT.iter().find(|(case, _)| *case == record.case)?;
    Some(rates[which])
}

fn times_torch(case: &Case<'_>, names: &[&str], times: f64) -> Option<f64> {
    let named = names.iter().any(|n| case.own.case.starts_with(n));
    let torch = case.torch.filter(|_| named)?;
    Some(torch.median_ns / case.own.median_ns / times)
}

impl Case<'_> {
    /// Bytes a nanosecond.
    fn rate(&self) -> f64 {
        self.own.bytes / self.own.median_ns
    }
}

/// The goals as a table, and why those that are missed are.
pub fn text(joined: &Joined, limits: &report::ByThreads) -> String {
    let mut out = String::from(
        "| goal | threads | cases | met | missed (reached of the goal) |\n|---|---|---|---|---|\n",
    );
    let mut whys = String::new();
    for goal in GOALS {
        let (mut count, mut missed) = (0, Vec::new());
        for ((group, name, params, threads), peers) in joined {
            let (true, Some(own)) = (*threads == goal.threads, peers.get("osteon")) else {
                continue;
            };
            if own.median_ns <= 0.0 {
                continue;
            }
            let one = (group.clone(), name.clone(), params.clone(), 1);
            let case = Case {
                own,
                torch: peers.get("torch").filter(|r| r.median_ns > 0.0),
                limits: limits.get(threads).copied().unwrap_or_default(),
                alone: joined.get(&one).and_then(|peers| peers.get("osteon")),
            };
            // Languages are compared there as well as engines.
            let apart = goal.name.contains("PyTorch") && report::APART.contains(&group.as_str());
            if let Some(reached) = (goal.reached)(&case).filter(|r| r.is_finite() && !apart) {
                count += 1;
                if reached < 1.0 {
                    missed.push(format!(
                        "{group} {name} ({params}) {:.0} %",
                        100.0 * reached
                    ));
                }
            }
        }
        let met = count - missed.len();
        let list = if missed.is_empty() {
            "–".into()
        } else {
            missed.join("; ")
        };
        let _ = writeln!(
            out,
            "| {} | {} | {count} | {met} | {list} |",
            goal.name, goal.threads
        );
        if !missed.is_empty() && !goal.why.is_empty() {
            let _ = writeln!(whys, "- **{}**: {}", goal.name, goal.why);
        }
    }
    if !whys.is_empty() {
        let _ = write!(out, "\nWhy goals are missed:\n\n{whys}");
    }
    out
}
