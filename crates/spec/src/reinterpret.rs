//! Views of the same bytes as another dtype.

use crate::dims::copied;
use crate::{DType, Dims, Error, Kind, Layout, Result};

impl Layout {
    /// The same bytes as elements of another dtype. Elements of another size make the last
    /// dimension longer or shorter.
    ///
    /// # Errors Where the sizes of the elements differ: [`Kind::Shape`] for rank 0 and for a last
    /// size that does not come out even, [`Kind::Layout`] for a last stride other than 1 and for
    /// another stride or an offset that does not.
    ///
    /// ```
    /// use osteon_spec::{DType, Layout};
    /// let x = Layout::contiguous(&[2, 4]).unwrap();
    /// assert_eq!(x.view_dtype(DType::F32, DType::I16).unwrap().sizes(), [2, 8]);
    /// assert_eq!(x.view_dtype(DType::F32, DType::C64).unwrap().sizes(), [2, 2]);
    /// ```
    pub fn view_dtype(&self, from: DType, to: DType) -> Result<Layout> {
        if from.size() == to.size() {
            return Ok(self.clone());
        }
        let shrinks = to.size() < from.size();
        let ratio = from.size().max(to.size()) / from.size().min(to.size());
        let fail = |kind, what: String| {
            let message = format!(
                "{what} to view {from} as {to} (different element sizes), but the layout is {self}"
            );
            Err(Error::new(kind, message).op("view"))
        };
        let Some(last) = self.rank().checked_sub(1) else {
            return fail(
                Kind::Shape,
                "the tensor must have a dimension; unsqueeze(0)".into(),
            );
        };
        if self.strides()[last] != 1 {
            return fail(Kind::Layout, "stride(-1) must be 1".into());
        }
        let (mut sizes, mut strides) = (copied(self.sizes()), copied(self.strides()));
        if shrinks {
            for stride in &mut strides[..last] {
                *stride = Layout::stride_of(*stride, ratio);
            }
            sizes[last] = sizes[last].saturating_mul(ratio);
            return Layout::new(sizes, strides, self.offset().saturating_mul(ratio))
                .map_err(|e| e.op("view"));
        }
        if !sizes[last].is_multiple_of(ratio) {
            return fail(
                Kind::Shape,
                format!("size(-1) must be divisible by {ratio}"),
            );
        }
        if !self.offset().is_multiple_of(ratio) {
            return fail(
                Kind::Layout,
                format!("storage_offset() must be divisible by {ratio}"),
            );
        }
        for (d, stride) in strides[..last].iter_mut().enumerate() {
            if !stride.is_multiple_of(ratio) {
                return fail(
                    Kind::Layout,
                    format!("stride({d}) must be divisible by {ratio}"),
                );
            }
            *stride /= ratio;
        }
        sizes[last] /= ratio;
        // L1-L3: every number is as before or smaller.
        Ok(Layout::new_unchecked(sizes, strides, self.offset() / ratio))
    }

    /// A complex layout as pairs of reals: a new last dimension of size 2.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the rank or a number overflows.
    pub fn view_as_real(&self) -> Result<Layout> {
        let mut sizes = copied(self.sizes());
        sizes.push(2);
        let mut strides = self.doubled_strides();
        strides.push(1);
        Layout::new(sizes, strides, self.offset().saturating_mul(2))
            .map_err(|e| e.op("view_as_real"))
    }

    /// A real layout whose last dimension holds pairs, as complex numbers.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the last size is not 2, [`Kind::Layout`] when its stride is not 1 or
    /// the offset or another stride (of a size other than 1) is odd.
    pub fn view_as_complex(&self) -> Result<Layout> {
        let fail = |kind, what| {
            Err(Error::new(kind, format!("{what}, but the layout is {self}")).op("view_as_complex"))
        };
        let Some(last) = self
            .rank()
            .checked_sub(1)
            .filter(|&last| self.sizes()[last] == 2)
        else {
            return fail(Kind::Shape, "the last dimension must have size 2");
        };
        if self.strides()[last] != 1 {
            return fail(Kind::Layout, "the last dimension must have stride 1");
        }
        // A dimension of size 1 may have any stride: it is never walked.
        let odd = |(&size, &stride): (&usize, &usize)| size != 1 && !stride.is_multiple_of(2);
        if self.sizes()[..last].iter().zip(self.strides()).any(odd) {
            return fail(
                Kind::Layout,
                "strides of all dimensions but the last must be divisible by 2",
            );
        }
        if !self.offset().is_multiple_of(2) {
            return fail(Kind::Layout, "the storage offset must be divisible by 2");
        }
        let strides = self.strides()[..last]
            .iter()
            .map(|stride| stride / 2)
            .collect();
        // L1-L3: every number is as before or smaller, and the dimension that goes is not 0.
        Ok(Layout::new_unchecked(
            copied(&self.sizes()[..last]),
            strides,
            self.offset() / 2,
        ))
    }

    /// The real parts of a complex layout, as reals.
    ///
    /// # Errors
    /// [`Kind::Shape`] when a number overflows.
    pub fn real(&self) -> Result<Layout> {
        self.part(0).map_err(|e| e.op("real"))
    }

    /// The imaginary parts of a complex layout, as reals.
    ///
    /// # Errors
    /// [`Kind::Shape`] when a number overflows.
    pub fn imag(&self) -> Result<Layout> {
        self.part(1).map_err(|e| e.op("imag"))
    }

    fn part(&self, i: usize) -> Result<Layout> {
        let offset = self.offset().saturating_mul(2).saturating_add(i);
        Layout::new(copied(self.sizes()), self.doubled_strides(), offset)
    }

    fn doubled_strides(&self) -> Dims {
        self.strides()
            .iter()
            .map(|&stride| Layout::stride_of(stride, 2))
            .collect()
    }
}
