//! What a run found, by operation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that can be observed is as recorded.
    Passed,
    /// Rust's types already exclude the call that had to fail.
    Unwritable,
    /// Something differs: the operation to blame, and what differs.
    Failed(String, String),
    /// An operation that the engine does not have.
    Missing(String),
    /// A difference that a rule explains, with its reason.
    Excepted(&'static str),
}

/// The verdicts of one file.
#[derive(Debug, Default)]
pub struct Report {
    cases: usize,
    passed: usize,
    unwritable: usize,
    failed: BTreeMap<String, Vec<(String, String)>>,
    missing: BTreeMap<String, usize>,
    excepted: BTreeMap<&'static str, usize>,
}

/// Numbers of cases: passed, failed and skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cases that show what was recorded.
    pub passed: usize,
    /// Cases that show something else, or need an operation that is missing.
    pub failed: usize,
    /// Cases that a rule excepts, or that were not to be judged.
    pub skipped: usize,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Report {
    /// At most one case in this many may be excepted by rules.
    const CASES_PER_EXCEPTION: usize = 500;
    /// How many failures of one operation are shown.
    const SHOWN: usize = 3;

    /// Counts one case.
    pub fn add(&mut self, id: &str, verdict: Verdict) {
        self.cases += 1;
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Unwritable => self.unwritable += 1,
            Verdict::Failed(op, detail) => {
                self.failed
                    .entry(op)
                    .or_default()
                    .push((id.to_owned(), detail));
            }
            Verdict::Missing(op) => *self.missing.entry(op).or_default() += 1,
            Verdict::Excepted(reason) => *self.excepted.entry(reason).or_default() += 1,
        }
    }

    /// The numbers. Cases with missing operations fail, unless only present ones are judged; and
    /// more exceptions than the rules may make fail too.
    pub fn totals(&self, present_ops: bool) -> Totals {
        let missing: usize = self.missing.values().sum();
        let excepted: usize = self.excepted.values().sum();
        let over = excepted.saturating_sub(self.cases / Self::CASES_PER_EXCEPTION);
        let failed: usize = self.failed.values().map(Vec::len).sum();
        Totals {
            passed: self.passed + self.unwritable,
            failed: failed + over + if present_ops { 0 } else { missing },
            skipped: excepted - over + if present_ops { missing } else { 0 },
        }
    }

    /// The report in words: failures by operation, what is missing, what was excepted and why.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut failed: Vec<_> = self.failed.iter().collect();
        failed.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
        for (op, cases) in failed {
            let _ = writeln!(text, "  {op}: {} failed", cases.len());
            for (id, detail) in cases.iter().take(Self::SHOWN) {
                let _ = writeln!(text, "    {id}: {detail}");
            }
        }
        if !self.missing.is_empty() {
            let list: Vec<String> = self
                .missing
                .iter()
                .map(|(op, n)| format!("{op} ({n})"))
                .collect();
            let _ = writeln!(text, "  missing: {}", list.join(", "));
        }
        for (reason, n) in &self.excepted {
            let _ = writeln!(text, "  excepted: {n} because {reason}");
        }
        let allowed = self.cases / Self::CASES_PER_EXCEPTION;
        if self.excepted.values().sum::<usize>() > allowed {
            let _ = writeln!(
                text,
                "  more exceptions than the {allowed} that {} cases may have",
                self.cases
            );
        }
        if self.unwritable > 0 {
            let _ = writeln!(
                text,
                "  {} calls that must fail cannot be written in Rust",
                self.unwritable
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(op: &str) -> Verdict {
        Verdict::Failed(op.to_owned(), "why".to_owned())
    }

    #[test]
    fn verdicts_are_counted_and_grouped() {
        let mut report = Report::default();
        report.add("1", Verdict::Passed);
        report.add("2", failed("add"));
        report.add("3", failed("add"));
        report.add("4", Verdict::Missing("sort".to_owned()));
        report.add("5", Verdict::Unwritable);
        assert_eq!(
            report.totals(false),
            Totals {
                passed: 2,
                failed: 3,
                skipped: 0
            }
        );
        assert_eq!(
            report.totals(true),
            Totals {
                passed: 2,
                failed: 2,
                skipped: 1
            }
        );
        let text = report.text();
        for part in [
            "add: 2 failed",
            "2: why",
            "missing: sort (1)",
            "1 calls that must fail",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn too_many_exceptions_fail() {
        let mut report = Report::default();
        report.add("1", Verdict::Excepted("a reason"));
        for id in 2..=499 {
            report.add(&id.to_string(), Verdict::Passed);
        }
        assert_eq!(
            report.totals(false),
            Totals {
                passed: 498,
                failed: 1,
                skipped: 0
            }
        );
        assert!(report.text().contains("more exceptions"));
        report.add("500", Verdict::Passed);
        assert_eq!(
            report.totals(false),
            Totals {
                passed: 499,
                failed: 0,
                skipped: 1
            }
        );
        assert!(report.text().contains("1 because a reason"));
    }
}
