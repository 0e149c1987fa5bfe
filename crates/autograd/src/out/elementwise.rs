//! Operations element by element whose call depends on what is given.

use super::into;
use crate::arithmetic::{POW, clamped, fast};
use crate::elementwise::binary;
use crate::{Operand, Tensor};
use osteon_spec::{Error, Kind, Result};
use osteon_tensor::{BinaryOp, Compute, Op};

impl Tensor {
    /// [`Tensor::pow`] into `out`, which has the result's shape.
    ///
    /// # Errors
    /// As there; another shape; a result that `out` cannot hold; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, out) = (Tensor::new([2i64, 3])?, Tensor::new([0.0, 0.0])?);
    /// x.pow_out(3, &out)?;
    /// assert_eq!(out.to_vec::<f64>()?, [8.0, 27.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn pow_out<'a>(&self, exponent: impl Into<Operand<'a>>, out: &Tensor) -> Result<()> {
        let exponent: Operand<'a> = exponent.into();
        let power = binary("pow_out", POW, Compute::Promoted, [self.into(), exponent]);
        let args = power.operands.map(Operand::arg);
        fast(&power, &args)?.out(into(out, power.operands, power.name)?)
    }

    /// [`Tensor::clamp`] into `out`, which has the result's shape.
    ///
    /// # Errors
    /// As there; another shape; a result that `out` cannot hold; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([-3i64, 1, 9])?;
    /// x.clamp_out(0, 5, &x)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp_out<'a>(
        &self,
        min: impl Into<Operand<'a>>,
        max: impl Into<Operand<'a>>,
        out: &Tensor,
    ) -> Result<()> {
        let (min, max): (Operand<'a>, Operand<'a>) = (min.into(), max.into());
        clamped("clamp_out", [self.into(), min, max]).out(out)
    }

    /// [`Tensor::complex`] into `out`, which has the result's shape.
    ///
    /// # Errors
    /// As there; another shape or dtype; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (re, im) = (Tensor::new([1.0])?, Tensor::new([2.0])?);
    /// let out = Tensor::complex(&im, &im)?;
    /// Tensor::complex_out(&re, &im, &out)?;
    /// assert_eq!((out.real()?.item::<f64>()?, out.imag()?.item::<f64>()?), (1.0, 2.0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn complex_out(real: &Tensor, imag: &Tensor, out: &Tensor) -> Result<()> {
        of_two("complex_out", BinaryOp::Complex, real, imag, out)
    }

    /// [`Tensor::polar`] into `out`, which has the result's shape.
    ///
    /// # Errors
    /// As there; another shape or dtype; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (abs, angle) = (Tensor::new([2.0])?, Tensor::new([0.0])?);
    /// let out = Tensor::complex(&angle, &angle)?;
    /// Tensor::polar_out(&abs, &angle, &out)?;
    /// assert_eq!((out.real()?.item::<f64>()?, out.imag()?.item::<f64>()?), (2.0, 0.0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn polar_out(abs: &Tensor, angle: &Tensor, out: &Tensor) -> Result<()> {
        of_two("polar_out", BinaryOp::Polar, abs, angle, out)
    }
}

#[track_caller]
fn of_two(name: &'static str, op: BinaryOp, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    if out.dtype() != a.dtype().to_complex() {
        let (parts, out) = (a.dtype(), out.dtype());
        let message = format!(
            "out is {out}, but parts of {parts} make {}",
            parts.to_complex()
        );
        return Err(Error::new(Kind::DType, message).op(name));
    }
    let operands = [a.into(), b.into()];
    binary(name, Op::Binary(op), Compute::Same, operands).out(out)
}
