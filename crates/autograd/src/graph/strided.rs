//! The derivative of any view, by where its elements lie in its base.

use super::{Back, Geometry, Grads, Rule, one};
use crate::Tensor;
use osteon_spec::{DType, Dims, Layout, Result};

/// A view of `base`, both as layouts over one storage.
pub(crate) struct Strided {
    base: Geometry,
    view: Geometry,
}

/// The elements of a complex geometry as pairs of real ones.
fn real(g: &Geometry) -> Result<Layout> {
    if g.dtype.is_complex() {
        g.layout.view_as_real()
    } else {
        Ok(g.layout.clone())
    }
}

/// Dims that are walked: sizes other than 1.
fn walked(layout: &Layout) -> impl Iterator<Item = (usize, usize)> + '_ {
    let dims = layout
        .sizes()
        .iter()
        .copied()
        .zip(layout.strides().iter().copied());
    dims.filter(|&(size, _)| size != 1)
}

fn from_dims(dims: &[(usize, usize)], offset: usize) -> Result<Layout> {
    let (sizes, strides): (Dims, Dims) = dims.iter().copied().unzip();
    Layout::new(sizes, strides, offset)
}

impl Strided {
    pub fn new(base: &Geometry, view: Geometry) -> Strided {
        Strided {
            base: base.clone(),
            view,
        }
    }

