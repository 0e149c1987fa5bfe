//! Look-ups, attention with dropout, Kronecker products, running statistics and random complex numbers, against
//! PyTorch's recorded numbers, sums by hand, and chance.

use num_complex::Complex;
use osteon_autograd::functional::{self, Attention, Embedding};
use osteon_autograd::{BatchNorm, Tensor, manual_seed};
use osteon_spec::{DType, Device, Result};

fn weight() -> Tensor {
    Tensor::new([[3f32, 4.0], [0.3, 0.4], [6.0, 8.0]]).unwrap()
}

fn assert_close(x: &Tensor, expected: &[f64]) {
    let found = x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(close),
        "{found:?} instead of {expected:?}"
    );
}

#[test]
fn rows_that_are_looked_up_are_scaled_down_in_place() -> Result<()> {
    let (weight, indices) = (weight(), Tensor::new([0i64, 1, 0])?);
    let how = Embedding {
        max_norm: Some(1.0),
        ..Embedding::default()
    };
    let rows = functional::embedding_with(&indices, &weight, &how)?;
    // PyTorch's.
    assert_close(&rows, &[0.6, 0.8, 0.3, 0.4, 0.6, 0.8]);
    assert_close(&weight, &[0.6, 0.8, 0.3, 0.4, 6.0, 8.0]);
    assert_eq!(weight.version(), 1);
    let how = Embedding {
        max_norm: Some(7.0),
        norm_type: 1.0,
        ..how
    };
    functional::embedding_with(&Tensor::new([[2i64]])?, &weight, &how)?;
    assert_close(&weight, &[0.6, 0.8, 0.3, 0.4, 3.0, 4.0]);
    let bad = functional::embedding_with(&Tensor::new([0i64, 3])?, &weight, &how);
    assert!(bad.is_err() && weight.version() == 2);
    Ok(())
}

#[test]
fn a_padding_index_is_in_range_and_changes_no_number() -> Result<()> {
    let indices = Tensor::new([2i64, 0])?;
    for padding in [-4, -3, 2, 3] {
        let how = Embedding {
            padding_idx: Some(padding),
            ..Embedding::default()
        };
        let rows = functional::embedding_with(&indices, &weight(), &how);
        assert_eq!(rows.is_ok(), (-3..3).contains(&padding));
        if let Ok(rows) = rows {
            assert_close(&rows, &[6.0, 8.0, 3.0, 4.0]);
        }
    }
    Ok(())
}

#[test]
fn a_kronecker_product_is_that_of_its_definition() -> Result<()> {
    let number = |shape: &[usize], from: i64| {
        let n = shape.iter().product::<usize>() as i64;
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        Tensor::arange(from, from + n, 1)?.view(shape)
    };
    let pairs = [
        (number(&[2, 3], 1)?, number(&[3, 2], 5)?),
        (number(&[2, 3], 1)?.t()?, number(&[3, 2], 5)?.t()?),
        (number(&[3], 1)?, number(&[2, 1, 2], 5)?),
        (number(&[2, 1, 2], 1)?, number(&[], 5)?),
        (number(&[0, 2], 1)?, number(&[2, 2], 5)?),
    ];
    for (a, b) in pairs {
        let product = a.kron(&b)?;
        let rank = a.dim().max(b.dim());
        let padded = |t: &Tensor| [vec![1; rank - t.dim()], t.shape().to_vec()].concat();
        let (m, n) = (padded(&a), padded(&b));
        let shape: Vec<usize> = m.iter().zip(&n).map(|(m, n)| m * n).collect();
        assert_eq!(
            (product.shape(), product.is_contiguous()),
            (&shape[..], true)
        );
        let (x, y) = (a.to_vec::<i64>()?, b.to_vec::<i64>()?);
        let mut expected = Vec::new();
        for i in 0..shape.iter().product() {
            let (mut rest, mut place) = (i, vec![0; rank]);
            for d in (0..rank).rev() {
                place[d] = rest % shape[d];
                rest /= shape[d];
            }
            let (mut of_a, mut of_b) = (0, 0);
            for d in 0..rank {
                of_a = of_a * m[d] + place[d] / n[d];
                of_b = of_b * n[d] + place[d] % n[d];
            }
            expected.push(x[of_a] * y[of_b]);
        }
        assert_eq!(product.to_vec::<i64>()?, expected);
        let out = Tensor::zeros(shape, DType::F64, &Device::cpu())?;
        a.kron_out(&b, &out)?;
        assert!(out.equal(&product.to(DType::F64)?)?);
    }
    let (x, y) = (Tensor::new([1f32, 2.0])?, Tensor::new(3f64)?);
    assert_eq!(x.kron(&y)?.dtype(), DType::F64);
    assert!(x.kron_out(&x, &x).unwrap_err().is_shape());
    let whole = Tensor::new([1f32, 2.0, 3.0, 4.0])?;
    let part = whole.narrow(0, 0, 2)?;
    assert!(part.kron_out(&x, &whole).unwrap_err().is_overlap());
    Ok(())
}

