//! Softmax and normalisations against their formulas, one element at a time in `float64`.

use osteon_spec::{DType, Device};
use osteon_tensor::{Affine, Running, View};

fn numbers(shape: &[usize], dtype: DType) -> View {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n)
        .map(|i| ((i * 7919 + i / 13) % 25) as f64 * 0.25 - 2.5)
        .collect();
    View::from_slice(&values, shape, &Device::cpu())
        .unwrap()
        .to_dtype(dtype)
        .unwrap()
}

fn values(view: &View) -> Vec<f64> {
    view.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

const FLOATS: [(DType, f64); 4] = [
    (DType::F32, 1e-6),
    (DType::F64, 1e-13),
    (DType::F16, 2e-3),
    (DType::BF16, 2e-2),
];

fn assert_close(got: &View, want: &[f64], eps: f64) {
    let got = values(got);
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (got - want).abs() <= eps * (1.0 + want.abs()),
            "element {i}: {got}, want {want}"
        );
    }
}

/// `f(group, element)` of every element, where the group has all elements with the same key, a function of the index.
fn by_groups(
    x: &View,
    key: impl Fn(&[usize]) -> Vec<usize>,
    f: impl Fn(&[f64], f64, &[usize]) -> f64,
) -> Vec<f64> {
    let all = values(x);
    let index = |mut i: usize| {
        let mut index = vec![0; x.dim()];
        for d in (0..x.dim()).rev() {
            index[d] = i % x.shape()[d];
            i /= x.shape()[d];
        }
        index
    };
    let mut groups = std::collections::BTreeMap::<_, Vec<f64>>::new();
    for (i, &v) in all.iter().enumerate() {
        groups.entry(key(&index(i))).or_default().push(v);
    }
    let one = |(i, &v): (usize, &f64)| f(&groups[&key(&index(i))], v, &index(i));
    all.iter().enumerate().map(one).collect()
}

fn standard(group: &[f64], x: f64, eps: f64) -> f64 {
    let mean = group.iter().sum::<f64>() / group.len() as f64;
    let var = group.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / group.len() as f64;
    (x - mean) / (var + eps).sqrt()
}

#[test]
fn softmax_along_each_dim() {
    for (dtype, eps) in FLOATS {
        for x in [
            numbers(&[3, 40, 5], dtype),
            numbers(&[5, 3, 40], dtype).permute(&[1, 2, 0]).unwrap(),
            numbers(&[2, 2000], dtype),
            numbers(&[300, 4], dtype),
            numbers(&[], dtype),
        ] {
            for dim in 0..x.dim().max(1) {
                let key = |index: &[usize]| {
                    let mut key = index.to_vec();
                    if !key.is_empty() {
                        key[dim] = 0;
                    }
                    key
                };
                let sum = |group: &[f64]| group.iter().map(|v| v.exp()).sum::<f64>();
                let want = by_groups(&x, key, |group, v, _| v.exp() / sum(group));
                let got = x.softmax(dim as isize).unwrap();
                assert!(got.layout().is_contiguous());
                assert_eq!(got.dtype(), dtype);
                assert_close(&got, &want, eps);
                let want = by_groups(&x, key, |group, v, _| v - sum(group).ln());
                assert_close(&x.log_softmax(dim as isize).unwrap(), &want, eps * 2.0);
            }
        }
    }
}

