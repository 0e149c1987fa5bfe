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
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1i64, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.select(1, 0)?.to_vec::<i64>()?, [1, 3]);
    /// assert!(Tensor::from_slice(&[1i64, 2, 3], [2, 2]).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice<T: Number>(values: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        View::from_slice(values, shape.as_ref(), &Device::cpu()).map(Tensor::from_view)
    }

    /// A tensor of unspecified, initialised elements.
    ///
    /// # Errors
    /// A shape that overflows; out of memory, with a report.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::empty([2, 3], DType::F64, &Device::cpu())?;
    /// assert_eq!((x.stride(), x.nbytes()), (&[3, 1][..], 48));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::ones([2, 2], DType::I64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 1, 1, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn ones(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::ones(shape.as_ref(), dtype, device).map(Tensor::from_view)
    }

    /// One number everywhere.
    ///
    /// # Errors
    /// As [`Tensor::empty`]; a number that the dtype cannot hold.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::full([3], 2.5, DType::F64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f64>()?, [2.5, 2.5, 2.5]);
    /// assert!(Tensor::full([3], 300, DType::U8, &Device::cpu()).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::arange_in(3, 0, -1, DType::F32, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 2.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::linspace(0, 1, 5, DType::F64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        steps: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::linspace(start.into(), end.into(), steps, dtype, device).map(Tensor::from_view)
    }

    /// `base` to the power of `steps` numbers evenly apart from `start` to `end`, both included.
    ///
    /// # Errors
    /// As [`Tensor::linspace`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let a = Tensor::logspace(0, 3, 4, 10.0, DType::F64, &Device::cpu())?;
    /// assert_eq!(a.to_vec::<f64>()?, [1.0, 10.0, 100.0, 1000.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn logspace(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        steps: usize,
        base: f64,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::logspace(start.into(), end.into(), steps, base, dtype, device).map(Tensor::from_view)
    }

    /// The identity matrix.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::eye(2, DType::I64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 0, 0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn eye(n: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        View::eye(n, n, dtype, device).map(Tensor::from_view)
    }

    /// Ones on the diagonal of a matrix of `n` rows and `m` columns.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::eye_rectangular(2, 3, DType::I64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 0, 0, 0, 1, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn eye_rectangular(n: usize, m: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        View::eye(n, m, dtype, device).map(Tensor::from_view)
    }

    /// A 0-dim tensor of this number.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, Device};
    /// let x = Tensor::scalar_tensor(3, DType::F32, &Device::cpu())?;
    /// assert_eq!((x.dim(), x.item::<f32>()?), (0, 3.0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar_tensor(
        value: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        View::full(&[], value.into(), dtype, device).map(Tensor::from_view)
    }

    /// Zeros of this shape and layout; with another dtype where one is given.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?.t()?;
    /// let z = x.zeros_like(None)?;
    /// assert_eq!((z.stride(), z.to_vec::<i64>()?), (x.stride(), vec![0; 6]));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like(&self, dtype: Option<DType>) -> Result<Tensor> {
        self.filled_like(Scalar::Bool(false), dtype, "zeros_like")
    }

    /// Ones of this shape and layout; with another dtype where one is given.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.ones_like(Some(DType::F32))?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like(&self, dtype: Option<DType>) -> Result<Tensor> {
        self.filled_like(Scalar::Bool(true), dtype, "ones_like")
    }

    /// One number everywhere, of this shape and layout; with another dtype where one is given.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.full_like(7, None)?.to_vec::<i64>()?, [7, 7]);
    /// assert_eq!(x.full_like(0.5, Some(DType::F64))?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>, dtype: Option<DType>) -> Result<Tensor> {
        self.filled_like(value.into(), dtype, "full_like")
    }

    #[track_caller]
    fn filled_like(&self, value: Scalar, dtype: Option<DType>, op: &'static str) -> Result<Tensor> {
        self.as_view()
            .full_like(value, dtype.unwrap_or(self.dtype()), op)
            .map(Tensor::from_view)
    }

    /// Zeros of this dtype on this device.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.new_zeros([2])?.to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn new_zeros(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Tensor::zeros(shape, self.dtype(), &self.device())
    }

    /// Ones of this dtype on this device.
    ///
    /// # Errors
    /// As [`Tensor::ones`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([5f32])?.new_ones([2])?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn new_ones(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Tensor::ones(shape, self.dtype(), &self.device())
    }

    /// One number everywhere, of this dtype on this device.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.new_full([2], 7)?.to_vec::<i64>()?, [7, 7]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn new_full(&self, shape: impl AsRef<[usize]>, value: impl Into<Scalar>) -> Result<Tensor> {
        Tensor::full(shape, value, self.dtype(), &self.device())
    }

    /// Unspecified elements in the shape, dtype, order of dims and device of another tensor.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?.t()?;
    /// let y = x.empty_like()?;
    /// assert_eq!((y.shape(), y.stride()), (&[3, 2][..], &[1, 3][..]));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        let layout = self.layout().like(MemoryFormat::Preserve)?;
        View::alloc(layout, self.dtype(), &self.device(), "empty_like").map(Tensor::from_view)
    }
}
