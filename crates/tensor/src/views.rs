//! Every operation that only looks: new layouts over the same storage, under PyTorch's names.
//!
//! The rules and their errors are those of [`Layout`]; what is here is the storage.

use crate::View;
use osteon_memory::{Role, here};
use osteon_spec::{DType, Error, Kind, Layout, Result, Sections};

/// `op(arguments) => layout` for operations that give one view.
macro_rules! views {
    ($($(#[doc = $doc:literal])+ $name:ident($($arg:ident: $ty:ty),*);)*) => { impl View { $(
        $(#[doc = $doc])+
        ///
        /// Copies nothing.
        ///
        /// # Errors
        /// Those of the same method of [`Layout`].
        #[track_caller]
        #[inline]
        pub fn $name(&self, $($arg: $ty),*) -> Result<View> {
            self.with_layout(self.layout().$name($($arg),*)?, stringify!($name))
        }
    )* } };
}

/// The same for operations that give several.
macro_rules! several_views {
    ($($(#[doc = $doc:literal])+ $name:ident($($arg:ident: $ty:ty),*);)*) => { impl View { $(
        $(#[doc = $doc])+
        ///
        /// Copies nothing.
        ///
        /// # Errors
        /// Those of the same method of [`Layout`].
        #[track_caller]
        pub fn $name(&self, $($arg: $ty),*) -> Result<Vec<View>> {
            self.each(self.layout().$name($($arg),*)?, stringify!($name))
        }
    )* } };
}

views! {
    /// The same elements, in row-major order, under another shape; one size may be -1.
    view(shape: &[isize]);
    /// Dims in another order.
    permute(dims: &[isize]);
    /// Two dims exchanged.
    transpose(dim0: isize, dim1: isize);
    /// A matrix transposed; a vector or a 0-dim view as it is.
    t();
    /// Some dims moved to other places.
    movedim(source: &[isize], destination: &[isize]);
    /// One index of a dim, which goes.
    select(dim: isize, index: isize);
    /// Indices `start..end` of a dim in steps, clamped to it.
    slice(dim: isize, start: Option<isize>, end: Option<isize>, step: isize);
    /// `length` indices of a dim from `start`.
    narrow(dim: isize, start: isize, length: isize);
    /// A diagonal, as a last dim in place of two.
    diagonal(offset: isize, dim1: isize, dim2: isize);
    /// Windows of `size` along a dim, as a last dim.
    unfold(dim: isize, size: isize, step: isize);
    /// Exactly these sizes, strides and offset over the storage.
    as_strided(sizes: &[isize], strides: &[isize], offset: Option<isize>);
    /// Without those of these dims that have size 1.
    squeeze_dims(dims: &[isize]);
    /// With a dim of size 1 put in.
    unsqueeze(dim: isize);
    /// Dims of size 1, and new ones in front, repeated without memory.
    expand(sizes: &[isize]);
    /// One dim as several.
    unflatten(dim: isize, sizes: &[isize]);
}

several_views! {
    /// Pieces of `size` along a dim, the last one perhaps smaller.
    split(size: isize, dim: isize);
    /// Pieces of these sizes along a dim.
    split_with_sizes(sizes: &[isize], dim: isize);
    /// At most this many pieces along a dim.
    chunk(chunks: isize, dim: isize);
    /// Exactly this many pieces, or pieces between these indices, along a dim.
    tensor_split(sections: Sections<'_>, dim: isize);
    /// `tensor_split` along dim 1, or 0 of a vector.
    hsplit(sections: Sections<'_>);
    /// `tensor_split` along dim 0.
    vsplit(sections: Sections<'_>);
    /// `tensor_split` along dim 2.
    dsplit(sections: Sections<'_>);
    /// Each index of a dim.
    unbind(dim: isize);
}

impl View {
    /// A view of the same elements.
    ///
    /// # Errors
    /// Out of memory, for the view itself.
    #[track_caller]
    pub fn alias(&self) -> Result<View> {
        self.with_layout(self.layout().clone(), "alias")
    }

    /// The same elements as a tensor of its own, not tracked as a view. Copies nothing.
    ///
    /// # Errors
    /// Out of memory, for the view itself.
    #[track_caller]
    pub fn detach(&self) -> Result<View> {
        View::new(
            self.storage().clone(),
            self.layout().clone(),
            self.dtype(),
            "detach",
        )
    }

    /// Without the dims of size 1. Copies nothing.
    ///
    /// # Errors
    /// Out of memory, for the view itself.
    #[track_caller]
    pub fn squeeze(&self) -> Result<View> {
        self.with_layout(self.layout().squeeze(), "squeeze")
    }

    /// Each matrix of a batch transposed (`mT`). Copies nothing.
    ///
    /// # Errors
    /// [`Kind::Shape`] for a vector.
    #[track_caller]
    pub fn mt(&self) -> Result<View> {
        self.with_layout(self.layout().mt()?, "mT")
    }

    /// The pieces of one layout, each a view.
    #[track_caller]
    fn each(&self, layouts: Vec<Layout>, op: &'static str) -> Result<Vec<View>> {
        let mut views = crate::create::reserved(layouts.len(), op)?;
        for layout in layouts {
            views.push(self.with_layout(layout, op)?);
        }
        Ok(views)
    }

    /// The same bytes as elements of another dtype (`view(dtype)`). Copies nothing.
    ///
    /// # Errors
    /// Those of [`Layout::view_dtype`].
    #[track_caller]
    pub fn view_dtype(&self, dtype: DType) -> Result<View> {
        let layout = self.layout().view_dtype(self.dtype(), dtype)?;
        View::new(self.storage().clone(), layout, dtype, "view")
    }

    #[track_caller]
    fn retyped(&self, layout: Layout, dtype: DType, op: &'static str) -> Result<View> {
        let viewer = self.viewer();
        viewer
            .beside(layout, dtype, op, here(), Role::View)
            .map(View)
    }

    fn check_complex(&self, op: &'static str) -> Result<()> {
        if self.dtype().is_complex() {
            return Ok(());
        }
        Err(Error::new(
            Kind::DType,
            format!("needs a complex tensor, got {}", self.dtype()),
        )
        .op(op))
    }

    /// Real and imaginary parts as a last dim of size 2. Copies nothing.
    ///
    /// # Errors
    /// [`Kind::DType`] for real tensors.
    #[track_caller]
    pub fn view_as_real(&self) -> Result<View> {
        let op = "view_as_real";
        self.check_complex(op)?;
        self.retyped(self.layout().view_as_real()?, self.dtype().to_real(), op)
    }

    /// Pairs in a last dim of size 2 as complex numbers. Copies nothing.
    ///
    /// # Errors
    /// [`Kind::DType`] unless float32 or float64; those of [`Layout::view_as_complex`].
    #[track_caller]
    pub fn view_as_complex(&self) -> Result<View> {
        let op = "view_as_complex";
        if !matches!(self.dtype(), DType::F32 | DType::F64) {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "needs float32 or float64, got {}; cast with to() first",
                    self.dtype()
                ),
            )
            .op(op));
        }
        self.retyped(
            self.layout().view_as_complex()?,
            self.dtype().to_complex(),
            op,
        )
    }

    /// The real parts: a view of a complex tensor, a real tensor itself. Copies nothing.
    ///
    /// # Errors
    /// Out of memory, for the view itself.
    #[track_caller]
    pub fn real(&self) -> Result<View> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        self.retyped(self.layout().real()?, self.dtype().to_real(), "real")
    }

    /// The imaginary parts. Copies nothing.
    ///
    /// # Errors
    /// [`Kind::DType`] for real tensors.
    #[track_caller]
    pub fn imag(&self) -> Result<View> {
        self.check_complex("imag")?;
        self.retyped(self.layout().imag()?, self.dtype().to_real(), "imag")
    }
}
