//! Reductions: many elements to one, along some dims.
//!
//! The formulas are accumulators, looked up here for an operation and a dtype; [`walk`] has them meet the elements.

mod walk;

pub use walk::Out;
pub(crate) use walk::{Accumulators, take};

use crate::Params;
use crate::accumulator::{Fold, fold};
use crate::arithmetic::Fractional;
use crate::element::Bool;
use crate::exponentials::{Exponentials, LogSum};
use crate::extremes::{Extreme, Place};
use crate::lane::computed_in;
use crate::spread::Spread;
use crate::summaries::{
    Count, Magnitude, NanSum, Norm, Order0, Order1, Order2, OrderP, Prod, Sum, Terms, Truth,
};
use crate::with_element;
use osteon_spec::DType;

/// A reduction, or what a scan makes of each beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The sum, divided by the number that the operation takes.
    Mean,
    /// The sum of what is not NaN.
    NanSum,
    /// Its mean.
    NanMean,
    /// Whether any element is true.
    Any,
    /// Whether all are.
    All,
    /// How many are.
    CountNonzero,
    /// The largest element, or NaN.
    Amax,
    /// The smallest element, or NaN.
    Amin,
    /// The largest element, or NaN, and the place of the first one.
    Max,
    /// The smallest element, or NaN, and the place of the first one.
    Min,
    /// The largest element and the place of the last one.
    LastMax,
    /// The smallest element and the place of the last one.
    LastMin,
    /// The norm of the order that the operation takes.
    Norm,
    /// The variance, with the correction that the operation takes, and the mean.
    Var,
    /// Its root, and the mean.
    Std,
    /// The logarithm of the sum of exponentials.
    LogSumExp,
    /// The same, but that the imaginary part of a complex number is not brought into one turn.
    LogCumSumExp,
    /// The largest element, and what a softmax multiplies the exponentials of the distances from it by.
    Softmax,
    /// The largest element, and the logarithm of the sum of these exponentials.
    LogSoftmax,
}

/// A reduction, looked up for an operation and a dtype.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    pub(crate) fold: Fold,
    /// The dtype that elements are converted to, before they are to what the loops take.
    dtype: DType,
}

/// The reduction of elements of this dtype (others are converted to it first), with the number that the
/// operation takes; none where it is not defined. Half precision is summed up in wider numbers and rounded once.
pub fn reduce(op: ReduceOp, dtype: DType, number: f64) -> Option<Reducer> {
    let computed = computed_in(dtype);
    let is_extreme = matches!(
        op,
        ReduceOp::Amax | ReduceOp::Amin | ReduceOp::Max | ReduceOp::Min
    );
    let ordered = match computed {
        DType::U64 => DType::U64,
        d if d.is_float() => d,
        d if d.is_complex() => return lookup(op, computed, dtype, number),
        // Of what is only compared, more fit a vector than of sums.
        d if is_extreme && d.is_integer() => d,
        _ => DType::I64,
    };
    lookup(op, ordered, dtype, number)
}

/// The reduction in the dtype of the loops: a float, a complex number, `int64` or `uint64`.
fn lookup(op: ReduceOp, computed: DType, dtype: DType, number: f64) -> Option<Reducer> {
    let fold = match op {
        ReduceOp::Any => Some(fold!(Truth<false> => Bool: |a, _| a.0)),
        ReduceOp::All => Some(fold!(Truth<true> => Bool: |a, _| a.0)),
        ReduceOp::CountNonzero => Some(fold!(Count => i64: |a, _| a.0)),
        ReduceOp::Sum => sums(op, computed),
        ReduceOp::Prod => sums(op, computed),
        ReduceOp::Amax => extremes::<true>(op, computed),
        ReduceOp::Max | ReduceOp::LastMax => extremes::<true>(op, computed),
        ReduceOp::Amin | ReduceOp::Min | ReduceOp::LastMin => extremes::<false>(op, computed),
        ReduceOp::Norm => norms(computed, number),
        _ => fractions(op, computed),
    }?;
    let mut fold = fold;
    fold.params = Params::one(number);
    Some(Reducer { fold, dtype })
}

fn sums(op: ReduceOp, dtype: DType) -> Option<Fold> {
    macro_rules! of {
        ($T:ty) => {
            if op == ReduceOp::Sum {
                fold!(Sum<$T> => $T: |a, _| <$T as crate::arithmetic::Arithmetic>::narrow(a.0))
            } else {
                fold!(Prod<$T> => $T: |a, _| <$T as crate::arithmetic::Arithmetic>::narrow(a.0))
            }
        };
    }
    if matches!(dtype, DType::I64 | DType::U64) {
        return Some(of!(i64));
    }
    with_element!(float: dtype, T => of!(T)).or_else(|| with_element!(complex: dtype, T => of!(T)))
}

