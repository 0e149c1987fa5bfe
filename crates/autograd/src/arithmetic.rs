//! Operations element by element that have more to say than their operands, and operators.

use crate::elementwise::binary;
use crate::graph::{Recorder, Rule, record, rule, two};
use crate::out::outs;
use crate::pointwise::Pointwise;
use crate::{Operand, Tensor};
use osteon_spec::{DType, Error, Kind, Result, Scalar};
use osteon_tensor::{Arg, BinaryOp, Call, CompareOp, Compute, Op, TernaryOp, UnaryOp};
use std::ops;

/// How a quotient becomes an integer; see [`Tensor::div_rounding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Towards zero.
    Trunc,
    /// Down.
    Floor,
}

/// `name name_ = |self, arguments| call;`: a call as a new tensor, and in place; before each name the documentation of
/// its method, in place the example alone.
macro_rules! calls {
    ($($(#[doc = $doc:literal])+ $name:ident $(#[doc = $in_place_doc:literal])+ $in_place:ident
        $out:ident [$($example:tt)*]
        = |$this:ident $(, $x:ident: $ty:ty)*| $call:expr;)*
    ) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// Shapes that do not broadcast; dtypes or numbers for which it is not defined; a guard in the way; out
            /// of memory.
            #[track_caller]
            #[allow(clippy::needless_lifetimes, reason = "some rows name it")]
            pub fn $name<'a>(&'a self $(, $x: $ty)*) -> Result<Tensor> {
                let $this = self;
                calls!(@run stringify!($name), fresh(), $call)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// Another shape than this tensor's; a result that its dtype cannot hold; overlap; a guard in the
            /// way.
            ///
            $(#[doc = $in_place_doc])+
            #[track_caller]
            #[allow(clippy::needless_lifetimes, reason = "some rows name it")]
            pub fn $in_place<'a>(&'a self $(, $x: $ty)*) -> Result<()> {
                let $this = self;
                calls!(@run stringify!($in_place), in_place(), $call)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            ///
            #[doc = outs!(@example One $($example)*)]
            #[track_caller]
            #[allow(clippy::needless_lifetimes, reason = "some rows name it")]
            pub fn $out<'a>(&'a self $(, $x: $ty)*, out: &Tensor) -> Result<()> {
                let $this = self;
                calls!(@run stringify!($out), out(out), $call)
            }
        )* }
    };
    (@run $name:expr, $how:ident($($to:ident)?), $call:expr) => {{
        let (op, compute, operands, numbers) = $call;
        Pointwise { name: $name, op, compute, operands, numbers: &numbers }.$how($($to)?)
    }};
}

