//! New tensors: from Rust data, or filled by rule.

use crate::backend::backend;
use crate::target::{Reads, Target, with_out};
use crate::{Data, Number, View};
use num_complex::Complex;
use osteon_kernels::{Sequence, Value};
use osteon_spec::{
    DType, Device, Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar, checked_product,
};

impl View {
    /// A new storage of this shape, its elements unspecified.
    ///
    /// # Errors
    /// Out of memory, with a report; a shape that overflows.
    #[track_caller]
    pub fn empty(shape: &[usize], dtype: DType, device: &Device) -> Result<View> {
        View::fresh(shape, dtype, device, "empty")
    }

    #[track_caller]
    fn fresh(shape: &[usize], dtype: DType, device: &Device, op: &'static str) -> Result<View> {
        View::alloc(
            Layout::contiguous(shape).map_err(|e| e.op(op))?,
            dtype,
            device,
            op,
        )
    }

    /// All zeros.
    ///
    /// # Errors
    /// As [`View::empty`].
    #[track_caller]
    pub fn zeros(shape: &[usize], dtype: DType, device: &Device) -> Result<View> {
        View::filled(shape, Scalar::Bool(false), dtype, device, "zeros")
    }

    /// All ones.
    ///
    /// # Errors
    /// As [`View::empty`].
    #[track_caller]
    pub fn ones(shape: &[usize], dtype: DType, device: &Device) -> Result<View> {
        View::filled(shape, Scalar::Bool(true), dtype, device, "ones")
    }

    /// One number everywhere.
    ///
    /// # Errors
    /// As [`View::empty`]; a number that the dtype cannot hold.
    #[track_caller]
    pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: &Device) -> Result<View> {
        View::filled(shape, value, dtype, device, "full")
    }

    #[track_caller]
    fn filled(
        shape: &[usize],
        value: Scalar,
        dtype: DType,
        device: &Device,
        op: &'static str,
    ) -> Result<View> {
        value.check_fits(dtype).map_err(|e| e.op(op))?;
        let view = View::fresh(shape, dtype, device, op)?;
        backend(*device).fill(&view, value)?;
        Ok(view)
    }

    /// Rust data, copied: a number, or nested arrays and vectors.
    ///
    /// # Errors
    /// Rows of different length; out of memory.
    #[track_caller]
    pub fn from_data<D: Data>(data: &D, device: &Device) -> Result<View> {
        let mut shape = Dims::new();
        data.shape(0, &mut shape).map_err(|e| e.op("tensor"))?;
        let mut values = reserved(
            checked_product(&shape).map_err(|e| e.op("tensor"))?,
            "tensor",
        )?;
        data.append(&mut values);
        View::from_values(&values, &shape, device, "tensor")
    }

    /// Numbers in row-major order, copied.
    ///
    /// # Errors
    /// [`Kind::Shape`] when there are not as many as the shape says; out of memory.
    #[track_caller]
    pub fn from_slice<T: Number>(values: &[T], shape: &[usize], device: &Device) -> Result<View> {
        let numel = checked_product(shape).map_err(|e| e.op("from_vec"))?;
        if values.len() != numel {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "shape {shape:?} has {numel} elements, but {} are given",
                    values.len()
                ),
            )
            .op("from_vec"));
        }
        View::from_values(values, shape, device, "from_vec")
    }

    #[track_caller]
    fn from_values<T: Number>(
        values: &[T],
        shape: &[usize],
        device: &Device,
        op: &'static str,
    ) -> Result<View> {
        let view = View::fresh(shape, T::DTYPE, device, op)?;
        backend(*device).upload(&view, bytemuck::cast_slice(&T::stored(values)))?;
        Ok(view)
    }
}

