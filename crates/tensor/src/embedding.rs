//! Rows by index.

use crate::View;
use crate::index::{Indexed, Move, Pointer, Walk, check_index};
use osteon_spec::{Dims, Error, Kind, Layout, Result};

impl View {
    /// The rows of this matrix that indices of any shape name, each index replaced by its row, in a new tensor.
    ///
    /// # Errors
    /// Anything but a matrix; an index out of range (negative ones are), or of another dtype than int64 and int32; guards;
    /// out of memory.
    #[track_caller]
    pub fn embedding(&self, indices: &View) -> Result<View> {
        let op = "embedding";
        let (&[rows, width], &[row, column]) = (self.shape(), self.stride()) else {
            return Err(Error::new(
                Kind::Shape,
                format!("the weight must be a matrix, got shape {:?}", self.shape()),
            )
            .op(op));
        };
        check_index(indices, self, true, op)?;
        let mut shape = Dims::from_slice(indices.shape());
        shape.push(width);
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(op))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        let mut positions = Walk::default();
        for (&size, &stride) in indices.shape().iter().zip(out.stride()) {
            positions.push(size, stride, 0);
        }
        let mut slice = Walk::default();
        slice.push(width, 1, column);
        let pointers = [Pointer {
            index: indices,
            size: rows,
            stride: row,
            wrap: false,
        }];
        Indexed {
            positions,
            slice,
            pointers: &pointers,
        }
        .run(Move::Get, &out, self.into(), op)?;
        Ok(out)
    }
}
