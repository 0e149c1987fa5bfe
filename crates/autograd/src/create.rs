//! New tensors.

use crate::Tensor;
use osteon_spec::{DType, Device, MemoryFormat, Result, Scalar};
use osteon_tensor::{Data, Number, View};

impl Tensor {
    /// A tensor of Rust data: a number, or nested arrays, slices and vectors of numbers. The dtype is the
    /// numbers' type. Copies the data.
    ///
    /// # Errors
    /// Rows of different length; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]])?.shape(), [2, 2]);
    /// assert_eq!(Tensor::new(2.5f32)?.dim(), 0);
    /// assert!(Tensor::new(vec![vec![1u8], vec![]]).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn new(data: impl Data) -> Result<Tensor> {
        View::from_data(&data, &Device::cpu()).map(Tensor::from_view)
    }

    /// A tensor of numbers in row-major order, copied.
    ///
    /// # Errors
    /// Another number of elements than the shape says; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(x.select(0, 1)?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn from_vec<T: Number>(values: Vec<T>, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        View::from_slice(&values, shape.as_ref(), &Device::cpu()).map(Tensor::from_view)
    }

    /// The same from a slice, copied.
    ///
    /// # Errors
    /// As [`Tensor::from_vec`].
    #[track_caller]
    pub fn from_slice<T: Number>(values: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        View::from_slice(values, shape.as_ref(), &Device::cpu()).map(Tensor::from_view)
    }

    /// A tensor of unspecified, initialised elements.
    ///
    /// # Errors
    /// A shape that overflows; out of memory, with a report.
    #[track_caller]
    pub fn empty(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::empty(shape.as_ref(), dtype, device).map(Tensor::from_view)
    }

    /// All zeros.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let z = Tensor::zeros([4, 4], DType::F32, &Device::cpu())?;
    /// assert_eq!(z.storage().nbytes(), 64);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::zeros(shape.as_ref(), dtype, device).map(Tensor::from_view)
    }

    /// All ones.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn ones(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::ones(shape.as_ref(), dtype, device).map(Tensor::from_view)
    }

    /// One number everywhere.
    ///
    /// # Errors
    /// As [`Tensor::empty`]; a number that the dtype cannot hold.
    #[track_caller]
    pub fn full(
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::full(shape.as_ref(), value.into(), dtype, device).map(Tensor::from_view)
    }

    /// `start`, `start + step`, … below `end`. Of int64 for integers, float32 for floats; see
    /// [`Tensor::arange_in`] for another dtype.
    ///
    /// # Errors
    /// A step of 0 or away from `end`; bounds that are not finite; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 10, 4)?.to_vec::<i64>()?, [0, 4, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        View::arange(start.into(), end.into(), step.into(), None, &Device::cpu())
            .map(Tensor::from_view)
    }

    /// [`Tensor::arange`] in a dtype and on a device.
    ///
    /// # Errors
    /// As [`Tensor::arange`].
    #[track_caller]
    pub fn arange_in(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::arange(start.into(), end.into(), step.into(), Some(dtype), device)
            .map(Tensor::from_view)
    }

    /// `steps` numbers from `start` to `end`, both included.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn linspace(
        start: f64,
        end: f64,
        steps: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::linspace(start, end, steps, dtype, device).map(Tensor::from_view)
    }

    /// The identity matrix.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn eye(n: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        View::eye(n, n, dtype, device).map(Tensor::from_view)
    }

    /// Unspecified elements in the shape, dtype, order of dims and device of another tensor.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        let layout = self.layout().like(MemoryFormat::Preserve)?;
        View::alloc(layout, self.dtype(), &self.device(), "empty_like").map(Tensor::from_view)
    }
}
