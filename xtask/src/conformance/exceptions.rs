//! Cases in which osteon does not show what PyTorch shows, and why. Rules, never numbers of cases;
//! at most one case in 500 of each file may fall under them, and the report counts them.

use osteon::DType;

use super::report::Verdict;
use super::value::Tolerance;

/// What differs, where.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The operation to blame.
    pub op: String,
    /// The dtype of what it worked on, or of what it made.
    pub dtype: Option<DType>,
    /// In words.
    pub detail: String,
}

struct Rule {
    ops: &'static [&'static str],
    applies: fn(Option<DType>, &str) -> bool,
    reason: &'static str,
}

/// The operations of a rule that is about all of them.
const ANY: &[&str] = &[];

const RULES: &[Rule] = &[
    Rule {
        ops: ANY,
        applies: |_, detail| detail.ends_with(Tolerance::LAST_DIGITS),
        reason: "PyTorch computes on complex64 in float32 and loses digits; here they are computed in \
             complex128 and rounded once",
    },
    Rule {
        ops: &["take"],
        applies: |dtype, detail| {
            dtype == Some(DType::I64) && detail == "succeeds where it must fail (RuntimeError)"
        },
        reason: "out shared a storage with the index when this was recorded, and the record gives each its own",
    },
    Rule {
        ops: &["as_strided_scatter"],
        applies: |dtype, detail| {
            dtype == Some(DType::F64) && detail.starts_with("gradient of tensor 0")
        },
        reason: "PyTorch gives the tensor the gradients of the elements that are overwritten, and not those of the others",
    },
];

impl Difference {
    /// A failure, or an exception where a rule says why it is right.
    pub fn verdict(self) -> Verdict {
        let about = |rule: &&Rule| {
            (rule.ops == ANY || rule.ops.contains(&self.op.as_str()))
                && (rule.applies)(self.dtype, &self.detail)
        };
        match RULES.iter().find(about) {
            Some(rule) => Verdict::Excepted(rule.reason),
            None => Verdict::Failed(self.op, self.detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Number;
    use super::*;

    #[test]
    fn a_rule_excepts_its_own_difference_and_no_other() {
        let excepted = |op: &str, dtype: DType, detail: &str| {
            let (op, detail) = (op.to_owned(), detail.to_owned());
            matches!(
                Difference {
                    op,
                    dtype: Some(dtype),
                    detail
                }
                .verdict(),
                Verdict::Excepted(_)
            )
        };
        let differ = |want, got| {
            let numbers = |x| [Number::Complex(x, 1.0)];
            let detail = Tolerance::OPS.difference(DType::C64, &numbers(want), &numbers(got));
            detail.expect("a difference")
        };
        assert!(excepted("sum", DType::C64, &differ(8.0, 8.000002)));
        assert!(!excepted("sum", DType::C64, &differ(8.0, 8.0002)));
        assert!(!excepted("sum", DType::C64, "shape is [1], want [2]"));
        let gradient = "gradient of tensor 0: value 1 is 0, want 1";
        assert!(excepted("as_strided_scatter", DType::F64, gradient));
        assert!(!excepted("scatter", DType::F64, gradient));
    }
}