/// The weight of a lerp: a tensor without dims counts as a number, unless it requires a gradient.
#[track_caller]
fn weight_of(weight: Operand<'_>) -> Result<Operand<'_>> {
    match weight {
        Operand::Tensor(t) if t.dim() == 0 && !t.requires_grad() => {
            t.as_view().item().map(Operand::Number)
        }
        other => Ok(other),
    }
}

const PROMOTED: Compute = Compute::Promoted;

calls! {
    /// `self + alpha · other`.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([1i64, 2])?, Tensor::new([3i64, 4])?);
    /// assert_eq!(x.add_scaled(&y, 10)?.to_vec::<i64>()?, [31, 42]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    add_scaled
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// x.add_scaled_(5, 2)?;
    /// assert_eq!(x.to_vec::<i64>()?, [11, 12]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    add_scaled_
    add_scaled_out [x = [1.0, 2.0]; x.add_scaled_out(5, 2, &out); [11.0, 12.0]]
    = |x, other: impl Into<Operand<'a>>, alpha: impl Into<Scalar>| (
        Op::Binary(BinaryOp::AddScaled), PROMOTED, [x.into(), other.into()], [alpha.into()]
    );
    /// `self - alpha · other`. Not for `bool`.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([31i64, 42])?, Tensor::new([3i64, 4])?);
    /// assert_eq!(x.sub_scaled(&y, 10)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    sub_scaled
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([11i64, 12])?;
    /// x.sub_scaled_(5, 2)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    sub_scaled_
    sub_scaled_out [x = [11.0, 12.0]; x.sub_scaled_out(5, 2, &out); [1.0, 2.0]]
    = |x, other: impl Into<Operand<'a>>, alpha: impl Into<Scalar>| (
        Op::Binary(BinaryOp::SubScaled), PROMOTED, [x.into(), other.into()], [alpha.into()]
    );
    /// The quotient rounded to an integer, in the dtype that the operands promote to. Integers are not divided by
    /// zero: that is an error.
    ///
    /// ```
    /// # use osteon_autograd::{Rounding, Tensor};
    /// let x = Tensor::new([-7i64, 7])?;
    /// assert_eq!(x.div_rounding(2, Rounding::Floor)?.to_vec::<i64>()?, [-4, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    div_rounding
    /// ```
    /// # use osteon_autograd::{Rounding, Tensor};
    /// let x = Tensor::new([-7i64, 7])?;
    /// x.div_rounding_(2, Rounding::Trunc)?;
    /// assert_eq!(x.to_vec::<i64>()?, [-3, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    div_rounding_
    div_rounding_out [x = [-7.0, 7.0]; x.div_rounding_out(2, osteon_autograd::Rounding::Floor, &out); [-4.0, 3.0]]
    = |x, other: impl Into<Operand<'a>>, rounding: Rounding| (
        Op::Binary(match rounding {
            Rounding::Trunc => BinaryOp::DivTrunc,
            Rounding::Floor => BinaryOp::FloorDivide,
        }),
        PROMOTED,
        [x.into(), other.into()],
        []
    );
    /// `self + value · a · b`.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([2i64, 3])?, Tensor::new([4i64, 5])?);
    /// assert_eq!(Tensor::new([1i64, 1])?.addcmul(&a, &b, 2)?.to_vec::<i64>()?, [17, 31]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    addcmul
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, a) = (Tensor::new([1i64, 1])?, Tensor::new([2i64, 3])?);
    /// x.addcmul_(&a, &a, 10)?;
    /// assert_eq!(x.to_vec::<i64>()?, [41, 91]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    addcmul_
    addcmul_out [x = [1.0], a = [2.0], b = [4.0]; x.addcmul_out(&a, &b, 2, &out); [17.0]]
    = |x, a: &'a Tensor, b: &'a Tensor, value: impl Into<Scalar>| (
        Op::Ternary(TernaryOp::Addcmul), PROMOTED, [x.into(), a.into(), b.into()], [value.into()]
    );
    /// `self + value · a / b`, where `a` and `b` are not both integers.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([6f64, 1.0])?, Tensor::new([3f64, 4.0])?);
    /// assert_eq!(Tensor::new([1f64, 1.0])?.addcdiv(&a, &b, 2)?.to_vec::<f64>()?, [5.0, 1.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    addcdiv
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, a, b) = (Tensor::new([1f64])?, Tensor::new([6f64])?, Tensor::new([3f64])?);
    /// x.addcdiv_(&a, &b, -1)?;
    /// assert_eq!(x.to_vec::<f64>()?, [-1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    addcdiv_
    addcdiv_out [x = [1.0], a = [6.0], b = [4.0]; x.addcdiv_out(&a, &b, 2, &out); [4.0]]
    = |x, a: &'a Tensor, b: &'a Tensor, value: impl Into<Scalar>| (
        Op::Ternary(TernaryOp::Addcdiv), PROMOTED, [x.into(), a.into(), b.into()], [value.into()]
    );
    /// From this tensor (weight 0) to `end` (weight 1). All tensors have one dtype.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, end) = (Tensor::new([0f64, 10.0])?, Tensor::new([4f64, 20.0])?);
    /// assert_eq!(x.lerp(&end, 0.5)?.to_vec::<f64>()?, [2.0, 15.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    lerp
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, end) = (Tensor::new([0f64, 10.0])?, Tensor::new([4f64, 20.0])?);
    /// x.lerp_(&end, 0.25)?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 12.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    lerp_
    lerp_out [x = [0.0], end = [10.0]; x.lerp_out(&end, 0.25, &out); [2.5]]
    = |x, end: &'a Tensor, weight: impl Into<Operand<'a>>| (
        Op::Ternary(TernaryOp::Lerp), Compute::Same, [x.into(), end.into(), weight_of(weight.into())?], []
    );
    /// The nearest multiple of `10^-decimals`, halves to even; for floats, and for integers without `decimals`.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1234f64, 1250.0, 1350.0])?;
    /// assert_eq!(x.round_decimals(-2)?.to_vec::<f64>()?, [1200.0, 1200.0, 1400.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    round_decimals
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.125f64, 2.0])?;
    /// x.round_decimals_(2)?;
    /// assert_eq!(x.to_vec::<f64>()?, [0.12, 2.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    round_decimals_
    round_decimals_out [x = [1.25, 2.375]; x.round_decimals_out(1, &out); [1.2, 2.4]]
    = |x, decimals: i32| (
        Op::Unary(if decimals == 0 { UnaryOp::Round } else { UnaryOp::RoundDecimals }),
        PROMOTED,
        [x.into()],
        [10f64.powi(decimals.saturating_abs()).into(), f64::from(u8::from(decimals < 0)).into()]
    );
    /// `log(x / (1 - x))`, with `x` held between `eps` and `1 - eps` where an `eps` is given.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.5f64, 1.0])?;
    /// assert_eq!(x.logit(None)?.to_vec::<f64>()?, [0.0, f64::INFINITY]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    logit
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.2f64, 0.9])?;
    /// x.logit_(Some(0.5))?; // Holds both at 0.5.
    /// assert_eq!(x.to_vec::<f64>()?, [0.0, 0.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    logit_
    logit_out [x = [0.5, 0.75]; x.logit_out(None, &out); [0.0, 1.0986122886681098]]
    = |x, eps: Option<f64>| (
        Op::Unary(UnaryOp::Logit),
        Compute::Float,
        [x.into()],
        [eps.unwrap_or(f64::NEG_INFINITY).into(), eps.map_or(f64::INFINITY, |e| 1.0 - e).into()]
    );
    /// With numbers in place of NaN (by default 0), `∞` and `-∞` (by default the largest finite numbers).
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([f64::NAN, f64::INFINITY, 1.0])?;
    /// assert_eq!(x.nan_to_num(None, Some(9.0), None)?.to_vec::<f64>()?, [0.0, 9.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    nan_to_num
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([f64::NAN, f64::NEG_INFINITY])?;
    /// x.nan_to_num_(Some(1.0), None, Some(-9.0))?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, -9.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    nan_to_num_
    nan_to_num_out [x = [f64::NAN, 2.0]; x.nan_to_num_out(Some(7.0), None, None, &out); [7.0, 2.0]]
    = |x, nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>| (
        Op::Unary(UnaryOp::NanToNum),
        PROMOTED,
        [x.into()],
        [
            nan.unwrap_or(0.0).into(),
            posinf.unwrap_or(x.dtype().largest()).into(),
            neginf.unwrap_or(-x.dtype().largest()).into(),
        ]
    );
}

