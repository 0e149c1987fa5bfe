//! Cases in which osteon does not show what PyTorch shows, and why. Rules, never numbers of cases;
//! at most one case in 500 of each file may fall under them, and the report counts them.

use osteon::DType;

use super::case::Case;

struct Rule {
    op: &'static str,
    dtype: Option<DType>,
    /// Whether the rule is about this case and this difference.
    applies: fn(&Case, &str) -> bool,
    reason: &'static str,
}

const RULES: &[Rule] = &[];

/// The reason why a difference is right, where a rule gives one.
pub fn reason(case: &Case, difference: &str) -> Option<&'static str> {
    let of_case = |rule: &&Rule| {
        rule.op == case.op
            && rule
                .dtype
                .is_none_or(|d| case.recorded().iter().any(|t| t.dtype == d))
            && (rule.applies)(case, difference)
    };
    RULES.iter().find(of_case).map(|rule| rule.reason)
}