#[test]
fn dropped_weights_are_zero_and_the_others_larger() -> Result<()> {
    manual_seed(3);
    let n = 64usize;
    let query = Tensor::randn([n, 4], DType::F64, &Device::cpu())?;
    let value = Tensor::eye(n, DType::F64, &Device::cpu())?;
    let attend = |dropout_p| {
        let how = Attention {
            dropout_p,
            ..Attention::default()
        };
        functional::scaled_dot_product_attention(&query, &query, &value, &how)
    };
    // With these values the result is the weights.
    let (weights, thinned) = (
        attend(0.0)?.to_vec::<f64>()?,
        attend(0.25)?.to_vec::<f64>()?,
    );
    let mut dropped = 0;
    for (w, t) in weights.iter().zip(&thinned) {
        assert!(*t == 0.0 || (t - w / 0.75).abs() < 1e-12);
        dropped += usize::from(*t == 0.0);
    }
    // Four standard deviations of a binomial distribution.
    let (all, spread) = ((n * n) as f64, ((n * n) as f64 * 0.25 * 0.75).sqrt());
    assert!(
        (dropped as f64 - all * 0.25).abs() < 4.0 * spread,
        "{dropped}"
    );
    assert!(attend(1.0)?.to_vec::<f64>()?.iter().all(|&x| x == 0.0));
    assert!(attend(1.5).is_err() && attend(f64::NAN).is_err());
    Ok(())
}

#[test]
fn instances_keep_running_statistics() -> Result<()> {
    let x = Tensor::arange(0.0, 12.0, 1.0)?.view([2, 3, 2])?;
    let (mean, var) = (Tensor::new([0f32; 3])?, Tensor::new([1f32; 3])?);
    let how = BatchNorm {
        running: Some((&mean, &var)),
        training: true,
        ..BatchNorm::default()
    };
    let y = x.instance_norm_with(&how)?;
    assert!(y.equal(&x.instance_norm(None, None, 1e-5)?)?);
    // PyTorch's, as below.
    assert_close(&mean, &[0.35, 0.55, 0.75]);
    assert_close(&var, &[0.95, 0.95, 0.95]);
    let how = BatchNorm {
        training: false,
        ..how
    };
    let y = x.permute([2, 1, 0])?.instance_norm_with(&how)?;
    assert_eq!(y.stride(), [6, 2, 1]);
    let first = y.flatten(0, -1)?.narrow(0, 0, 4)?;
    let expected = [-0.359_092_1, 5.796_706, 1.487_668, 7.643_467];
    let found = first.to_vec::<f32>()?;
    assert!(
        found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-4),
        "{found:?}"
    );
    let single = x.narrow(2, 0, 1)?;
    assert!(single.instance_norm_with(&how).is_ok());
    assert!(single.instance_norm(None, None, 1e-5).is_err());
    assert!(
        x.instance_norm_with(&BatchNorm {
            running: None,
            ..how
        })
        .is_err()
    );
    Ok(())
}

#[test]
fn complex_random_numbers_have_two_parts() -> Result<()> {
    manual_seed(11);
    let cpu = Device::cpu();
    let n = 40_000;
    let parts = |x: Tensor| -> Result<[Vec<f64>; 2]> {
        let x = x.to_vec::<Complex<f64>>()?;
        Ok([
            x.iter().map(|z| z.re).collect(),
            x.iter().map(|z| z.im).collect(),
        ])
    };
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let var = |x: &[f64]| {
        let mean = mean(x);
        x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64
    };
    let normal = parts(Tensor::randn([n], DType::C128, &cpu)?)?;
    for part in &normal {
        assert!(mean(part).abs() < 0.02 && (var(part) - 0.5).abs() < 0.02);
    }
    let both: Vec<f64> = normal[0]
        .iter()
        .zip(&normal[1])
        .map(|(a, b)| a * b)
        .collect();
    assert!(mean(&both).abs() < 0.02);
    for part in parts(Tensor::rand([n], DType::C128, &cpu)?)? {
        assert!(part.iter().all(|x| (0.0..1.0).contains(x)));
        assert!((mean(&part) - 0.5).abs() < 0.01 && (var(&part) - 1.0 / 12.0).abs() < 0.01);
    }
    let x = Tensor::zeros([n], DType::C128, &cpu)?;
    x.normal_(5.0, 2.0)?;
    for part in parts(x.clone())? {
        assert!((mean(&part) - 5.0).abs() < 0.05 && (var(&part) - 2.0).abs() < 0.1);
    }
    assert_eq!(x.version(), 1);
    let flipped = Tensor::rand([2, 3], DType::C64, &cpu)?.t()?.rand_like()?;
    assert_eq!(
        (flipped.dtype(), flipped.stride()),
        (DType::C64, &[1, 3][..])
    );
    assert!(x.bernoulli_(0.5).is_err());
    Ok(())
}