impl Tensor {
    /// `other - alpha · self`.
    ///
    /// # Errors
    /// As [`Tensor::sub`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.rsub(10, 2)?.to_vec::<i64>()?, [8, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rsub<'a>(
        &self,
        other: impl Into<Operand<'a>>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let other: Operand<'a> = other.into();
        let operands = [other, self.into()];
        let op = Op::Binary(BinaryOp::SubScaled);
        Pointwise {
            numbers: &[alpha.into()],
            ..binary("rsub", op, PROMOTED, operands)
        }
        .fresh()
    }

    /// The power. Integers have no negative powers that are plain numbers, and 0 for negative elements of an
    /// exponent, but for 1 and −1.
    ///
    /// # Errors
    /// As [`Tensor::add`]; a negative number as the exponent of integers.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.pow(2)?.to_vec::<i64>()?, [1, 4, 9]);
    /// assert!(Tensor::new([1i64])?.pow(-1).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn pow<'a>(&self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        let exponent: Operand<'a> = exponent.into();
        let power = binary("pow", POW, PROMOTED, [self.into(), exponent]);
        let args = power.operands.map(Operand::arg);
        power.record(fast(&power, &args)?.fresh()?)
    }

    /// [`Tensor::pow`] in place.
    ///
    /// # Errors
    /// As [`Tensor::pow`]; a result that this dtype cannot hold; overlap; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// x.pow_(3)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 8, 27]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn pow_<'a>(&self, exponent: impl Into<Operand<'a>>) -> Result<()> {
        let exponent: Operand<'a> = exponent.into();
        let power = binary("pow_", POW, PROMOTED, [self.into(), exponent]);
        let args = power.operands.map(Operand::arg);
        let call = fast(&power, &args)?;
        power.write(|target| call.in_place(target))
    }

    /// `base` to the power of this tensor: Python's `base ** x`.
    ///
    /// # Errors
    /// As [`Tensor::pow`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([0i64, 1, 3])?.rpow(2)?.to_vec::<i64>()?, [1, 2, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rpow(&self, base: impl Into<Scalar>) -> Result<Tensor> {
        let operands = [Operand::Number(base.into()), self.into()];
        binary("rpow", POW, PROMOTED, operands).fresh()
    }

    /// Held between two bounds, each a number or a tensor; NaN stays, and the upper bound wins where they cross.
    ///
    /// # Errors
    /// As [`Tensor::add`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([-3i64, 1, 9])?.clamp(0, 5)?.to_vec::<i64>()?, [0, 1, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp<'a>(
        &self,
        min: impl Into<Operand<'a>>,
        max: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let (min, max): (Operand<'a>, Operand<'a>) = (min.into(), max.into());
        clamped("clamp", [self.into(), min, max]).fresh()
    }

    /// [`Tensor::clamp`] in place.
    ///
    /// # Errors
    /// As [`Tensor::clamp`]; a result that this dtype cannot hold; overlap; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([-3i64, 1, 9])?;
    /// x.clamp_(-1, 5)?;
    /// assert_eq!(x.to_vec::<i64>()?, [-1, 1, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp_<'a>(
        &self,
        min: impl Into<Operand<'a>>,
        max: impl Into<Operand<'a>>,
    ) -> Result<()> {
        let (min, max): (Operand<'a>, Operand<'a>) = (min.into(), max.into());
        clamped("clamp_", [self.into(), min, max]).in_place()
    }

    /// This tensor itself, as the sign `+` leaves it. Not for `bool`.
    ///
    /// # Errors
    /// `bool`.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([-1i64, 2])?;
    /// assert_eq!(x.positive()?.to_vec::<i64>()?, [-1, 2]);
    /// assert!(x.positive()?.shares_storage(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn positive(&self) -> Result<Tensor> {
        if self.dtype() == DType::Bool {
            return Err(Error::new(Kind::DType, "not defined for bool").op("positive"));
        }
        Ok(self.clone())
    }

    /// Whether each pair is close: `|self - other| <= atol + rtol·|other|`, as `bool`. Both have one dtype.
    ///
    /// # Errors
    /// Shapes that do not broadcast; two dtypes; a negative tolerance; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([1f64, 2.0, f64::NAN])?, Tensor::new([1.05f64, 3.0, f64::NAN])?);
    /// let close = a.isclose(&b, 0.1, 0.0, true)?;
    /// assert_eq!(close.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
        let fail = |kind, message: String| Err(Error::new(kind, message).op("isclose"));
        if self.dtype() != other.dtype() {
            let (a, b) = (self.dtype(), other.dtype());
            return fail(
                Kind::DType,
                format!("{a} and {b} differ; cast one with to() first"),
            );
        }
        if !(rtol >= 0.0 && atol >= 0.0) {
            return fail(
                Kind::Value,
                format!("rtol {rtol} and atol {atol} must not be negative"),
            );
        }
        let exact =
            rtol == 0.0 && atol == 0.0 && !self.dtype().is_float() && !self.dtype().is_complex();
        let (op, compute) = if exact {
            (CompareOp::Eq, PROMOTED)
        } else {
            (CompareOp::IsClose, Compute::Float)
        };
        let numbers = [
            rtol.into(),
            atol.into(),
            f64::from(u8::from(equal_nan)).into(),
        ];
        let operands = [self.into(), other.into()];
        Pointwise {
            numbers: &numbers,
            ..binary("isclose", Op::Compare(op), compute, operands)
        }
        .fresh()
    }

    /// The complex tensor with these real and imaginary parts, both `float32` or both `float64`.
    ///
    /// # Errors
    /// Other dtypes; shapes that do not broadcast; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let z = Tensor::complex(&Tensor::new([1f32])?, &Tensor::new([2f32])?)?;
    /// assert_eq!(z.view_as_real()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn complex(real: &Tensor, imag: &Tensor) -> Result<Tensor> {
        let op = Op::Binary(BinaryOp::Complex);
        binary("complex", op, Compute::Same, [real.into(), imag.into()]).fresh()
    }

    /// The complex tensor with these magnitudes and angles, both `float32` or both `float64`.
    ///
    /// # Errors
    /// As [`Tensor::complex`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let z = Tensor::polar(&Tensor::new([2f64])?, &Tensor::new([0f64])?)?;
    /// assert_eq!(z.view_as_real()?.to_vec::<f64>()?, [2.0, 0.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
        let op = Op::Binary(BinaryOp::Polar);
        binary("polar", op, Compute::Same, [abs.into(), angle.into()]).fresh()
    }

    /// A copy, of the shape that both broadcast to, with `value` (a number or a 0-dim tensor) where the mask is
    /// true.
    ///
    /// # Errors
    /// A mask that is not `bool`; shapes that do not broadcast; a value that this dtype cannot hold.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, -2, 3])?;
    /// assert_eq!(x.masked_fill(&x.lt(0)?, 0)?.to_vec::<i64>()?, [1, 0, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        let value: Operand<'a> = value.into();
        let out = self.as_view().masked_fill(mask.as_view(), value.arg())?;
        record(out, &[self.into(), value], |r, _| filled(r, mask))
    }

    /// A tensor laid out like this one, with `value` (a number or a 0-dim tensor) everywhere.
    ///
    /// # Errors
    /// A value that this dtype cannot hold; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.fill(7)?.to_vec::<i64>()?, [7, 7]);
    /// assert_eq!(x.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn fill<'a>(&self, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        let value: Operand<'a> = value.into();
        let out = self.as_view().fill(value.arg())?;
        record(out, &[self.into(), value], |_, _| {
            Ok(rule(|b| {
                let g = b.grad()?;
                two(b.want(0, || g.zeros_like(None))?, b.want(1, || g.sum())?)
            }))
        })
    }
}

