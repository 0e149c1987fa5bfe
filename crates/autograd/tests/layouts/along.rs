//! Along dims: reductions, norms, scans, order, and losses.

use crate::rows::{Row, plain, rows};
use osteon_autograd::functional::{self, Average, Classes, Pool, Reduction};
use osteon_autograd::{BatchNorm, Interpolation, MatrixNorm};
use osteon_spec::DType;

pub const PLAIN: &[Row] = plain! { (x):
    sum prod mean any all max min argmax argmin median nanmedian msort unique unique_consecutive
};

pub const REDUCTIONS: &[Row] = rows! {
    "sum_dims": x => x.sum_dims([0, 2], false);
    "sum_dims": x => x.sum_dims([1], true);
    "sum_in": x => x.sum_in([1], false, DType::F64);
    "prod_dim": x => x.prod_dim(1, false);
    "prod_in": x => x.prod_in(Some(0), true, DType::F64);
    "mean_dims": x => x.mean_dims([-1], false);
    "mean_in": x => x.mean_in([0, 1], false, DType::F64);
    "nansum": x => x.nansum([0], false);
    "nansum_in": x => x.nansum_in([0], false, DType::F64);
    "nanmean_in": x => x.nanmean_in([1], true, DType::F64);
    "nanmean": x => x.nanmean([1, 2], true);
    "any_dims": x => x.any_dims([1], false);
    "all_dims": x => x.all_dims([0], true);
    "count_nonzero": x => x.count_nonzero([0, 2]);
    "amax": x => x.amax([0], false);
    "amin": x => x.amin([1, 2], true);
    "aminmax": x => x.aminmax([1], false);
    "max_dim": x => x.max_dim(0, false);
    "min_dim": x => x.min_dim(2, true);
    "argmax_dim": x => x.argmax_dim(1, false);
    "argmin_dim": x => x.argmin_dim(0, true);
    "var": x => x.var([0, 1], 1.0, false);
    "std": x => x.std([2], 0.0, true);
    "var_mean": x => x.var_mean([1], 1.0, false);
    "std_mean": x => x.std_mean([0], 1.0, false);
    "logsumexp": x => x.logsumexp([0, 2], false);
    "trace": a => a.trace();
    "sum_to_size": x => x.sum_to_size([3, 1]);
    "vector_norm": x => x.vector_norm(2.0, [1], false);
    "vector_norm": x => x.vector_norm(f64::INFINITY, [0, 2], true);
    "vector_norm_in": x => x.vector_norm_in(3.0, [0], false, DType::F64);
    "norm": x => x.norm(2.0);
    "matrix_norm": x => x.matrix_norm(MatrixNorm::Fro, [0, 2], false);
    "matrix_norm": x => x.matrix_norm(MatrixNorm::Order(1.0), [1, 2], false);
    "dist": x y => x.dist(y, 2.0);
    "softmax": x => x.softmax(1);
    "softmax": x => x.softmax(-1);
    "softmax_in": x => x.softmax_in(0, DType::F64);
    "log_softmax": x => x.log_softmax(0);
    "log_softmax_in": x => x.log_softmax_in(2, DType::F64);
    "softmin": x => x.softmin(2);
    "softmin_in": x => x.softmin_in(1, DType::F64);
    "layer_norm": x b => x.layer_norm([3, 4], Some(b), None, 1e-5);
    "rms_norm": x v => x.rms_norm([4], Some(v), None);
    "batch_norm": x h g => x.batch_norm(&BatchNorm {
        weight: Some(h),
        bias: Some(g),
        training: true,
        ..BatchNorm::default()
    });
    "batch_norm": x h g => x.batch_norm(&BatchNorm { running: Some((h, g)), ..BatchNorm::default() });
    "group_norm": image v w => image.group_norm(2, Some(v), Some(w), 1e-5);
    "instance_norm_with": x h g => x.instance_norm_with(&BatchNorm {
        running: Some((h, g)),
        ..BatchNorm::default()
    });
    "instance_norm": x h g => x.instance_norm(Some(h), Some(g), 1e-5);
    "normalize": x => x.normalize(2.0, 1, 1e-12);
    "cosine_similarity": x y => x.cosine_similarity(y, 1, 1e-8);

    "cumsum": x => x.cumsum(0);
    "cumsum": x => x.cumsum(-1);
    "cumsum_in": x => x.cumsum_in(1, DType::F64);
    "cumprod": x => x.cumprod(1);
    "cumprod_in": x => x.cumprod_in(0, DType::F64);
    "cummax": x => x.cummax(0);
    "cummin": x => x.cummin(1);
    "logcumsumexp": x => x.logcumsumexp(2);
};

