//! Reductions, scans and order.

use super::outs;
use crate::{Interpolation, MatrixNorm, Tensor};
use osteon_spec::Result;
use osteon_tensor::Pick;

outs! { out: One;
    /// Computed in the dtype of `out`, whatever it is.
    sum_dims_out of sum_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().sum_out(dims.as_ref(), keepdim, None, out);
    x = [[1.0, 2.0], [3.0, 4.0]]; x.sum_dims_out([0], false, &out); [4.0, 6.0];

    /// Computed in the dtype of `out`, which may be any for integers, and any float for floats.
    nansum_out of nansum(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().nansum_out(dims.as_ref(), keepdim, None, out);
    x = [[1.0, f64::NAN], [3.0, 4.0]]; x.nansum_out([0], false, &out); [4.0, 4.0];

    /// Computed in the dtype of `out`, whatever it is.
    prod_dim_out of prod_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().prod_out(&[dim], keepdim, None, out);
    x = [[1.0, 2.0], [3.0, 4.0]]; x.prod_dim_out(1, false, &out); [2.0, 12.0];

    /// Computed in the dtype of `out`, which has fractions.
    mean_dims_out of mean_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().mean_out(dims.as_ref(), keepdim, None, out);
    x = [[1.0, 2.0], [3.0, 6.0]]; x.mean_dims_out([0], false, &out); [2.0, 4.0];

    /// Computed in the dtype of `out`, which is a float.
    nanmean_out of nanmean(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().nanmean_out(dims.as_ref(), keepdim, None, out);
    x = [[1.0, f64::NAN], [3.0, 4.0]]; x.nanmean_out([1], false, &out); [1.0, 3.5];

    /// It is `bool` or `uint8`.
    any_out of any(&self) reads [self] => self.as_view().any_out(None, false, out);
    x = [0.0, 2.0]; x.any_out(&out); true;

    /// It is `bool` or `uint8`.
    any_dims_out of any_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().any_out(Some(dims.as_ref()), keepdim, out);
    x = [[0.0, 2.0], [0.0, 0.0]]; x.any_dims_out([1], false, &out); [true, false];

    /// It is `bool` or `uint8`.
    all_out of all(&self) reads [self] => self.as_view().all_out(None, false, out);
    x = [0.0, 2.0]; x.all_out(&out); false;

    /// It is `bool` or `uint8`.
    all_dims_out of all_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().all_out(Some(dims.as_ref()), keepdim, out);
    x = [[1.0, 2.0], [0.0, 3.0]]; x.all_dims_out([1], false, &out); [true, false];

    amax_out of amax(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().amax_out(dims.as_ref(), keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.amax_out([0], false, &out); [3.0, 5.0];

    amin_out of amin(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().amin_out(dims.as_ref(), keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.amin_out([0], false, &out); [1.0, 4.0];

    max_out of max(&self) reads [self] => self.as_view().amax_out(&[], false, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.max_out(&out); 5.0;

    min_out of min(&self) reads [self] => self.as_view().amin_out(&[], false, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.min_out(&out); 1.0;

    argmax_out of argmax(&self) reads [self] => self.as_view().argmax_out(None, false, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.argmax_out(&out); 1i64;

    argmax_dim_out of argmax_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().argmax_out(Some(dim), keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.argmax_dim_out(0, false, &out); [1i64, 0];

    argmin_out of argmin(&self) reads [self] => self.as_view().argmin_out(None, false, out);
    x = [[3.0, 5.0], [1.0, 4.0]]; x.argmin_out(&out); 2i64;

    argmin_dim_out of argmin_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().argmin_out(Some(dim), keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.argmin_dim_out(0, false, &out); [0i64, 1];

    /// It may hold any other real dtype with fractions.
    var_out of var(&self, dims: impl AsRef<[isize]>, correction: f64, keepdim: bool) reads [self]
        => self.as_view().var_out(dims.as_ref(), correction, keepdim, out);
    x = [[1.0, 2.0], [3.0, 6.0]]; x.var_out([0], 1.0, false, &out); [2.0, 8.0];

    /// It may hold any other real dtype with fractions.
    std_out of std(&self, dims: impl AsRef<[isize]>, correction: f64, keepdim: bool) reads [self]
        => self.as_view().std_out(dims.as_ref(), correction, keepdim, out);
    x = [[1.0, 2.0], [3.0, 6.0]]; x.std_out([0], 0.0, false, &out); [1.0, 2.0];

    /// It may hold any dtype with fractions.
    logsumexp_out of logsumexp(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().logsumexp_out(dims.as_ref(), keepdim, out);
    x = [[0.0, f64::NEG_INFINITY], [1.0, 1.0]]; x.logsumexp_out([1], false, &out); [0.0, 1.6931471805599453];

    vector_norm_out of vector_norm(&self, order: f64, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().vector_norm_out(order, dims.as_ref(), keepdim, None, out);
    x = [[3.0, 4.0], [6.0, 8.0]]; x.vector_norm_out(2.0, [1], false, &out); [5.0, 10.0];

    /// Through a temporary of the result's size, but for the Frobenius norm.
    matrix_norm_out of matrix_norm(&self, norm: MatrixNorm, dims: [isize; 2], keepdim: bool) reads [self]
        => match norm {
            MatrixNorm::Fro if self.dim() >= 2 && self.size(dims[0])? + self.size(dims[1])? > 0 => {
                self.as_view().vector_norm_out(2.0, &dims, keepdim, None, out)
            }
            _ => self.matrix_norm(norm, dims, keepdim)?.into_out(out, false, "matrix_norm_out"),
        };
    x = [[3.0, 4.0], [6.0, 8.0]]; x.matrix_norm_out(osteon_autograd::MatrixNorm::Order(1.0), [0, 1], false, &out); 12.0;

    /// Computed in the dtype of `out`, which may be any but `bool`.
    cumsum_out of cumsum(&self, dim: isize) reads [self] => self.as_view().cumsum_out(dim, None, out);
    x = [1.0, 2.0, 3.0]; x.cumsum_out(0, &out); [1.0, 3.0, 6.0];

    /// Computed in the dtype of `out`, which may be any but `bool`.
    cumprod_out of cumprod(&self, dim: isize) reads [self] => self.as_view().cumprod_out(dim, None, out);
    x = [1.0, 2.0, 3.0]; x.cumprod_out(0, &out); [1.0, 2.0, 6.0];

    logcumsumexp_out of logcumsumexp(&self, dim: isize) reads [self] => self.as_view().logcumsumexp_out(dim, out);
    x = [1.0, 1.0]; x.logcumsumexp_out(0, &out); [1.0, 1.6931471805599453];

    msort_out of msort(&self) reads [self] => self.as_view().msort_out(out);
    x = [3.0, 1.0, 2.0]; x.msort_out(&out); [1.0, 2.0, 3.0];

    /// Through a temporary of the result's size.
    quantile_out of quantile(&self, q: f64, dim: Option<isize>, keepdim: bool, interpolation: Interpolation) reads [self]
        => self.quantile(q, dim, keepdim, interpolation)?.into_out(out, false, "quantile_out");
    x = [1.0, 2.0, 4.0]; x.quantile_out(0.75, None, false, osteon_autograd::Interpolation::Linear, &out); 3.0;

    /// Through a temporary of the result's size.
    histc_out of histc(&self, bins: usize, min: f64, max: f64) reads [self]
        => self.histc(bins, min, max)?.into_out(out, false, "histc_out");
    x = [0.5, 1.5, 1.6]; x.histc_out(2, 0.0, 2.0, &out); [1.0, 2.0];

    /// Through a temporary of the result's size.
    searchsorted_out of searchsorted(&self, values: &Tensor, right: bool, sorter: Option<&Tensor>)
        reads [self, values]
        => self.as_view().searchsorted_out(values.as_view(), right, sorter.map(Tensor::as_view), out);
    x = [1.0, 2.0, 3.0], v = [2.0, 0.5]; x.searchsorted_out(&v, false, None, &out); [1i64, 0];

    /// Through a temporary of the result's size.
    bucketize_out of bucketize(&self, boundaries: &Tensor, right: bool) reads [self, boundaries]
        => self.bucketize(boundaries, right)?.into_out(out, false, "bucketize_out");
    x = [2.0, 0.5], edges = [1.0, 2.0, 3.0]; x.bucketize_out(&edges, true, &out); [2i64, 0];

    /// Through a temporary of the result's size.
    isin_out of isin(&self, test: &Tensor, invert: bool) reads [self, test]
        => self.isin(test, invert)?.into_out(out, false, "isin_out");
    x = [2.0, 0.5], test = [1.0, 2.0]; x.isin_out(&test, false, &out); [true, false];
}

outs! { out: Two;
    max_dim_out of max_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().max_dim_out(dim, keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.max_dim_out(0, false, out); [3.0, 5.0], [1i64, 0];

    min_dim_out of min_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().min_dim_out(dim, keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.min_dim_out(0, false, out); [1.0, 4.0], [0i64, 1];

    aminmax_out of aminmax(&self, dims: impl AsRef<[isize]>, keepdim: bool) reads [self]
        => self.as_view().aminmax_out(dims.as_ref(), keepdim, out);
    x = [[1.0, 5.0], [3.0, 4.0]]; x.aminmax_out([0], false, out); [1.0, 4.0], [3.0, 5.0];

    cummax_out of cummax(&self, dim: isize) reads [self] => self.as_view().cummax_out(dim, out);
    x = [1.0, 3.0, 2.0]; x.cummax_out(0, out); [1.0, 3.0, 3.0], [0i64, 1, 1];

    cummin_out of cummin(&self, dim: isize) reads [self] => self.as_view().cummin_out(dim, out);
    x = [2.0, 3.0, 1.0]; x.cummin_out(0, out); [2.0, 2.0, 1.0], [0i64, 0, 2];

    sort_out of sort(&self, dim: isize, descending: bool) reads [self]
        => self.as_view().sort_out(dim, descending, out);
    x = [3.0, 1.0, 2.0]; x.sort_out(0, false, out); [1.0, 2.0, 3.0], [1i64, 2, 0];

    topk_out of topk(&self, k: isize, dim: isize, largest: bool) reads [self]
        => self.as_view().topk_out(k, dim, largest, out);
    x = [3.0, 1.0, 2.0]; x.topk_out(2, 0, true, out); [3.0, 2.0], [0i64, 2];

    kthvalue_out of kthvalue(&self, k: isize, dim: isize, keepdim: bool) reads [self]
        => self.as_view().kthvalue_out(k, dim, keepdim, out);
    x = [3.0, 1.0, 2.0]; x.kthvalue_out(2, 0, false, out); 2.0, 2i64;

    median_dim_out of median_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().one_of_each_out(Pick::Median, dim, keepdim, "median_out", out);
    x = [3.0, 1.0, 2.0]; x.median_dim_out(0, false, out); 2.0, 2i64;

    nanmedian_dim_out of nanmedian_dim(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().one_of_each_out(Pick::NanMedian, dim, keepdim, "nanmedian_out", out);
    x = [3.0, f64::NAN, 2.0]; x.nanmedian_dim_out(0, false, out); 2.0, 2i64;

    mode_out of mode(&self, dim: isize, keepdim: bool) reads [self]
        => self.as_view().one_of_each_out(Pick::Mode, dim, keepdim, "mode_out", out);
    x = [3.0, 1.0, 3.0]; x.mode_out(0, false, out); 3.0, 2i64;
}
