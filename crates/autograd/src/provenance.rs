//! Where a tensor's elements came from.

use crate::Tensor;
use osteon_memory::Provenance;

impl Tensor {
    /// Where the elements came from: this is a view of what, or a copy by which operation for which reason. Reads
    /// what is known anyway.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_memory::{CopyReason, How};
    /// let x = Tensor::arange(0, 6, 1)?.view([2, 3])?;
    /// let t = x.t()?;
    /// assert_eq!((t.provenance().how, t.provenance().storage), (How::View, x.storage().id()));
    /// let flat = t.reshape([6])?; // strides cannot express it
    /// assert_eq!(flat.provenance().copy, Some((CopyReason::Reshape, x.storage().id())));
    /// println!("{}", flat.provenance()); // copy by reshape at src/main.rs:5: storage 2, a copy of storage 1 (…)
    /// assert_eq!((&x + &x)?.provenance().how, How::Result);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn provenance(&self) -> Provenance {
        Provenance::of(self.as_view().viewer())
    }
}