pub const ORDER: &[Row] = rows! {
    "sort": x => x.sort(0, false);
    "sort": x => x.sort(-1, true);
    "argsort": x => x.argsort(1, false);
    "topk": x => x.topk(2, 0, true);
    "topk": x => x.topk(2, 2, false);
    "kthvalue": x => x.kthvalue(2, 1, false);
    "median_dim": x => x.median_dim(0, false);
    "nanmedian_dim": x => x.nanmedian_dim(2, true);
    "mode": x => x.mode(0, false);
    "unique_dim": x => x.unique_dim(1);
    "unique_consecutive_dim": x => x.unique_consecutive_dim(0);
    "isin": x v => x.isin(v, false);
    "searchsorted": x y => x.sort(-1, false)?.0.searchsorted(y, false, None);
    "searchsorted": v x => v.sort(0, false)?.0.searchsorted(x, true, None);
    "searchsorted": x y => x.searchsorted(y, true, Some(&x.argsort(-1, false)?));
    "bucketize": x v => x.bucketize(&v.sort(0, false)?.0, true);
    "bincount": n h => n.bincount(Some(h), 4);
    "histc": x => x.histc(5, -3.0, 3.0);
    "quantile": x => x.quantile(0.3, Some(1), false, Interpolation::Linear);
    "quantile": x => x.quantile(0.7, None, false, Interpolation::Nearest);
    "quantiles": x o => x.quantiles(o, Some(0), true, Interpolation::Lower);
    "one_hot": k => k.one_hot(Some(3));
};

pub const LOSSES: &[Row] = rows! {
    "functional::mse_loss": x y => functional::mse_loss(x, y, Reduction::Mean);
    "functional::l1_loss": x y => functional::l1_loss(x, y, Reduction::None);
    "functional::smooth_l1_loss": x y => functional::smooth_l1_loss(x, y, 1.0, Reduction::Sum);
    "functional::huber_loss": x y => functional::huber_loss(x, y, 1.0, Reduction::Mean);
    "functional::kl_div": x e => functional::kl_div(x, e, false, Reduction::BatchMean);
    "functional::binary_cross_entropy": e f y => functional::binary_cross_entropy(e, f, Some(y), Reduction::None);
    "functional::binary_cross_entropy_with_logits": x e v =>
        functional::binary_cross_entropy_with_logits(x, e, None, Some(v), Reduction::Mean);
    "functional::nll_loss": a k h => functional::nll_loss(a, k, &Classes { weight: Some(h), ..Classes::default() });
    "functional::cross_entropy": a k => functional::cross_entropy(a, k, &Classes::default());
    "functional::cross_entropy": a k h => functional::cross_entropy(a, k, &Classes {
        weight: Some(h),
        label_smoothing: 0.1,
        ..Classes::default()
    });
};

fn windows() -> Pool<2> {
    Pool {
        padding: [1, 1],
        stride: Some([2, 1]),
        ..Pool::new([3, 2])
    }
}

pub const POOLING: &[Row] = rows! {
    "functional::max_pool2d": image => functional::max_pool2d(image, &windows());
    "functional::max_pool2d_with_indices": image => functional::max_pool2d_with_indices(image, &windows());
    "functional::max_pool1d": line => functional::max_pool1d(line, &Pool::new([2]));
    "functional::max_pool1d_with_indices": line => functional::max_pool1d_with_indices(line, &Pool::new([3]));
    "functional::avg_pool2d": image => functional::avg_pool2d(image, &windows(), Average::default());
    "functional::avg_pool1d": line => functional::avg_pool1d(line, &Pool::new([2]), Average::default());
    "functional::adaptive_avg_pool2d": image => functional::adaptive_avg_pool2d(image, [Some(2), None]);
    "functional::unfold": image => functional::unfold(image, [2, 3], [1, 1], [1, 0], [2, 1]);
};