with_out! { to;
    /// `start`, `start + step`, … below `end` (above it for a negative step): `⌈(end - start) / step⌉` numbers.
    /// The dtype is int64 unless a number is a float, then float32, where none is given.
    ///
    /// # Errors
    /// [`Kind::Value`] for a step of 0, a step away from `end`, or bounds that are not finite.
    arange arange_out(
        start: Scalar,
        end: Scalar,
        step: Scalar,
        dtype: Option<DType>,
        device: &Device
    ) -> View {
        let float = [start, end, step]
            .iter()
            .any(|s| matches!(s, Scalar::Float(_)));
        let dtype = dtype.unwrap_or(if float { DType::F32 } else { DType::I64 });
        if dtype == DType::Bool || dtype.is_complex() {
            return Err(not_a_range(dtype).op(to.op));
        }
        let whole = |s: Scalar| match s {
            Scalar::Bool(b) => Some(i128::from(b)),
            Scalar::Int(i) => Some(i128::from(i)),
            Scalar::UInt(u) => Some(i128::from(u)),
            Scalar::Float(_) | Scalar::Complex(..) => None,
        };
        if let (Some(start), Some(end), Some(step)) = (whole(start), whole(end), whole(step)) {
            check_range(step == 0, (end - start).signum() * step.signum() < 0, to.op)?;
            let n = (end - start + step - step.signum()) / step;
            // Of 65-bit differences few fit memory, and `sequence` says so.
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            let steps = Sequence::Integers(start as i64, step as i64);
            return View::steps(n, dtype, device, to, steps);
        }
        if [start, end, step]
            .iter()
            .any(|s| matches!(s, Scalar::Complex(..)))
        {
            return Err(Error::new(Kind::Value, "a complex number bounds no range").op(to.op));
        }
        let [start, end, step] = [start, end, step].map(f64::from_scalar);
        let span = (end - start) / step;
        check_range(step == 0.0, span < 0.0, to.op)?;
        if !span.is_finite() || !start.is_finite() {
            return Err(Error::new(
                Kind::Value,
                format!("unsupported range: {start} -> {end} in steps of {step}"),
            )
            .op(to.op));
        }
        let n = span.ceil() as usize;
        // As many as between the given ends; an integer tensor counts from the truncated start in truncated
        // steps.
        let cut = |x: f64| if dtype.is_integer() { x.trunc() } else { x };
        let (start, step) = (cut(start), cut(step));
        View::steps(n, dtype, device, to, Sequence::Floats(start, step))
    }

    /// `steps` numbers from `start` to `end`, both included, evenly apart.
    ///
    /// # Errors
    /// `bool`; a complex number for a real dtype; as [`View::empty`].
    linspace linspace_out(
        start: Scalar,
        end: Scalar,
        steps: usize,
        dtype: DType,
        device: &Device
    ) -> View {
        View::spaced(start, end, steps, dtype, device, to, None)
    }

    /// `base` to the power of `steps` numbers evenly apart from `start` to `end`.
    ///
    /// # Errors
    /// As [`View::linspace`].
    logspace logspace_out(
        start: Scalar,
        end: Scalar,
        steps: usize,
        base: f64,
        dtype: DType,
        device: &Device
    ) -> View {
        View::spaced(start, end, steps, dtype, device, to, Some(base))
    }

    /// Ones on the diagonal of a matrix of zeros.
    ///
    /// # Errors
    /// As [`View::empty`].
    eye eye_out(rows: usize, columns: usize, dtype: DType, device: &Device) -> View {
        let layout = Layout::contiguous(&[rows, columns]).map_err(|e| e.op(to.op))?;
        to.write(layout, (dtype, *device), Reads::Each(&[]), |out| {
            let backend = backend(*device);
            backend.fill(out, Scalar::Bool(false))?;
            backend.fill(&out.diagonal(0, 0, 1)?, Scalar::Bool(true))
        })
    }
}