#[test]
fn a_probability_is_one() {
    for p in [-0.1, 1.5, f64::NAN] {
        assert!(Tensor::new([0.5, p]).unwrap().bernoulli().is_err());
    }
    assert!(Tensor::new([1i64]).unwrap().bernoulli().is_err());
    let none = Tensor::zeros([0], DType::F32, &Device::cpu()).unwrap();
    assert_eq!(none.bernoulli().unwrap().shape(), [0]);
}

#[test]
fn nan_counts_for_nothing_in_any_dtype() -> Result<()> {
    let x = Tensor::new([1.7f32, f32::NAN, 2.7])?;
    // PyTorch's: each is truncated first.
    assert_eq!(x.nansum_in([], false, DType::I64)?.item::<i64>()?, 3);
    assert_eq!(x.nansum_in([0], false, DType::I32)?.to_vec::<i32>()?, [3]);
    assert!(x.nansum_in([], false, DType::Bool)?.item::<bool>()?);
    assert!(x.nansum_in([], false, DType::C64).is_err());
    assert!((x.nansum_in([], false, DType::F64)?.item::<f64>()? - 4.4).abs() < 1e-6);
    assert!((x.nanmean_in([], false, DType::F64)?.item::<f64>()? - 2.2).abs() < 1e-6);
    assert!(x.nanmean_in([], false, DType::I64).is_err());
    assert!(
        Tensor::new([1i64])?
            .nanmean_in([], false, DType::F64)
            .is_err()
    );
    Ok(())
}

#[test]
fn unit_vectors_and_their_angles() -> Result<()> {
    manual_seed(5);
    let x = Tensor::randn([4, 5], DType::F64, &Device::cpu())?;
    let y = Tensor::randn([2, 1, 5], DType::F64, &Device::cpu())?;
    let (a, b) = (x.to_vec::<f64>()?, y.to_vec::<f64>()?);
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let unit: Vec<f64> = a
        .chunks(5)
        .flat_map(|row| row.iter().map(|v| v / norm(row)).collect::<Vec<_>>())
        .collect();
    assert_close(&x.normalize(2.0, 1, 1e-12)?, &unit);
    let mut angles = vec![];
    for b in b.chunks(5) {
        for a in a.chunks(5) {
            let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            angles.push(dot / (norm(a) * norm(b)));
        }
    }
    assert_close(&x.cosine_similarity(&y, -1, 1e-8)?, &angles);
    let zero = Tensor::zeros([3], DType::F32, &Device::cpu())?;
    assert_close(&zero.normalize(2.0, 0, 1e-12)?, &[0.0; 3]);
    Ok(())
}

/// By hand: scores of 125 and 125.625, whose difference bfloat16 would make 0.5; the weight is the sigmoid of 0.625.
#[test]
fn scores_of_half_precision_are_not_rounded() -> Result<()> {
    let half = |x: &[f64]| Tensor::from_vec(x.to_vec(), [x.len(), 1])?.to(DType::BF16);
    let (query, key, value) = (half(&[10.0])?, half(&[12.5, 12.5625])?, half(&[0.0, 1.0])?);
    let how = functional::Attention::default();
    let got = functional::scaled_dot_product_attention(&query, &key, &value, &how)?;
    assert_eq!(got.to(DType::F64)?.to_vec::<f64>()?, [0.65234375]);
    Ok(())
}

#[test]
fn attention_in_blocks_is_its_products() -> Result<()> {
    let f = |shape: &[usize]| Tensor::randn(shape, DType::F64, &Device::cpu());
    // Several blocks of queries, the last one smaller; operands in other orders, one that broadcasts.
    let query = f(&[2, 300, 3, 20])?.transpose(1, 2)?;
    let (key, value) = (f(&[2, 3, 700, 20])?, f(&[3, 700, 24])?);
    let added = f(&[700, 300])?.t()?;
    let seen = Tensor::ones([300, 700], DType::Bool, &Device::cpu())?.tril(0)?;
    let scores = query.matmul(&key.mT()?)?.mul(20f64.sqrt().recip())?;
    let hidden = scores.masked_fill(&seen.logical_not()?, f64::NEG_INFINITY)?;
    let how = |mask, is_causal| Attention {
        mask,
        is_causal,
        ..Attention::default()
    };
    for (how, scores) in [
        (how(None, false), &scores),
        (how(Some(&added), false), &scores.add(&added)?),
        (how(Some(&seen), false), &hidden),
        (how(None, true), &hidden),
    ] {
        let want = scores.softmax(-1)?.matmul(&value)?;
        let got = functional::scaled_dot_product_attention(&query, &key, &value, &how)?;
        assert!(got.allclose(&want, 1e-10, 1e-12)?, "{how:?}");
    }
    Ok(())
}
