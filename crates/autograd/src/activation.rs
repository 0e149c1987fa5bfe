//! Activations of neural networks: PyTorch's `nn.functional`, element by element.

use crate::Tensor;
use crate::elementwise::example;
use crate::pointwise::Pointwise;
use osteon_spec::{Error, Kind, Result, Scalar};
use osteon_tensor::{Compute, Op, UnaryOp};

/// `[values], (numbers) => [results]; name name_ name_out(numbers) => operation, the numbers as the operation takes them,
/// or why it does not;` the values and the first numbers are the example.
macro_rules! activations {
    ($(
        $(#[doc = $doc:literal])+
        [$($at:tt)*], ($($given:expr),*) => [$($y:tt)*];
        $name:ident $in_place:ident $out:ident ($($x:ident: $ty:ty),*) => $op:ident, |$this:ident| $numbers:expr;
    )*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// A dtype or numbers for which it is not defined; a guard in the way; out of memory.
            ///
            #[doc = example!(x = [$($at)*]; ; "x.", stringify!($name), stringify!(($($given),*)), "?"; [$($y)*])]
            #[track_caller]
            pub fn $name(&self $(, $x: $ty)*) -> Result<Tensor> {
                let $this = self;
                activations!(@call self, stringify!($name), $op, $numbers).fresh()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// As out of place; a result that this dtype cannot hold; overlap.
            ///
            #[doc = example!(
                x = [$($at)*];
                "x.", stringify!($in_place), stringify!(($($given),*)), "?;\n";
                "x";
                [$($y)*]
            )]
            #[track_caller]
            pub fn $in_place(&self $(, $x: $ty)*) -> Result<()> {
                let $this = self;
                activations!(@call self, stringify!($in_place), $op, $numbers).in_place()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            ///
            #[doc = example!(
                x = [$($at)*];
                "let out = x.empty_like()?;\n", "x.", stringify!($out), "(", $(stringify!($given), ", ",)* "&out)?;\n";
                "out";
                [$($y)*]
            )]
            #[track_caller]
            pub fn $out(&self, $($x: $ty,)* out: &Tensor) -> Result<()> {
                let $this = self;
                activations!(@call self, stringify!($out), $op, $numbers).out(out)
            }
        )* }
    };
    (@call $this:ident, $name:expr, $op:ident, $numbers:expr) => {
        Pointwise {
            name: $name,
            op: Op::Unary(UnaryOp::$op),
            compute: Compute::Promoted,
            operands: [$this.into()],
            numbers: &$numbers.map_err(|e: Error| e.op($name))?,
        }
    };
}

