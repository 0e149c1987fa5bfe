//! The tensor itself: what can be asked of it.

use osteon_memory::Storage;
use osteon_spec::{DType, Device, Layout, MemoryFormat, ReshapeInfo, Result};
use osteon_tensor::{Number, ReadGuard, View, WriteGuard};

/// A multi-dimensional array over a storage that it may share.
///
/// A tensor is a shape, strides, an offset and a dtype over a [`Storage`]; many tensors may look at one
/// storage, and memory in use is the sum of storages. Operations have PyTorch's names and answers. Views
/// copy nothing; what copies, says so in the copy log.
///
/// `Clone` makes another handle to the same tensor and costs one counter; [`Tensor::copy`] is PyTorch's
/// `clone`, a new storage. Tensors are `Send + Sync`: operations on several threads wait for each other.
///
/// ```
/// # use osteon_autograd::Tensor;
/// let a = Tensor::new([1i64, 2, 3, 4])?;
/// let b = a.slice(0, 1..3)?;
/// assert!(a.shares_storage(&b));
/// b.fill_(9)?;
/// assert_eq!(a.to_vec::<i64>()?, [1, 9, 9, 4]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    pub(crate) view: View,
}

impl Tensor {
    /// The view that the tensor is. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.as_view().to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn as_view(&self) -> &View {
        &self.view
    }

    /// Makes this handle, alone, another tensor.
    pub(crate) fn replace(&mut self, view: View) {
        self.view = view;
    }

    /// The sizes. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.shape(), x.t()?.shape()), (&[2, 3][..], &[3, 2][..]));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    /// The size of one dim, which may be counted from the back. Free.
    ///
    /// # Errors
    /// A dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.size(0)?, x.size(-1)?), (2, 3));
    /// assert!(x.size(2).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn size(&self, dim: isize) -> Result<usize> {
        let d = osteon_spec::wrap_dim(dim, self.dim()).map_err(|e| e.op("size"))?;
        self.shape().get(d).copied().ok_or_else(|| {
            osteon_spec::Error::new(osteon_spec::Kind::Index, "a 0-dim tensor has no sizes")
                .op("size")
        })
    }

    /// The strides, in elements. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.stride(), x.t()?.stride()), (&[3, 1][..], &[1, 3][..]));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn stride(&self) -> &[usize] {
        self.view.stride()
    }

    /// The first element's position in the storage, in elements. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.select(0, 1)?.storage_offset(), 3);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn storage_offset(&self) -> usize {
        self.view.storage_offset()
    }

    /// Sizes, strides and offset. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.narrow(1, 1, 2)?.layout().required_len(), 6);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.view.layout()
    }

    /// The number of dimensions. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.dim(), x.select(0, 0)?.dim(), Tensor::new(1i64)?.dim()), (2, 1, 0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn dim(&self) -> usize {
        self.view.dim()
    }

    /// The number of elements. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!((x.numel(), Tensor::new(1i64)?.numel()), (6, 1));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn numel(&self) -> usize {
        self.view.numel()
    }

    /// Bytes of one element. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64])?.element_size(), 8);
    /// assert_eq!(Tensor::new([true])?.element_size(), 1);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn element_size(&self) -> usize {
        self.view.element_size()
    }

    /// `numel · element_size`, as if every element had bytes of its own; what is really in use,
    /// [`Storage::nbytes`] says. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64])?.expand([1000])?;
    /// assert_eq!((x.nbytes(), x.storage().nbytes()), (8000, 8));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.view.nbytes()
    }

    /// The elements' type. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// assert_eq!(Tensor::new([1i64])?.dtype(), DType::I64);
    /// assert_eq!(Tensor::new([1f32])?.dtype(), DType::F32);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.view.dtype()
    }

    /// Where the storage is. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64])?.device(), osteon_spec::Device::cpu());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn device(&self) -> Device {
        self.view.device()
    }

    /// The first element's address; null for a tensor without elements, as in PyTorch. Safe to get, unsafe to
    /// read through. Equal addresses prove little: identity is the storage's id.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3])?;
    /// assert_eq!(a.select(0, 2)?.data_ptr().addr() - a.data_ptr().addr(), 16);
    /// assert!(a.slice(0, 3..)?.data_ptr().is_null());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        self.view.data_ptr()
    }

    /// The storage. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// let b = a.slice(0, 1..3)?;
    /// assert_eq!((b.nbytes(), b.storage().nbytes()), (16, 32));
    /// assert_eq!(b.storage().tensors().len(), 2);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn storage(&self) -> &Storage {
        self.view.storage()
    }

    /// How often the storage was written, through any tensor. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// let before = a.version();
    /// a.select(0, 1)?.fill_(0)?;
    /// assert_eq!(a.version(), before + 1);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn version(&self) -> u64 {
        self.view.version()
    }

    /// Whether the elements lie in row-major order without gaps. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert!(x.is_contiguous() && !x.t()?.is_contiguous());
    /// assert!(x.select(0, 1)?.is_contiguous());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout().is_contiguous()
    }

    /// Whether the elements lie densely in the order of a memory format. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::MemoryFormat;
    /// let x = Tensor::arange(0, 16, 1)?.view([1, 4, 2, 2])?.permute([0, 3, 1, 2])?;
    /// assert!(x.is_contiguous_in(MemoryFormat::ChannelsLast));
    /// assert!(!x.is_contiguous_in(MemoryFormat::Contiguous));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        self.layout().is_contiguous_in(format)
    }

    /// Whether it was made as a view of another tensor (PyTorch's `_is_view`): by a view operation other than
    /// `detach` and `view_dtype`. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// assert!(!a.is_view() && a.slice(0, 1..)?.is_view());
    /// assert!(!a.detach()?.is_view());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn is_view(&self) -> bool {
        self.view.is_view()
    }

    /// Whether both look at one storage. Free.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// assert!(a.select(0, 0)?.shares_storage(&a));
    /// assert!(!a.copy()?.shares_storage(&a));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.view.shares_storage(&other.view)
    }

    /// Whether the two share a byte: exact, and also across foreign storages over the same memory.
    ///
    /// # Errors
    /// Where strides are so unrelated that the search ends undecided.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0f32, 1.0, 2.0, 3.0])?;
    /// let (even, odd) = (x.slice_step(0, .., 2)?, x.slice_step(0, 1.., 2)?);
    /// assert!(even.shares_storage(&odd) && !even.overlaps(&odd)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn overlaps(&self, other: &Tensor) -> Result<bool> {
        self.view.overlaps(&other.view)
    }

    /// What `reshape` to this shape would do: a view, or a copy and the dims that force it. Does nothing.
    ///
    /// # Errors
    /// A shape with another number of elements.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[0f32, 1.0], [2.0, 3.0]])?.t()?;
    /// let why = x.reshape_info([4])?;
    /// assert!(!why.is_view());
    /// println!("{why}");
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn reshape_info(&self, shape: impl AsRef<[isize]>) -> Result<ReshapeInfo> {
        self.layout().reshape_info(shape.as_ref())
    }

    /// All elements in row-major order, copied into a vector.
    ///
    /// # Errors
    /// `T` is not the dtype; a write guard is held; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.t()?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// assert!(x.to_vec::<f32>().is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        self.view.to_vec()
    }

    /// The one element of a tensor with one element, converted as Rust's `as` converts.
    ///
    /// # Errors
    /// More or fewer elements than one; a write guard is held.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[2.5f32]])?.item::<f64>()?, 2.5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn item<T: Number>(&self) -> Result<T> {
        self.view.item().map(T::from_scalar)
    }

    /// Typed access for reading, without copying, until the guard is dropped. Operations that would write the
    /// storage meanwhile are errors that name this line.
    ///
    /// # Errors
    /// `T` is not the dtype; a write guard is held.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let g = a.t()?.read::<i64>()?;
    /// assert_eq!(g.get([1, 0]), Some(2));
    /// assert!(a.fill_(0).unwrap_err().is_borrowed());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn read<T: Number>(&self) -> Result<ReadGuard<T>> {
        self.view.read()
    }

    /// Typed access for writing, without copying, until the guard is dropped. Every other access to the storage
    /// meanwhile is an error that names this line. Counts as one write.
    ///
    /// # Errors
    /// `T` is not the dtype; any guard is held; the memory is read-only.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let mut g = a.t()?.write::<i64>()?;
    /// assert!(g.set([0, 1], 9) && a.to_vec::<i64>().unwrap_err().is_borrowed());
    /// drop(g);
    /// assert_eq!(a.to_vec::<i64>()?, [1, 2, 9, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn write<T: Number>(&self) -> Result<WriteGuard<T>> {
        self.view.write()
    }

    /// Gives the tensor a name that every report shows, and returns another handle to it. All handles
    /// have the name.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([1f32])?.named("embed.weight");
    /// assert!(osteon_memory::map().to_string().contains("embed.weight"));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn named(&self, name: &str) -> Tensor {
        self.view.viewer().set_label(name);
        self.clone()
    }

    /// The name it was given.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([1f32])?;
    /// assert_eq!(w.name(), None);
    /// assert_eq!(w.named("bias").name().as_deref(), Some("bias"));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn name(&self) -> Option<osteon_memory::Label> {
        self.view.viewer().label()
    }

    /// Whether two handles are of one tensor: the same view, gradient and history.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// assert!(a.clone().is(&a));
    /// assert!(!a.alias()?.is(&a));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn is(&self, other: &Tensor) -> bool {
        self.view.viewer().is_same(other.view.viewer())
    }

    /// Whether both have the same shape and dtype and equal elements.
    ///
    /// # Errors
    /// Another device; a write guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// assert!(a.equal(&Tensor::new([1i64, 2])?)?);
    /// assert!(!a.equal(&Tensor::new([[1i64, 2]])?)? && !a.equal(&Tensor::new([1i64, 3])?)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        self.view.equal(&other.view)
    }

    /// Whether all elements are close: `|a - b| <= atol + rtol·|b|`, broadcast; NaN is close to nothing.
    ///
    /// # Errors
    /// Shapes that do not broadcast; a write guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([1.0f64, 10.0])?, Tensor::new([1.0, 10.5])?);
    /// assert!(a.allclose(&b, 0.1, 0.0)?);
    /// assert!(!a.allclose(&b, 0.01, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        self.view.allclose(&other.view, rtol, atol)
    }
}