fn extremes<const MAX: bool>(op: ReduceOp, dtype: DType) -> Option<Fold> {
    // The loops are items of their own, which see no parameter of this function.
    macro_rules! of {
        ($T:ty, $max:literal) => {
            match op {
                ReduceOp::Amax | ReduceOp::Amin => fold!(Extreme<$T, $max> => $T: |a, _| a.0),
                ReduceOp::Max | ReduceOp::Min => {
                    fold!(Place<$T, $max, false> => $T: |a, _| a.value; i64: |a, _| a.index)
                }
                _ => fold!(Place<$T, $max, true> => $T: |a, _| a.value; i64: |a, _| a.index),
            }
        };
        ($T:ty) => {
            if MAX { of!($T, true) } else { of!($T, false) }
        };
    }
    with_element!(int: dtype, T => of!(T)).or_else(|| with_element!(float: dtype, T => of!(T)))
}

fn norms(dtype: DType, order: f64) -> Option<Fold> {
    macro_rules! of {
        ($T:ty, $N:ty) => {
            fold!(Terms<$T, $N> => Real: |a, order| <$T>::real(<$N>::root(a.0, order)))
        };
        ($T:ty) => {{
            type Real = <$T as crate::lane::Lane>::Real;
            if order == f64::INFINITY {
                fold!(Magnitude<$T, true> => Real: |a, _| <$T>::real(a.0))
            } else if order == f64::NEG_INFINITY {
                fold!(Magnitude<$T, false> => Real: |a, _| <$T>::real(a.0))
            } else if order == 0.0 {
                of!($T, Order0)
            } else if order == 1.0 {
                of!($T, Order1)
            } else if order == 2.0 {
                of!($T, Order2)
            } else {
                of!($T, OrderP)
            }
        }};
    }
    with_element!(float: dtype, T => of!(T)).or_else(|| with_element!(complex: dtype, T => of!(T)))
}

fn fractions(op: ReduceOp, dtype: DType) -> Option<Fold> {
    macro_rules! common {
        ($T:ty) => {{
            type Real = <$T as crate::lane::Lane>::Real;
            use crate::arithmetic::Arithmetic;
            match op {
                ReduceOp::Mean => Some(fold!(Sum<$T> => $T: |a, count| {
                    <$T>::narrow(<$T>::scaled(a.0, 1.0 / count))
                })),
                ReduceOp::Var => Some(fold!(Spread<$T> =>
                    Real: |a, correction| <$T>::real(a.variance(correction));
                    $T: |a, _| a.mean()
                )),
                ReduceOp::Std => Some(fold!(Spread<$T> =>
                    Real: |a, correction| <$T>::real(a.variance(correction).sqrt());
                    $T: |a, _| a.mean()
                )),
                _ => None,
            }
        }};
    }
    macro_rules! real {
        ($T:ty) => {{
            use crate::arithmetic::Arithmetic;
            match op {
                ReduceOp::NanSum => Some(fold!(NanSum<$T> => $T: |a, _| <$T>::narrow(a.sum))),
                ReduceOp::NanMean => Some(fold!(NanSum<$T> => $T: |a, _| {
                    <$T>::narrow(a.sum / a.count)
                })),
                ReduceOp::LogSumExp | ReduceOp::LogCumSumExp => {
                    Some(fold!(Exponentials<$T> => $T: |a, _| a.log()))
                }
                ReduceOp::Softmax => Some(fold!(Exponentials<$T> =>
                    $T: |a, _| a.max;
                    $T: |a, _| a.share()
                )),
                ReduceOp::LogSoftmax => Some(fold!(Exponentials<$T> =>
                    $T: |a, _| a.max;
                    $T: |a, _| <$T>::narrow(a.sum.ln())
                )),
                _ => common!($T),
            }
        }};
    }
    macro_rules! complex {
        ($T:ty) => {
            match op {
                ReduceOp::LogSumExp => Some(fold!(LogSum<$T> => $T: |a, _| a.in_one_turn())),
                ReduceOp::LogCumSumExp => Some(fold!(LogSum<$T> => $T: |a, _| a.value())),
                _ => common!($T),
            }
        };
    }
    with_element!(float: dtype, T => real!(T))
        .or_else(|| with_element!(complex: dtype, T => complex!(T)))
        .flatten()
}
