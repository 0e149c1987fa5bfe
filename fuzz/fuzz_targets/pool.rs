//! Any sequence of calls of the pool, beside the model that the property tests use.

#![no_main]

#[path = "../../crates/memory/tests/twin/mod.rs"]
mod twin;

use libfuzzer_sys::fuzz_target;
use twin::{Op, Twin};

const KIB: usize = 1 << 10;

/// One call: its first byte says which, the next two bring a number.
fn op(bytes: &[u8; 3]) -> Op {
    let [what, a, b] = *bytes;
    let n = usize::from(u16::from_le_bytes([a, b]));
    let limit = n.checked_sub(1).map(|n| n * 64);
    match what % 16 {
        0..=2 => Op::Alloc(n % (2 * KIB)),
        3 => Op::Alloc(n),
        4..=5 => Op::Alloc(n * 16),
        // A few sizes only, so that classes and chunks fill up and empty again.
        6..=7 => Op::Alloc(
            [
                1,
                64,
                8000,
                32 * KIB,
                32 * KIB + 1,
                64 * KIB,
                200_000,
                usize::MAX,
            ][n % 8],
        ),
        8..=11 => Op::Free(n),
        12 => Op::EmptyCache,
        13 => Op::SetIdleLimit(limit),
        14 => Op::SetLimit(limit),
        _ if a % 8 == 0 => Op::ResetPeak,
        _ => Op::FailAfter(if a % 2 == 0 {
            usize::MAX
        } else {
            usize::from(b % 4)
        }),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, calls)) = data.split_first() else {
        return;
    };
    let mut twin = Twin::new(4 << 20, first % 2 == 0);
    calls
        .as_chunks()
        .0
        .iter()
        .take(300)
        .for_each(|bytes| twin.step(&op(bytes)));
    twin.finish();
});