    /// The view that `look` makes of a row-major tensor of `of`'s shape: how most operations' gradients lie.
    pub fn over(of: &Tensor, look: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Strided> {
        let base = Geometry {
            layout: Layout::contiguous(of.shape())?,
            dtype: of.dtype(),
            device: of.device(),
        };
        let view = Geometry {
            layout: look(&base.layout)?,
            ..base.clone()
        };
        Ok(Strided { base, view })
    }

    /// The same for a view of the elements as another dtype.
    pub fn as_dtype(
        of: &Tensor,
        dtype: DType,
        look: impl FnOnce(&Layout) -> Result<Layout>,
    ) -> Result<Strided> {
        let mut strided = Strided::over(of, look)?;
        strided.view.dtype = dtype;
        Ok(strided)
    }

    /// The layouts of both over elements of one dtype, and that dtype.
    fn aligned(&self) -> Result<(Layout, Layout, DType)> {
        if self.base.dtype == self.view.dtype {
            return Ok((
                self.base.layout.clone(),
                self.view.layout.clone(),
                self.base.dtype,
            ));
        }
        Ok((
            real(&self.base)?,
            real(&self.view)?,
            self.base.dtype.to_real(),
        ))
    }

    /// A copy of `gradient`, laid out as the base is.
    pub fn base_copy(&self, gradient: &Tensor) -> Result<Tensor> {
        let g = &self.base;
        let out = match g.dense()? {
            Some(out) => out,
            None => {
                let layout = g.layout.with_offset(0)?;
                let len = layout.each_once().required_len();
                strided(&Tensor::zeros([len], g.dtype, &g.device)?, &layout)?
            }
        };
        out.copy_(gradient)?;
        Ok(out)
    }

    /// The part of `outer`, which is laid out as the base is, that the view looks at.
    pub fn look(&self, outer: &Tensor) -> Result<Tensor> {
        let (base, view, _) = self.aligned()?;
        let outer = if self.base.dtype.is_complex() && !self.view.dtype.is_complex() {
            outer.view_as_real()?
        } else {
            outer.clone()
        };
        let offset = view.offset().checked_sub(base.offset());
        let offset = offset.ok_or_else(|| {
            osteon_spec::Error::new(
                osteon_spec::Kind::Autograd,
                format!("the view {view} begins before its base {base}, so that no gradient of the base covers it"),
            )
        })?;
        let looked = strided(&outer, &view.with_offset(offset)?)?;
        if self.view.dtype.is_complex() && !self.base.dtype.is_complex() {
            looked.view_as_complex()
        } else {
            Ok(looked)
        }
    }
}

/// `as_strided` by a layout.
fn strided(tensor: &Tensor, layout: &Layout) -> Result<Tensor> {
    let list = |values: &[usize]| values.iter().map(|&n| n as isize).collect::<Vec<_>>();
    tensor.as_strided(
        list(layout.sizes()),
        list(layout.strides()),
        Some(layout.offset() as isize),
    )
}

impl Rule for Strided {
    /// Each element of the view adds its gradient to the place where it lies; elements of the base that share a place
    /// share the sum, as PyTorch has it.
    fn backward(&self, back: &Back<'_>) -> Result<Grads> {
        let (base, view, dtype) = self.aligned()?;
        let gradient = back.grad()?;
        let device = &self.base.device;
        if base.numel() == 0 {
            return one(Tensor::zeros(
                self.base.layout.sizes(),
                self.base.dtype,
                device,
            )?);
        }
        let mut g = if self.view.dtype == dtype {
            gradient
        } else {
            gradient.view_as_real()?
        };
        // Repeated elements first.
        let repeated: Vec<isize> = (0..view.rank())
            .filter(|&d| view.strides()[d] == 0 && view.sizes()[d] != 1)
            .map(|d| d as isize)
            .collect();
        if !repeated.is_empty() {
            g = g.sum_dims(&repeated, true)?;
        }
        let out: Vec<_> = walked(&view).filter(|&(_, stride)| stride != 0).collect();
        let inp: Vec<_> = walked(&base).collect();
        let shared = base.offset().min(view.offset());
        let out = from_dims(&out, view.offset() - shared)?;
        let inp = from_dims(&inp, base.offset() - shared)?;
        let len = inp.required_len().max(if view.numel() == 0 {
            0
        } else {
            out.required_len()
        });
        let places = |layout: &Layout| {
            strided(
                &Tensor::arange_in(0, len as i64, 1, DType::I64, device)?,
                layout,
            )?
            .reshape([-1])
        };
        let mut whole = Tensor::zeros([len], dtype, device)?;
        let sizes: Vec<isize> = out.sizes().iter().map(|&n| n as isize).collect();
        if view.numel() == 0 {
        } else if out.overlaps_itself().unwrap_or(true) {
            whole = whole.index_add(0, &places(&out)?, &g.reshape([-1])?, 1)?;
        } else {
            strided(&whole, &out)?.copy_(&g.reshape(sizes)?)?;
        }
        if inp.overlaps_itself().unwrap_or(true) {
            let ones = Tensor::ones([inp.numel()], dtype, device)?;
            let count = Tensor::zeros([len], dtype, device)?;
            count.index_add_(0, &places(&inp)?, &ones, 1)?;
            // Places that no element of the base lies at are not looked at.
            whole = whole.div(&count)?;
        }
        let looked = strided(&whole, &base.with_offset(base.offset() - shared)?)?;
        one(if self.base.dtype == dtype {
            looked
        } else {
            looked.view_as_complex()?
        })
    }
}

/// The derivative of an operation that looks at a tensor in several pieces.
pub(crate) struct Parts {
    base: Geometry,
    pieces: Vec<Layout>,
}

impl Parts {
    /// The pieces that `look` makes of a row-major tensor of `of`'s shape.
    pub fn of(of: &Tensor, look: impl FnOnce(&Layout) -> Result<Vec<Layout>>) -> Result<Parts> {
        let base = Geometry {
            layout: Layout::contiguous(of.shape())?,
            dtype: of.dtype(),
            device: of.device(),
        };
        Ok(Parts {
            pieces: look(&base.layout)?,
            base,
        })
    }
}

impl Rule for Parts {
    fn backward(&self, back: &Back<'_>) -> Result<Grads> {
        let g = &self.base;
        let whole = Tensor::zeros(g.layout.sizes(), g.dtype, &g.device)?;
        for (k, piece) in self.pieces.iter().enumerate() {
            if let Some(gradient) = back.grad_of(k) {
                strided(&whole, piece)?.copy_(gradient)?;
            }
        }
        one(whole)
    }
}