/// The rule of writing a value, the second input, where a mask is true.
pub(crate) fn filled(recorder: &mut Recorder, mask: &Tensor) -> Result<impl Rule + use<>> {
    recorder.save(mask)?;
    Ok(rule(|b| {
        let (g, mask) = (b.grad()?, b.saved(0)?);
        two(
            b.want(0, || g.masked_fill(&mask, 0))?,
            b.want(1, || g.r#where(&mask, 0)?.sum())?,
        )
    }))
}

impl Tensor {
    /// A bound of a clamp; a number and a tensor both of `bool` are refused, as in PyTorch.
    fn bound<'a>(&self, bound: Operand<'a>, op: &'static str) -> Result<Operand<'a>> {
        if self.dtype() == DType::Bool && matches!(bound, Operand::Number(Scalar::Bool(_))) {
            return Err(Error::new(
                Kind::DType,
                "not defined for bool; use logical_or() or _and()",
            )
            .op(op));
        }
        Ok(bound)
    }
}

/// One of the two bounds of a clamp.
macro_rules! bounds {
    ($(
        $(#[doc = $doc:literal])+ $name:ident $(#[doc = $in_place_doc:literal])+ $in_place:ident
        $out:ident [$($example:tt)*] => $op:ident;
    )*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// # Errors
            /// As [`Tensor::clamp`].
            #[track_caller]
            pub fn $name<'a>(&self, bound: impl Into<Operand<'a>>) -> Result<Tensor> {
                let bound: Operand<'a> = self.bound(bound.into(), stringify!($name))?;
                let operands = [self.into(), bound];
                binary(stringify!($name), Op::Binary(BinaryOp::$op), PROMOTED, operands).fresh()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
            ///
            /// # Errors
            /// As [`Tensor::clamp_`].
            ///
            $(#[doc = $in_place_doc])+
            #[track_caller]
            pub fn $in_place<'a>(&self, bound: impl Into<Operand<'a>>) -> Result<()> {
                let bound: Operand<'a> = self.bound(bound.into(), stringify!($in_place))?;
                let operands = [self.into(), bound];
                binary(stringify!($in_place), Op::Binary(BinaryOp::$op), PROMOTED, operands).in_place()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// As there; another shape; a result that `out` cannot hold; overlap.
            ///
            #[doc = outs!(@example One $($example)*)]
            #[track_caller]
            pub fn $out<'a>(&self, bound: impl Into<Operand<'a>>, out: &Tensor) -> Result<()> {
                let bound: Operand<'a> = self.bound(bound.into(), stringify!($out))?;
                let operands = [self.into(), bound];
                binary(stringify!($out), Op::Binary(BinaryOp::$op), PROMOTED, operands).out(out)
            }
        )* }
    };
}

