//! Activations of neural networks: PyTorch's `nn.functional`, element by element.

use crate::Tensor;
use osteon_spec::{Error, Kind, Result, Scalar};
use osteon_tensor::{Arg, Call, Compute, Op, UnaryOp};

/// `name name_(numbers) => operation, what it computes in, the numbers as the operation takes them;`
macro_rules! activations {
    ($($(#[doc = $doc:literal])+ $name:ident $in_place:ident ($($x:ident: $ty:ty),*)
        => $op:ident, $compute:ident, $numbers:expr;)*
    ) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// A dtype or numbers for which it is not defined; a guard in the way; out of memory.
            #[track_caller]
            pub fn $name(&self $(, $x: $ty)*) -> Result<Tensor> {
                activations!(@call self, stringify!($name), $op, $compute, $numbers).fresh().map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// As out of place; a result that this dtype cannot hold; overlap.
            #[track_caller]
            pub fn $in_place(&self $(, $x: $ty)*) -> Result<()> {
                activations!(@call self, stringify!($in_place), $op, $compute, $numbers).in_place(self.as_view())
            }
        )* }
    };
    (@call $this:ident, $name:expr, $op:ident, $compute:ident, $numbers:expr) => {
        Call {
            name: $name,
            op: Op::Unary(UnaryOp::$op),
            compute: Compute::$compute,
            args: &[Arg::View($this.as_view())],
            numbers: &$numbers,
        }
    };
}

activations! {
    /// `x` held between 0 and 6.
    relu6 relu6_() => Hardtanh, Promoted, [Scalar::Int(0), Scalar::Int(6)];
    /// `x · Φ(x)`, with the distribution function of the normal distribution.
    gelu gelu_() => Gelu, Promoted, [];
    /// [`Tensor::gelu`] by the approximation with `tanh`.
    gelu_tanh gelu_tanh_() => GeluTanh, Promoted, [];
    /// `x · sigmoid(x)`.
    silu silu_() => Silu, Promoted, [];
    /// `x · tanh(softplus(x))`.
    mish mish_() => Mish, Promoted, [];
    /// `x`, or `alpha · (e^x - 1)` where it is negative.
    elu elu_(alpha: f64) => Elu, Promoted, [1.0, alpha, 1.0].map(Scalar::Float);
    /// `scale · elu(x, alpha)` with the constants of self-normalising networks.
    selu selu_() => Elu, Promoted, [SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1.0].map(Scalar::Float);
    /// `x`, or `slope · x` where it is negative.
    leaky_relu leaky_relu_(slope: f64) => LeakyRelu, Promoted, [Scalar::Float(slope)];
    /// `x · relu6(x + 3) / 6`.
    hardswish hardswish_() => Hardswish, Promoted, [];
    /// `relu6(x + 3) / 6`.
    hardsigmoid hardsigmoid_() => Hardsigmoid, Promoted, [];
    /// `x`, or 0 between `-lambda` and `lambda`.
    hardshrink hardshrink_(lambda: f64) => Hardshrink, Promoted, [Scalar::Float(lambda)];
    /// `log(1 + e^(beta·x)) / beta`, and `x` where `beta·x` is above the threshold.
    softplus softplus_(beta: f64, threshold: f64) => Softplus, Promoted, [beta, threshold].map(Scalar::Float);
    /// `log(sigmoid(x))`.
    logsigmoid logsigmoid_() => LogSigmoid, Promoted, [];
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// The same for activations that check their numbers or dtype first.
macro_rules! checked {
    ($($(#[doc = $doc:literal])+ $name:ident $in_place:ident ($($x:ident: $ty:ty),*)
        => $op:ident, $compute:ident, |$this:ident| $numbers:expr;)*
    ) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// A dtype or numbers for which it is not defined; a guard in the way; out of memory.
            #[track_caller]
            pub fn $name(&self $(, $x: $ty)*) -> Result<Tensor> {
                let $this = self;
                let numbers = $numbers.map_err(|e: Error| e.op(stringify!($name)))?;
                activations!(@call self, stringify!($name), $op, $compute, numbers).fresh().map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// As out of place; a result that this dtype cannot hold; overlap.
            #[track_caller]
            pub fn $in_place(&self $(, $x: $ty)*) -> Result<()> {
                let $this = self;
                let numbers = $numbers.map_err(|e: Error| e.op(stringify!($in_place)))?;
                activations!(@call self, stringify!($in_place), $op, $compute, numbers).in_place(self.as_view())
            }
        )* }
    };
}

checked! {
    /// `x` held between two numbers, which are cast to its dtype.
    hardtanh hardtanh_(min: impl Into<Scalar>, max: impl Into<Scalar>) => Hardtanh, Promoted, |x| {
        let [min, max] = [min.into(), max.into()].map(|n| n.saturate(x.dtype()));
        let real = |n: Scalar| match n {
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(f) => f,
            Scalar::Bool(_) | Scalar::Complex(..) => f64::NAN,
        };
        if real(min) <= real(max) {
            Ok([min, max])
        } else {
            Err(Error::new(Kind::Value, format!("min {min} must not be above max {max}")))
        }
    };
    /// `x`, or `alpha · (e^(x/alpha) - 1)` where it is negative.
    celu celu_(alpha: f64) => Elu, Promoted, |_x| {
        if alpha == 0.0 {
            Err(Error::new(Kind::Value, "alpha must not be 0"))
        } else {
            Ok([1.0, alpha, 1.0 / alpha].map(Scalar::Float))
        }
    };
    /// `x` nearer to 0 by `lambda`, and 0 between `-lambda` and `lambda`.
    softshrink softshrink_(lambda: f64) => Softshrink, Promoted, |_x| {
        if lambda >= 0.0 {
            Ok([Scalar::Float(lambda)])
        } else {
            Err(Error::new(Kind::Value, format!("lambda must not be negative, got {lambda}")))
        }
    };
    /// `x`, or `value` where it is not above `threshold`; both are cast to its dtype.
    threshold threshold_(threshold: impl Into<Scalar>, value: impl Into<Scalar>) => Threshold, Promoted, |x| {
        let numbers = [threshold.into(), value.into()];
        numbers.iter().try_for_each(|n| n.check_fits(x.dtype())).map(|()| numbers)
    };
}

impl Tensor {
    /// `x / (1 + |x|)`. Not for `bool`. Allocates the result and two tensors on the way.
    ///
    /// # Errors
    /// As [`Tensor::abs`].
    #[track_caller]
    pub fn softsign(&self) -> Result<Tensor> {
        self.div(&self.abs()?.add(1)?)
    }

    /// `x - tanh(x)`. Not for `bool`. Allocates the result and `tanh(x)`.
    ///
    /// # Errors
    /// As [`Tensor::sub`].
    #[track_caller]
    pub fn tanhshrink(&self) -> Result<Tensor> {
        self.sub(&self.tanh()?)
    }
}