activations! {
    /// `x` held between 0 and 6.
    [-1.0, 3.0, 8.0], () => [0.0, 3.0, 6.0];
    relu6 relu6_ relu6_out() => Hardtanh, |_x| Ok([Scalar::Int(0), Scalar::Int(6)]);
    /// `x · Φ(x)`, with the distribution function of the normal distribution.
    [0.0, 1.0], () => [0.0, 0.8413447460685429];
    gelu gelu_ gelu_out() => Gelu, |_x| Ok([]);
    /// [`Tensor::gelu`] by the approximation with `tanh`.
    [0.0, 1.0], () => [0.0, 0.8411919906082768];
    gelu_tanh gelu_tanh_ gelu_tanh_out() => GeluTanh, |_x| Ok([]);
    /// `x · sigmoid(x)`.
    [0.0, 1.0986122886681098], () => [0.0, 0.8239592165010823];
    silu silu_ silu_out() => Silu, |_x| Ok([]);
    /// `x · tanh(softplus(x))`.
    [0.0, 0.6931471805599453], () => [0.0, 0.5545177444479562];
    mish mish_ mish_out() => Mish, |_x| Ok([]);
    /// `x`, or `alpha · (e^x - 1)` where it is negative.
    [-0.6931471805599453, 3.0], (2.0) => [-1.0, 3.0];
    elu elu_ elu_out(alpha: f64) => Elu, |_x| Ok([1.0, alpha, 1.0].map(Scalar::Float));
    /// `scale · elu(x, alpha)` with the constants of self-normalising networks.
    [-0.6931471805599453, 1.0], () => [-0.8790496704236883, 1.0507009873554805];
    selu selu_ selu_out() => Elu, |_x| Ok([SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1.0].map(Scalar::Float));
    /// `x`, or `slope · x` where it is negative.
    [-1.0, 2.0], (0.1) => [-0.1, 2.0];
    leaky_relu leaky_relu_ leaky_relu_out(slope: f64) => LeakyRelu, |_x| Ok([Scalar::Float(slope)]);
    /// `x · relu6(x + 3) / 6`.
    [-4.0, 1.5, 5.0], () => [0.0, 1.125, 5.0];
    hardswish hardswish_ hardswish_out() => Hardswish, |_x| Ok([]);
    /// `relu6(x + 3) / 6`.
    [-4.0, 0.0, 5.0], () => [0.0, 0.5, 1.0];
    hardsigmoid hardsigmoid_ hardsigmoid_out() => Hardsigmoid, |_x| Ok([]);
    /// `x`, or 0 between `-lambda` and `lambda`.
    [-1.0, 0.25, 2.0], (0.5) => [-1.0, 0.0, 2.0];
    hardshrink hardshrink_ hardshrink_out(lambda: f64) => Hardshrink, |_x| Ok([Scalar::Float(lambda)]);
    /// `log(1 + e^(beta·x)) / beta`, and `x` where `beta·x` is above the threshold.
    [0.0, 30.0], (1.0, 20.0) => [0.6931471805599453, 30.0];
    softplus softplus_ softplus_out(beta: f64, threshold: f64) => Softplus, |_x| Ok([beta, threshold].map(Scalar::Float));
    /// `log(sigmoid(x))`.
    [0.0, 1.0986122886681098], () => [-0.6931471805599453, -0.2876820724517809];
    logsigmoid logsigmoid_ logsigmoid_out() => LogSigmoid, |_x| Ok([]);
    /// `x` held between two numbers, which are cast to its dtype.
    [-3.0, 0.5, 2.0], (-1.0, 1.0) => [-1.0, 0.5, 1.0];
    hardtanh hardtanh_ hardtanh_out(min: impl Into<Scalar>, max: impl Into<Scalar>) => Hardtanh, |x| {
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
    [-1.3862943611198906, 3.0], (2.0) => [-1.0, 3.0];
    celu celu_ celu_out(alpha: f64) => Elu, |_x| {
        if alpha == 0.0 {
            Err(Error::new(Kind::Value, "alpha must not be 0"))
        } else {
            Ok([1.0, alpha, 1.0 / alpha].map(Scalar::Float))
        }
    };
    /// `x` nearer to 0 by `lambda`, and 0 between `-lambda` and `lambda`.
    [-1.0, 0.25, 2.0], (0.5) => [-0.5, 0.0, 1.5];
    softshrink softshrink_ softshrink_out(lambda: f64) => Softshrink, |_x| {
        if lambda >= 0.0 {
            Ok([Scalar::Float(lambda)])
        } else {
            Err(Error::new(Kind::Value, format!("lambda must not be negative, got {lambda}")))
        }
    };
    /// `x`, or `value` where it is not above `threshold`; both are cast to its dtype.
    [0.5, 2.0], (1.0, -7.0) => [-7.0, 2.0];
    threshold threshold_ threshold_out(threshold: impl Into<Scalar>, value: impl Into<Scalar>) => Threshold, |x| {
        let numbers = [threshold.into(), value.into()];
        numbers.iter().try_for_each(|n| n.check_fits(x.dtype())).map(|()| numbers)
    };
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

impl Tensor {
    /// `x / (1 + |x|)`. Not for `bool`. Allocates the result and two tensors on the way.
    ///
    /// # Errors
    /// As [`Tensor::abs`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([-1.0f64, 3.0])?;
    /// assert_eq!(x.softsign()?.to_vec::<f64>()?, [-0.5, 0.75]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softsign(&self) -> Result<Tensor> {
        self.div(&self.abs()?.add(1)?)
    }

    /// `x - tanh(x)`. Not for `bool`. Allocates the result and `tanh(x)`.
    ///
    /// # Errors
    /// As [`Tensor::sub`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.6931471805599453f64])?; // the logarithm of 2, whose tanh is 0.6
    /// assert!(x.tanhshrink()?.allclose(&Tensor::new([0.0931471805599453])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tanhshrink(&self) -> Result<Tensor> {
        self.sub(&self.tanh()?)
    }
}
