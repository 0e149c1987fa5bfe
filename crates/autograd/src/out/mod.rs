//! Results in tensors that are given: `_out` after an operation's name, PyTorch's `out=`.
//!
//! An `out` has the result's shape and is written through whatever strides it has; it counts as written once. Its dtype
//! is the result's, where the line of an operation does not say more. It overlaps neither itself nor, where an operation
//! reads in another order than it writes, what is read. No gradients are recorded.

mod arrange;
mod create;
mod elementwise;
mod products;
mod reduce;

use crate::graph::{check_inference, wanted};
use crate::{Operand, Tensor};
use osteon_spec::{Error, Kind, Result};
use osteon_tensor::View;

/// The view that an operation writes instead of making a new one: every `_out` passes here with what it reads.
///
/// # Errors
/// A result that would have a history, which such a write does not record; a tensor of inference mode outside of it.
pub(crate) fn into<'a, 'b, R: Into<Operand<'b>>>(
    out: &'a Tensor,
    reads: impl IntoIterator<Item = R>,
    op: &'static str,
) -> Result<&'a View> {
    check_inference(out).map_err(|e| e.op(op))?;
    let of_graph = |read: R| match read.into() {
        Operand::Tensor(tensor) => wanted(&[tensor]),
        Operand::Number(_) => false,
    };
    let has_gradient = out.dtype().is_float() || out.dtype().is_complex();
    if has_gradient && (wanted(&[out]) || reads.into_iter().any(of_graph)) {
        let message = "a write into out is not recorded, but one of the tensors requires a gradient; \
                       use the form that gives a new tensor, or no_grad()";
        return Err(Error::new(Kind::Autograd, message).op(op));
    }
    Ok(out.as_view())
}

impl Tensor {
    /// This result, which had to be made anew, in `out`.
    #[track_caller]
    fn into_out(self, out: &View, casts: bool, op: &'static str) -> Result<View> {
        self.as_view().clone().put_into(out, casts, op)
    }
}

/// `method_out of method(arguments) reads tensors => what writes `out`; values of an example; its call; what `out` holds
/// then;` for operations with one result, or with two (`out` is a pair then).
macro_rules! outs {
    ($out:ident: $results:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident of $of:ident($($params:tt)*) reads $reads:expr => $write:expr;
        $($x:ident = $value:expr),*; $call:expr; $($expected:expr),+;
    )*) => {
        impl Tensor { $(
            #[doc = concat!("[`Tensor::", stringify!($of), "`] into `out`.")]
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As there; an `out` of another shape or dtype, or that overlaps itself or what is read.
            ///
            #[doc = outs!(@example $results $($x = $value),*; $call; $($expected),+)]
            #[track_caller]
            pub fn $name($($params)*, $out: outs!(@type $results)) -> Result<()> {
                let $out = outs!(@into $results $out, $reads, stringify!($name));
                $write.map(drop)
            }
        )* }
    };
    (@type One) => { &Tensor };
    (@type Two) => { (&Tensor, &Tensor) };
    (@into One $out:ident, $reads:expr, $name:expr) => { $crate::out::into($out, $reads, $name)? };
    (@into Two $out:ident, $reads:expr, $name:expr) => {
        ($crate::out::into($out.0, $reads, $name)?, $crate::out::into($out.1, $reads, $name)?)
    };
    (@example One $($x:ident = $value:expr),*; $call:expr; $expected:expr) => {
        concat!(
            "```\n# use osteon_autograd::Tensor;\n",
            $("let ", stringify!($x), " = Tensor::new(", stringify!($value), ")?;\n",)*
            "let expected = Tensor::new(", stringify!($expected), ")?;\n",
            "let out = expected.zeros_like(None)?;\n",
            stringify!($call), "?;\n",
            "assert!(out.allclose(&expected, 1e-9, 0.0)?);\n",
            "# Ok::<(), osteon_spec::Error>(())\n```"
        )
    };
    (@example Two $($x:ident = $value:expr),*; $call:expr; $first:expr, $second:expr) => {
        concat!(
            "```\n# use osteon_autograd::Tensor;\n",
            $("let ", stringify!($x), " = Tensor::new(", stringify!($value), ")?;\n",)*
            "let (a, b) = (Tensor::new(", stringify!($first), ")?, Tensor::new(", stringify!($second), ")?);\n",
            "let out = (&a.zeros_like(None)?, &b.zeros_like(None)?);\n",
            stringify!($call), "?;\n",
            "assert!(out.0.equal(&a)? && out.1.equal(&b)?);\n",
            "# Ok::<(), osteon_spec::Error>(())\n```"
        )
    };
}
pub(crate) use outs;