bounds! {
    /// Held at or above a number or a tensor.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([-3i64, 1])?.clamp_min(0)?.to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    clamp_min
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([-3i64, 1])?;
    /// x.clamp_min_(&Tensor::new([-5i64, 2])?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [-3, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    clamp_min_
    clamp_min_out [x = [-3.0, 1.0]; x.clamp_min_out(0, &out); [0.0, 1.0]] => Maximum;
    /// Held at or below a number or a tensor.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 9])?.clamp_max(5)?.to_vec::<i64>()?, [1, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    clamp_max
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 9])?;
    /// x.clamp_max_(&Tensor::new([0i64, 10])?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    clamp_max_
    clamp_max_out [x = [1.0, 9.0]; x.clamp_max_out(5, &out); [1.0, 5.0]] => Minimum;
}

/// A clamp between bounds.
pub(crate) fn clamped<'a>(name: &'static str, operands: [Operand<'a>; 3]) -> Pointwise<'a, 3> {
    Pointwise {
        name,
        op: Op::Ternary(TernaryOp::Clamp),
        compute: PROMOTED,
        operands,
        numbers: &[],
    }
}

pub(crate) const POW: Op = Op::Binary(BinaryOp::Pow);

/// The call that computes a power: of the common exponents an operation that is exact and fast for them.
pub(crate) fn fast<'a>(power: &Pointwise<'a, 2>, args: &'a [Arg<'a>; 2]) -> Result<Call<'a>> {
    let call = |op, args| Call {
        name: power.name,
        op,
        compute: PROMOTED,
        args,
        numbers: &[],
    };
    let [Operand::Tensor(base), Operand::Number(number)] = power.operands else {
        return Ok(call(POW, args));
    };
    if base.dtype() == DType::Bool && matches!(number, Scalar::Bool(_)) {
        // Of truth values, x^y is x >= y.
        return Ok(call(Op::Compare(CompareOp::Ge), args));
    }
    let wanted = match number {
        Scalar::Int(i) => i as f64,
        Scalar::Float(x) => x,
        _ => return Ok(call(POW, args)),
    };
    if !(base.dtype().is_float() || base.dtype().is_complex()) {
        return match number {
            Scalar::Int(i) if i < 0 => Err(Error::new(
                Kind::Value,
                "integers have no negative integer powers; cast with to() first",
            )
            .op(power.name)),
            _ => Ok(call(POW, args)),
        };
    }
    let op = match wanted {
        2.0 => UnaryOp::Square,
        3.0 => UnaryOp::Cube,
        0.5 => UnaryOp::Sqrt,
        -0.5 => UnaryOp::Rsqrt,
        -1.0 => UnaryOp::Reciprocal,
        _ => return Ok(call(POW, args)),
    };
    Ok(call(Op::Unary(op), &args[..1]))
}

