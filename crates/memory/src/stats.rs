//! The statistics of a pool, under the names of `torch.cuda.memory_stats()`.
//!
//! They are listed once, in the call of `statistics!` below; the struct, the pairs, the JSON and
//! the table derive from that list. What PyTorch counts and a pool on the CPU cannot have
//! (streams to wait for, oversize blocks that are never split) is left out rather than shown as 0.

use std::fmt;

use crate::block::PoolKind;

/// One figure of one part of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Now.
    pub current: u64,
    /// The highest `current` since the start or [`Pool::reset_peak`](crate::Pool::reset_peak).
    pub peak: u64,
    /// All that was ever added, since the start or
    /// [`Pool::reset_accumulated`](crate::Pool::reset_accumulated).
    pub allocated: u64,
    /// All that was ever taken away, likewise.
    pub freed: u64,
}

/// One figure of the whole pool and of its halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatByPool {
    /// The whole pool.
    pub all: Stat,
    /// Blocks of more than [`SMALL_MAX`](crate::SMALL_MAX) bytes.
    pub large_pool: Stat,
    /// Blocks of up to [`SMALL_MAX`](crate::SMALL_MAX) bytes.
    pub small_pool: Stat,
}

impl StatByPool {
    fn parts(&self) -> [(&'static str, &'static str, Stat); 3] {
        [
            ("all", "", self.all),
            ("large_pool", "from large pool", self.large_pool),
            ("small_pool", "from small pool", self.small_pool),
        ]
    }
}

/// The running form of a figure, made to be cheap to update: adding is one addition. A peak can
/// only be passed just before something is taken away, so that is when it is looked at; what was
/// added in all follows from the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    current: [u64; 2],
    freed: [u64; 2],
    /// `current` when the totals were last zeroed.
    base: [u64; 2],
    peak: [u64; 2],
    peak_all: u64,
}

impl Metric {
    const ZERO: Metric = Metric {
        current: [0; 2],
        freed: [0; 2],
        base: [0; 2],
        peak: [0; 2],
        peak_all: 0,
    };

    #[inline]
    pub(crate) fn add(&mut self, kind: PoolKind, n: usize) {
        self.current[kind as usize] += n as u64;
    }

    #[inline]
    pub(crate) fn sub(&mut self, kind: PoolKind, n: usize) {
        let k = kind as usize;
        self.peak[k] = self.peak[k].max(self.current[k]);
        self.peak_all = self.peak_all.max(self.current[0] + self.current[1]);
        self.current[k] -= n as u64;
        self.freed[k] += n as u64;
    }

    #[inline]
    pub(crate) fn of(&self, kind: PoolKind) -> usize {
        self.current[kind as usize] as usize
    }

    #[inline]
    pub(crate) fn all(&self) -> usize {
        (self.current[0] + self.current[1]) as usize
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
        self.peak_all = self.current[0] + self.current[1];
    }

    fn reset_accumulated(&mut self) {
        self.base = self.current;
        self.freed = [0; 2];
    }