impl View {
    /// Numbers evenly apart, counted from the nearer end, so that both ends are exact, or a base to the power of them. The
    /// ends are numbers of the dtype: those of an integer dtype are truncated, and so are the numbers between them.
    #[track_caller]
    fn spaced(
        start: Scalar,
        end: Scalar,
        steps: usize,
        dtype: DType,
        device: &Device,
        to: Target<'_>,
        base: Option<f64>,
    ) -> Result<View> {
        let f = |x: Scalar| match (x, base) {
            (x, None) => x,
            (Scalar::Complex(re, im), Some(base)) => {
                let power = Complex::new(base, 0.0).powc(Complex::new(re, im));
                Scalar::Complex(power.re, power.im)
            }
            (real, Some(base)) => Scalar::Float(base.powf(f64::from_scalar(real))),
        };
        let imaginary = |s: Scalar| matches!(s, Scalar::Complex(_, im) if im != 0.0);
        if !dtype.is_complex() && (imaginary(start) || imaginary(end)) {
            return Err(Error::new(Kind::DType, format!("a complex end for {dtype}")).op(to.op));
        }
        if steps < 2 {
            return View::sequence(steps, dtype, device, to, |_| f(start));
        }
        if dtype == DType::Bool {
            return Err(not_a_range(dtype).op(to.op));
        }
        let held = |s: Scalar| {
            if dtype.is_integer() {
                s.check_fits(dtype).map_err(|e| e.op(to.op))?;
            }
            Ok::<_, Error>(match Value::new(s, dtype).read(dtype) {
                Scalar::Complex(re, im) => [re, im],
                real => [f64::from_scalar(real), 0.0],
            })
        };
        let (start, end) = (held(start)?, held(end)?);
        if base.is_none() && !dtype.is_complex() {
            let between = Sequence::Between(start[0], end[0], steps);
            return View::steps(steps, dtype, device, to, between);
        }
        let last = (steps - 1) as f64;
        View::sequence(steps, dtype, device, to, |i| {
            // Rounded once, as PyTorch's loop is.
            let part = |k: usize| {
                let step = (end[k] - start[k]) / last;
                if i < steps / 2 {
                    step.mul_add(i as f64, start[k])
                } else {
                    (-step).mul_add((steps - 1 - i) as f64, end[k])
                }
            };
            f(if dtype.is_complex() {
                Scalar::Complex(part(0), part(1))
            } else {
                Scalar::Float(part(0))
            })
        })
    }

    /// A tensor laid out like this one, with one number everywhere.
    ///
    /// # Errors
    /// As [`View::empty`]; a number that the dtype cannot hold.
    #[track_caller]
    pub fn full_like(&self, value: Scalar, dtype: DType, op: &'static str) -> Result<View> {
        value.check_fits(dtype).map_err(|e| e.op(op))?;
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(op))?;
        let view = View::alloc(layout, dtype, &self.device(), op)?;
        backend(self.device()).fill(&view, value)?;
        Ok(view)
    }

    #[track_caller]
    fn steps(
        n: usize,
        dtype: DType,
        device: &Device,
        to: Target<'_>,
        how: Sequence,
    ) -> Result<View> {
        let layout = Layout::contiguous(&[n]).map_err(|e| e.op(to.op))?;
        to.write(layout, (dtype, *device), Reads::Each(&[]), |out| {
            backend(*device).sequence(out, how)
        })
    }

    #[track_caller]
    fn sequence(
        n: usize,
        dtype: DType,
        device: &Device,
        to: Target<'_>,
        item: impl Fn(usize) -> Scalar,
    ) -> Result<View> {
        let layout = Layout::contiguous(&[n]).map_err(|e| e.op(to.op))?;
        to.write(layout, (dtype, *device), Reads::Each(&[]), |out| {
            backend(*device).generate(out, &item)
        })
    }
}

#[cold]
fn not_a_range(dtype: DType) -> Error {
    Error::new(
        Kind::DType,
        format!("no range of {dtype}; make an integer one and cast with to()"),
    )
}

fn check_range(zero: bool, away: bool, op: &'static str) -> Result<()> {
    let message = if zero {
        "step must be nonzero"
    } else if away {
        "upper bound and lower bound inconsistent with step sign"
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::Value, message).op(op))
}

/// An empty vector with room for `n`, or out of memory.
pub(crate) fn reserved<T>(n: usize, op: &'static str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| {
        Error::new(
            Kind::OutOfMemory,
            format!(
                "no memory for {n} numbers of {} bytes outside of any storage",
                size_of::<T>()
            ),
        )
        .op(op)
    })?;
    Ok(values)
}