#[test]
fn layer_norm_with_and_without_weights() {
    for (dtype, eps) in FLOATS {
        let x = numbers(&[3, 4, 5], dtype);
        for x in [x.clone(), x.permute(&[1, 0, 2]).unwrap()] {
            let shape = &x.shape()[1..];
            let (weight, bias) = (
                numbers(shape, dtype),
                numbers(shape, DType::F64).to_dtype(dtype).unwrap(),
            );
            let (w, b) = (values(&weight), values(&bias));
            let at = |index: &[usize]| index[1] * shape[1] + index[2];
            let want = by_groups(
                &x,
                |i| vec![i[0]],
                |g, v, i| standard(g, v, 1e-5) * w[at(i)] + b[at(i)],
            );
            let affine = Affine {
                weight: Some(&weight),
                bias: Some(&bias),
            };
            let got = x.layer_norm(shape, affine, 1e-5).unwrap().out;
            assert!(got.layout().is_contiguous());
            assert_close(&got, &want, eps * 4.0);
            let want = by_groups(&x, |i| vec![i[0], i[1]], |g, v, _| standard(g, v, 1e-5));
            assert_close(
                &x.layer_norm(&shape[1..], Affine::default(), 1e-5)
                    .unwrap()
                    .out,
                &want,
                eps * 4.0,
            );
            let want = by_groups(
                &x,
                |i| vec![i[0], i[1]],
                |g, v, _| v / (g.iter().map(|v| v * v).sum::<f64>() / g.len() as f64 + 0.5).sqrt(),
            );
            assert_close(
                &x.rms_norm(&shape[1..], None, Some(0.5)).unwrap().out,
                &want,
                eps * 2.0,
            );
        }
        assert!(
            x.layer_norm(&[4], Affine::default(), 1e-5)
                .unwrap_err()
                .is_shape()
        );
        assert!(
            x.layer_norm(&[], Affine::default(), 1e-5)
                .unwrap_err()
                .is_shape()
        );
    }
}

#[test]
fn batch_norm_learns_and_remembers() {
    let x = numbers(&[4, 3, 5], DType::F32);
    let of = |values: &[f32]| View::from_slice(values, &[3], &Device::cpu()).unwrap();
    let (mean, var) = (of(&[0.0; 3]), of(&[1.0; 3]));
    let (weight, bias) = (of(&[1.0, 2.0, 3.0]), of(&[0.5, 0.0, -0.5]));
    let affine = Affine {
        weight: Some(&weight),
        bias: Some(&bias),
    };
    let running = Some(Running {
        mean: &mean,
        var: &var,
    });
    let got = x.batch_norm(running, affine, true, 0.25, 1e-3).unwrap().out;
    let (w, b) = (values(&weight), values(&bias));
    let want = by_groups(
        &x,
        |i| vec![i[1]],
        |g, v, i| standard(g, v, 1e-3) * w[i[1]] + b[i[1]],
    );
    assert_close(&got, &want, 1e-6);
    let channel = |c: usize| x.select(1, c as isize).unwrap();
    for c in 0..3 {
        let (v, m) = channel(c).var_mean(&[], 1.0, false).unwrap();
        assert!((values(&mean)[c] - 0.25 * values(&m)[0]).abs() < 1e-6);
        assert!((values(&var)[c] - (0.75 + 0.25 * values(&v)[0])).abs() < 1e-6);
    }
    assert_eq!((mean.version(), var.version()), (2, 2));
    let (m, v) = (values(&mean), values(&var));
    let got = x
        .batch_norm(running, affine, false, 0.25, 1e-3)
        .unwrap()
        .out;
    let want = by_groups(
        &x,
        |_| vec![],
        |_, x, i| (x - m[i[1]]) / (v[i[1]] + 1e-3).sqrt() * w[i[1]] + b[i[1]],
    );
    assert_close(&got, &want, 1e-6);
    assert!(
        x.batch_norm(None, affine, false, 0.1, 1e-5)
            .unwrap_err()
            .is_value()
    );
    let single = numbers(&[1, 3], DType::F32);
    assert!(
        single
            .batch_norm(None, affine, true, 0.1, 1e-5)
            .unwrap_err()
            .is_shape()
    );
}

#[test]
fn groups_and_instances() {
    let x = numbers(&[2, 6, 3, 4], DType::F64);
    let x = x.permute(&[0, 1, 3, 2]).unwrap();
    let weight = numbers(&[6], DType::F64);
    let w = values(&weight);
    let affine = Affine {
        weight: Some(&weight),
        bias: None,
    };
    let want = by_groups(
        &x,
        |i| vec![i[0], i[1] / 3],
        |g, v, i| standard(g, v, 0.1) * w[i[1]],
    );
    assert_close(&x.group_norm(2, affine, 0.1).unwrap().out, &want, 1e-13);
    let want = by_groups(
        &x,
        |i| vec![i[0], i[1]],
        |g, v, i| standard(g, v, 0.1) * w[i[1]],
    );
    assert_close(
        &x.instance_norm(None, affine, true, 0.1, 0.1).unwrap().out,
        &want,
        1e-13,
    );
    assert!(x.group_norm(4, affine, 0.1).unwrap_err().is_shape());
    assert!(x.group_norm(0, affine, 0.1).unwrap_err().is_shape());
}