    fn snapshot(&self) -> StatByPool {
        let [small, large] = PoolKind::BOTH.map(|kind| {
            let k = kind as usize;
            Stat {
                current: self.current[k],
                peak: self.peak[k].max(self.current[k]),
                allocated: self.current[k] + self.freed[k] - self.base[k],
                freed: self.freed[k],
            }
        });
        let current = small.current + large.current;
        StatByPool {
            all: Stat {
                current,
                peak: self.peak_all.max(current),
                allocated: small.allocated + large.allocated,
                freed: small.freed + large.freed,
            },
            large_pool: large,
            small_pool: small,
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Count,
}

/// The list. A row is `name "label" unit`; `also` adds a second name of the same figure.
macro_rules! statistics {
    (
        metrics { $($(#[doc = $doc:literal])+ $name:ident $label:literal $unit:ident
            $(also $(#[doc = $also_doc:literal])+ $also:ident $also_label:literal)?;)+ }
        counters { $($(#[doc = $counter_doc:literal])+ $counter:ident $counter_label:literal;)+ }
    ) => {
        /// The statistics of a pool at one moment, named as in `torch.cuda.memory_stats()`.
        ///
        /// `Display` prints a table like `torch.cuda.memory_summary()`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct MemoryStats {
            $($(#[doc = $doc])+ pub $name: StatByPool,
              $($(#[doc = $also_doc])+ pub $also: StatByPool,)?)+
            $($(#[doc = $counter_doc])+ pub $counter: u64,)+
        }

        impl MemoryStats {
            fn metrics(&self) -> impl Iterator<Item = (&'static str, &'static str, Unit, StatByPool)> {
                [$((stringify!($name), $label, Unit::$unit, self.$name),
                   $((stringify!($also), $also_label, Unit::$unit, self.$also),)?)+].into_iter()
            }

            fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($counter), $counter_label, self.$counter)),+].into_iter()
            }
        }

        /// The running form of [`MemoryStats`].
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Tally {
            $(pub(crate) $name: Metric,)+
            $(pub(crate) $counter: u64,)+
        }

        impl Tally {
            pub(crate) const ZERO: Tally = Tally { $($name: Metric::ZERO,)+ $($counter: 0,)+ };

            pub(crate) fn snapshot(&self) -> MemoryStats {
                MemoryStats {
                    $($name: self.$name.snapshot(), $($also: self.$name.snapshot(),)?)+
                    $($counter: self.$counter,)+
                }
            }

            pub(crate) fn reset_peak(&mut self) {
                $(self.$name.reset_peak();)+
            }

            pub(crate) fn reset_accumulated(&mut self) {
                $(self.$name.reset_accumulated();)+
                $(self.$counter = 0;)+
            }
        }
    };
}

statistics! {
    metrics {
        /// Bytes of the blocks in use, rounded as the pool rounds them.
        allocated_bytes "Allocated memory" Bytes
            also
            /// The same as `allocated_bytes`: a CPU block is free as soon as it is given back.
            active_bytes "Active memory";
        /// Bytes of the blocks in use as they were asked for. The difference to
        /// `allocated_bytes` is lost to rounding.
        requested_bytes "Requested memory" Bytes;
        /// Bytes mapped from the system.
        reserved_bytes "Reserved memory" Bytes;
        /// Free bytes that cannot be given back to the system as things are, because a live block
        /// is too near (or, for one empty run a size class, because small blocks come and go).
        inactive_split_bytes "Non-releasable memory" Bytes;
        /// Blocks in use.
        allocation "Allocations" Count
            also
            /// The same as `allocation`.
            active "Active allocs";
        /// Contiguous ranges mapped from the system.
        segment "Reserved segments" Count;
        /// Free pieces, and runs of small blocks with free slots, that make up
        /// `inactive_split_bytes`.
        inactive_split "Non-releasable pieces" Count;
    }
    counters {
        /// Allocations that failed.
        num_ooms "Out of memory";
        /// Allocations that had to give idle memory back before they could be served.
        num_alloc_retries "Retries after release";
        /// Times that memory was mapped from the system.
        num_device_alloc "Mapped from system";
        /// Times that memory was given back to the system.
        num_device_free "Given back to system";
    }
}

impl MemoryStats {
    /// All figures as (`"allocated_bytes.all.current"`, value) pairs, as in
    /// `torch.cuda.memory_stats()`.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let metrics = self.metrics().flat_map(|(name, _, _, stat)| {
            stat.parts().into_iter().flat_map(move |(pool, _, stat)| {
                let Stat {
                    current,
                    peak,
                    allocated,
                    freed,
                } = stat;
                [
                    ("current", current),
                    ("peak", peak),
                    ("allocated", allocated),
                    ("freed", freed),
                ]
                .map(|(what, value)| (format!("{name}.{pool}.{what}"), value))
            })
        });
        metrics.chain(
            self.counters()
                .map(|(name, _, value)| (name.to_owned(), value)),
        )
    }

    /// All figures as one flat JSON object with the keys of [`iter`](Self::iter).
    pub fn to_json(&self) -> serde_json::Value {
        self.iter()
            .map(|(name, value)| (name, serde_json::Value::from(value)))
            .collect()
    }
}

/// 1536 → "1536 B"; 10 MiB → "10240 KiB": at most six digits before the unit, as PyTorch does.
fn short(value: u64, unit: Unit) -> String {
    let (step, units): (u64, &[&str]) = match unit {
        Unit::Bytes => (1024, &["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        Unit::Count => (1000, &["   ", "K  ", "M  ", "G  "]),
    };
    let (mut value, mut at) = (value, 0);
    while value >= 100_000 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    format!("{value} {}", units[at])
}

impl fmt::Display for MemoryStats {
    /// A table 77 characters wide (75 and two bars), ready to print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thick, thin) = ("=".repeat(75), "-".repeat(75));
        writeln!(
            f,
            "|{thick}|\n|{:^75}|\n|{thin}|",
            "CPU memory of the caching allocator"
        )?;
        let counters: Vec<String> = self
            .counters()
            .map(|(_, label, n)| format!("{label}: {n}"))
            .collect();
        for pair in counters.chunks(2) {
            let right = pair.get(1).map_or("", String::as_str);
            writeln!(f, "|{:^37}|{right:^37}|", pair[0])?;
        }
        writeln!(f, "|{thick}|")?;
        writeln!(
            f,
            "|{:^23}|{:^12}|{:^12}|{:^12}|{:^12}|",
            "", "now", "peak", "all added", "all freed"
        )?;
        for (_, label, unit, stat) in self.metrics() {
            writeln!(f, "|{thin}|")?;
            for (pool, part, stat) in stat.parts() {
                if pool == "all" {
                    write!(f, "| {label:<22}|")?;
                } else {
                    write!(f, "| {part:>21} |")?;
                }
                for n in [stat.current, stat.peak, stat.allocated, stat.freed] {
                    write!(f, "{:>11} |", short(n, unit))?;
                }
                writeln!(f)?;
            }
        }
        write!(f, "|{thick}|")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PoolKind::{Large, Small};

    fn sample() -> Tally {
        let mut t = Tally::ZERO;
        t.allocated_bytes.add(Small, 100);
        t.allocated_bytes.add(Large, 5000);
        t.allocated_bytes.sub(Small, 60);
        t.allocated_bytes.add(Large, 1000);
        t.allocated_bytes.sub(Large, 5000);
        t.num_ooms = 2;
        t
    }

    #[test]
    fn currents_peaks_and_totals() {
        let stat = |current, peak, allocated, freed| Stat {
            current,
            peak,
            allocated,
            freed,
        };
        let mut t = sample();
        let s = t.snapshot();
        assert_eq!(s.allocated_bytes.small_pool, stat(40, 100, 100, 60));
        assert_eq!(s.allocated_bytes.large_pool, stat(1000, 6000, 6000, 5000));
        // Together 5100, then 6040.
        assert_eq!(s.allocated_bytes.all, stat(1040, 6040, 6100, 5060));
        assert_eq!(s.active_bytes, s.allocated_bytes);

        t.reset_peak();
        assert_eq!(
            t.snapshot().allocated_bytes.all,
            stat(1040, 1040, 6100, 5060)
        );
        t.reset_accumulated();
        t.allocated_bytes.sub(Large, 1000);
        let s = t.snapshot();
        assert_eq!(s.allocated_bytes.all, stat(40, 1040, 0, 1000));
        assert_eq!(s.num_ooms, 0);
    }

    #[test]
    fn names_are_those_of_pytorch() {
        let mut names: Vec<String> = sample().snapshot().iter().map(|(name, _)| name).collect();
        let mut expected: Vec<String> = Vec::new();
        // As in torch.cuda.memory_stats().
        for stat in [
            "active",
            "active_bytes",
            "allocated_bytes",
            "allocation",
            "inactive_split",
            "inactive_split_bytes",
            "requested_bytes",
            "reserved_bytes",
            "segment",
        ] {
            for pool in ["all", "large_pool", "small_pool"] {
                for metric in ["allocated", "current", "freed", "peak"] {
                    expected.push(format!("{stat}.{pool}.{metric}"));
                }
            }
        }
        for counter in [
            "num_alloc_retries",
            "num_device_alloc",
            "num_device_free",
            "num_ooms",
        ] {
            expected.push(counter.to_owned());
        }
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn json_has_the_pairs() {
        let s = sample().snapshot();
        let json = s.to_json();
        assert_eq!(json["allocated_bytes.all.peak"], 6040);
        assert_eq!(json["num_ooms"], 2);
        assert_eq!(json.as_object().unwrap().len(), s.iter().count());
    }

    #[test]
    fn the_table_is_77_wide() {
        let text = sample().snapshot().to_string();
        assert!(
            text.lines().all(|line| line.chars().count() == 77),
            "{text}"
        );
        let row = "| Allocated memory      |   1040 B   |   6040 B   |   6100 B   |   5060 B   |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn short_keeps_five_digits() {
        assert_eq!(short(99_999, Unit::Bytes), "99999 B  ");
        assert_eq!(short(100_000, Unit::Bytes), "97 KiB");
        assert_eq!(short(100 << 20, Unit::Bytes), "100 MiB");
        assert_eq!(short(u64::MAX, Unit::Bytes), "16383 PiB");
        assert_eq!(short(123_456, Unit::Count), "123 K  ");
    }
}
