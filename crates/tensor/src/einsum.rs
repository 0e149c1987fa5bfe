//! What of `einsum` is computed: sums of products of two aligned operands.

use crate::View;
use crate::matmul::Contract;
use crate::target::Target;
use osteon_spec::{Dims, Layout, Result};

const NAME: &str = "einsum";

impl View {
    /// The product of two views of one rank that broadcast, summed over the dims `together`, which both have and which
    /// stay with size 1. What dims of the result lie next to each other is as in PyTorch, whose kernel multiplies batches of
    /// matrices. Operands are read as they are.
    ///
    /// # Errors
    /// Different dtypes, or one without products; guards; out of memory.
    #[track_caller]
    pub fn aligned_product(&self, other: &View, together: &[usize]) -> Result<View> {
        let (a, b) = (self, other);
        let rank = a.dim();
        let size = |d: usize| {
            if a.shape()[d] == 1 {
                b.shape()[d]
            } else {
                a.shape()[d]
            }
        };
        let (mut batch, mut left, mut right) = (vec![], vec![], vec![]);
        for d in (0..rank).filter(|d| !together.contains(d)) {
            match (a.shape()[d] != 1, b.shape()[d] != 1) {
                (true, true) => batch.push(d),
                (true, false) => left.push(d),
                (false, true) => right.push(d),
                (false, false) => {}
            }
        }
        if let (Some(&first), Some(&last)) = (left.first(), right.last())
            && last < first
        {
            (left, right) = (right, left);
        }
        let memory: Vec<usize> = [batch, left, together.to_vec(), right].concat();
        let result: Dims = (0..rank)
            .map(|d| if together.contains(&d) { 1 } else { size(d) })
            .collect();
        let (mut strides, mut step) = (Dims::from_elem(0, rank), 1usize);
        for &d in memory.iter().rev() {
            strides[d] = step;
            step = step.saturating_mul(result[d].max(1));
        }
        // A dim of size 1 in both is put in afterwards, as `unsqueeze` would.
        for d in (0..rank).rev().filter(|d| !memory.contains(d)) {
            strides[d] = if d + 1 < rank {
                result[d + 1].saturating_mul(strides[d + 1])
            } else {
                1
            };
        }
        let layout = Layout::new(result, strides, 0).map_err(|e| e.op(NAME))?;
        let stride = |v: &View, d: usize| if v.shape()[d] == 1 { 0 } else { v.stride()[d] };
        let mut contract = Contract::new(Target::fresh(NAME), a, b);
        for d in 0..rank {
            if together.contains(&d) {
                contract.keep(1, 0, 0);
                contract.sum(size(d), stride(a, d), stride(b, d));
            } else {
                contract.keep(size(d), stride(a, d), stride(b, d));
            }
        }
        contract.laid_out(layout)
    }
}
