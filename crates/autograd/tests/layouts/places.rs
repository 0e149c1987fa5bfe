//! Products, indices and arrangements.

use crate::rows::{Row, plain, rows};
use osteon_autograd::functional::{self, Attention, Conv, ConvTranspose};
use osteon_autograd::{Index, Indexing, PadMode, Reduce, Tensor};
use osteon_spec::Scalar;

pub const PRODUCTS: &[Row] = rows! {
    "matmul": a b => a.matmul(b);
    "matmul": p b => p.matmul(b);
    "matmul": s x => s.matmul(&x.transpose(1, 2)?);
    "mm": a b => a.mm(b);
    "bmm": p q => p.bmm(q);
    "mv": a h => a.mv(h);
    "dot": v w => v.dot(w);
    "vdot": v w => v.vdot(w);
    "outer": v h => v.outer(h);
    "kron": x q => x.kron(q);
    "inner": x v => x.inner(v);
    "vecdot": x y => x.vecdot(y, 1);
    "cross": x y => x.cross(y, 1);
    "tensordot": x q => x.tensordot(q, [1, 2], [1, 2]);
    "einsum": p q => Tensor::einsum("bij,bjk->ki", &[p, q]);
    "einsum": s => Tensor::einsum("ii->i", &[s]);
    "multi_dot": a b s => Tensor::multi_dot(&[a, b, s]);
    "matrix_power": s => s.matrix_power(3);
    "inverse": r => r.inverse();
    "singular_values": a => a.singular_values();
    "addmm": s a b => s.addmm(a, b);
    "addmm_scaled": v a b => v.addmm_scaled(a, b, 2, 3);
    "addmv": v a h => v.addmv(a, h);
    "addmv_scaled": v a h => v.addmv_scaled(a, h, 2, 3);
    "addr": s v w => s.addr(v, w, 2, 3);
    "addbmm": s p q => s.addbmm(p, q);
    "addbmm_scaled": s p q => s.addbmm_scaled(p, q, 2, 3);
    "baddbmm": r p q => r.baddbmm(p, q);
    "baddbmm_scaled": s p q => s.baddbmm_scaled(p, q, 2, 3);
    "functional::linear": x s v => functional::linear(x, s, Some(v));
    "functional::conv1d": line taps => functional::conv1d(line, taps, None, &Conv::default());
    "functional::conv2d": image kernel => functional::conv2d(image, kernel, None, &Conv {
        stride: [2, 1],
        ..Conv::default()
    });
    "functional::conv_transpose2d": image kernel =>
        functional::conv_transpose2d(&image.narrow(1, 0, 2)?, kernel, None, &ConvTranspose::default());
    "functional::scaled_dot_product_attention": r p q =>
        functional::scaled_dot_product_attention(r, &q.transpose(1, 2)?.matmul(q)?, p, &Attention {
            is_causal: true,
            ..Attention::default()
        });
    "functional::embedding": i a => functional::embedding(i, a);
};

pub const INDICES: &[Row] = rows! {
    "argwhere": x => x.argwhere();
    "nonzero": x => x.nonzero();
    "diagonal_scatter": s v => s.diagonal_scatter(v, 0, 0, 1);
    "gather": x i => x.gather(1, i);
    "i": x n => x.i([Index::Ellipsis, n.into(), 1.into()]);
    "i": x m => x.i([m.into()]);
    "i": x => x.i([Index::from(1..), Index::NewAxis, Index::from(0)]);
    "index_add": x n y => x.index_add(1, n, y, 2);
    "index_copy": x n y => x.index_copy(1, n, y);
    "index_fill": x n => x.index_fill(2, n, 1);
    "index_put": x n v => x.index_put([Index::from(..), n.into()], v);
    "index_put_accumulate": x n v => x.index_put_accumulate([Index::from(..), n.into()], v);
    "index_select": x n => x.index_select(0, n);
    "index_select": x n => x.index_select(2, n);
    "masked_scatter": x m y => x.masked_scatter(m, y);
    "masked_select": x m => x.masked_select(m);
    "put": x i y => x.put(i, y, false);
    "put": x i y => x.put(i, y, true);
    "scatter": x i y => x.scatter(1, i, y);
    "scatter": x i => x.scatter(2, i, 1);
    "scatter_add": x i y => x.scatter_add(0, i, y);
    "scatter_reduce": x i y => x.scatter_reduce(1, i, y, Reduce::Amax, true);
    "scatter_reduce": x i y => x.scatter_reduce(2, i, y, Reduce::Mean, false);
    "select_scatter": x b => x.select_scatter(b, 0, 2);
    "slice_scatter": x q => x.slice_scatter(q, 0, 1.., 2);
    "take": x i => x.take(i);
    "take_along_dim": x i => x.take_along_dim(i, Some(2));
    "take_along_dim": x i => x.take_along_dim(i, None);
};

pub const PLAIN: &[Row] = plain! { (x): fliplr flipud };

pub const ARRANGEMENTS: &[Row] = rows! {
    "block_diag": a s v => Tensor::block_diag(&[a, s, v]);
    "broadcast_tensors": x v => Tensor::broadcast_tensors(&[x, v]);
    "cartesian_prod": v h => Tensor::cartesian_prod(&[v, h]);
    "cat": x y => Tensor::cat(&[x, y], 1);
    "cat": x i => Tensor::cat(&[x, i], 0);
    "column_stack": v a => Tensor::column_stack(&[v, a]);
    "combinations": v => v.combinations(2, false);
    "diag": v => v.diag(1);
    "diag": a => a.diag(-1);
    "diag_embed": x => x.diag_embed(1, 0, 2);
    "diagflat": x => x.diagflat(-1);
    "diff": x => x.diff(1, 0, None, None);
    "diff": x y => x.diff(2, 1, Some(y), None);
    "dstack": a s => Tensor::dstack(&[a, &s.narrow(1, 0, 3)?]);
    "flip": x => x.flip([0, 2]);
    "hstack": x y => Tensor::hstack(&[x, y]);
    "meshgrid": v h => Tensor::meshgrid(&[v, h], Indexing::Xy);
    "pad": x => x.pad([1, 2, -1, 1], PadMode::Constant(Scalar::Int(1)));
    "pad": x => x.pad([1, 2], PadMode::Reflect);
    "pad": image => image.pad([1, 2, 2, 0], PadMode::Replicate);
    "pad": x => x.pad([1, 2], PadMode::Circular);
    "pixel_shuffle": image => image.pixel_shuffle(2);
    "repeat": x => x.repeat([2, 1, 2, 3]);
    "repeat_interleave": x => x.repeat_interleave(2, Some(1));
    "repeat_interleave": x => x.repeat_interleave(2, None);
    "repeat_interleave_each": x n => x.repeat_interleave_each(n, Some(1));
    "roll": x => x.roll([1, -1], [0, 2]);
    "roll": x => x.roll([5], []);
    "rot90": x => x.rot90(1, [0, 2]);
    "rot90": x => x.rot90(-1, [1, 2]);
    "stack": x y => Tensor::stack(&[x, y], 1);
    "tile": x => x.tile([2, 2]);
    "trapezoid": x => x.trapezoid(0.5, 1);
    "trapezoid_at": x y => x.trapezoid_at(y, 0);
    "tril": x => x.tril(1);
    "triu": x => x.triu(-1);
    "vstack": x y => Tensor::vstack(&[x, y]);
    "where": x m y => x.r#where(m, y);
    "where": v m => v.r#where(m, 1);
    "where_numbers": m => Tensor::where_numbers(m, 1, 2.5);
};