/// Operators, which return a `Result`: `(&a + &b)?`, `(&a * 2.0)?`, `(1.0 - &a)?`.
macro_rules! operators {
    ($($trait:ident $method:ident = $name:ident $op:ident $compute:ident: $($ty:ty)*;)*) => { $(
        impl<'a, R: Into<Operand<'a>>> ops::$trait<R> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: R) -> Result<Tensor> {
                Tensor::$name(self, other)
            }
        }

        operators! { @numbers $trait $method $op $compute: $($ty)* }
    )* };
    (@numbers $trait:ident $method:ident $op:ident $compute:ident: $($ty:ty)*) => { $(
        impl ops::$trait<&Tensor> for $ty {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, tensor: &Tensor) -> Result<Tensor> {
                let operands = [self.into(), tensor.into()];
                binary(stringify!($method), Op::Binary(BinaryOp::$op), Compute::$compute, operands).fresh()
            }
        }
    )* };
}

operators! {
    Add add = add Add Promoted: i32 i64 f32 f64;
    Sub sub = sub Sub Promoted: i32 i64 f32 f64;
    Mul mul = mul Mul Promoted: i32 i64 f32 f64;
    Div div = div Div Float: i32 i64 f32 f64;
    Rem rem = remainder Remainder Promoted: i32 i64 f32 f64;
    BitAnd bitand = bitwise_and BitwiseAnd Promoted: bool i32 i64;
    BitOr bitor = bitwise_or BitwiseOr Promoted: bool i32 i64;
    BitXor bitxor = bitwise_xor BitwiseXor Promoted: bool i32 i64;
    Shl shl = bitwise_left_shift ShiftLeft Promoted: i32 i64;
    Shr shr = bitwise_right_shift ShiftRight Promoted: i32 i64;
}

impl ops::Neg for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

impl ops::Not for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn not(self) -> Result<Tensor> {
        self.bitwise_not()
    }
}
