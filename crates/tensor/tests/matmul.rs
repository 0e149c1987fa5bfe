//! Products against sums written out, over layouts and dtypes.

use osteon_spec::{DType, Device, Scalar};
use osteon_tensor::{Attention, Conv, ConvTranspose, Padding, View};
use proptest::prelude::*;

type Outcome = Result<(), osteon_spec::Error>;

/// Small integers, so that every dtype and every order of summation gives the same.
fn counted(shape: &[usize], dtype: DType) -> View {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| ((i * 7 + 3) % 11) as f64 - 5.0).collect();
    View::from_slice(&values, shape, &Device::cpu())
        .and_then(|v| v.to_dtype(dtype))
        .expect("memory")
}

fn numbers(view: &View) -> Vec<f64> {
    view.to_dtype(DType::F64)
        .and_then(|v| v.to_vec::<f64>())
        .expect("elements")
}

/// A matrix of this shape in one of several layouts, all with the same elements.
fn laid_out(shape: [usize; 2], dtype: DType, how: usize) -> View {
    let [m, n] = shape;
    let dense = counted(&[m, n], dtype);
    let into = |to: View| {
        to.copy_(&dense).expect("a copy");
        to
    };
    let empty = |shape: &[usize]| View::zeros(shape, dtype, &Device::cpu()).expect("memory");
    match how % 4 {
        0 => dense,
        1 => into(empty(&[n, m]).t().expect("a view")),
        2 => into(
            empty(&[2 * m, 3 * n])
                .slice(0, None, None, 2)
                .and_then(|v| v.slice(1, Some(1), None, 3))
                .expect("a view"),
        ),
        _ => into(
            empty(&[m + 3, n + 5])
                .narrow(0, 2, m as isize)
                .and_then(|v| v.narrow(1, 4, n as isize))
                .expect("a view"),
        ),
    }
}

fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
    out
}

const DTYPES: [DType; 8] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I8,
    DType::I16,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn matrices_of_any_layout_and_dtype(
        m in 0usize..40, k in 0usize..40, n in 0usize..40, layouts in 0usize..16, dtype in 0usize..8,
    ) {
        let dtype = DTYPES[dtype];
        let (a, b) = (laid_out([m, k], dtype, layouts / 4), laid_out([k, n], dtype, layouts % 4));
        let made = a.matmul(&b).expect("a product");
        prop_assert_eq!(made.stride(), [n.max(1), 1]);
        let want = product(&numbers(&a), &numbers(&b), [m, k, n]);
        // Sums are exact; they are rounded, or wrap, once.
        let want = View::from_slice(&want, &[m, n], &Device::cpu()).and_then(|v| v.to_dtype(dtype));
        prop_assert_eq!(numbers(&made), numbers(&want.expect("memory")));
    }

    #[test]
    fn vectors_and_batches_that_broadcast(m in 1usize..9, k in 1usize..300, n in 1usize..9, batch in 1usize..4) {
        let (a, b) = (counted(&[batch, 1, m, k], DType::F64), counted(&[3, k, n], DType::F64));
        let made = a.matmul(&b).expect("a product");
        prop_assert_eq!(made.shape(), [batch, 3, m, n]);
        let (x, y) = (numbers(&a), numbers(&b));
        let mut want = vec![];
        for i in 0..batch {
            for j in 0..3 {
                want.extend(product(&x[i * m * k..][..m * k], &y[j * k * n..][..k * n], [m, k, n]));
            }
        }
        prop_assert_eq!(numbers(&made), want);
        let v = counted(&[k], DType::F64);
        let w = numbers(&v);
        let row = v.matmul(&b.select(0, 1).expect("a view")).expect("a product");
        prop_assert_eq!(numbers(&row), product(&w, &y[k * n..][..k * n], [1, k, n]));
        let column = a.select(0, 0).and_then(|a| a.select(0, 0)).and_then(|a| a.matmul(&v)).expect("a product");
        prop_assert_eq!(numbers(&column), product(&x[..m * k], &w, [m, k, 1]));
    }

    #[test]
    fn convolutions_against_sums_written_out(
        size in 3usize..8, kernel in 1usize..4, stride in 1isize..4, pad in 0isize..3, dilation in 1isize..3, groups in 1usize..3,
    ) {
        let reach = dilation as usize * (kernel - 1) + 1;
        prop_assume!(size + 2 * pad as usize >= reach);
        let (c, o) = (2, 3);
        let x = counted(&[2, c * groups, size, size], DType::F64);
        let w = counted(&[o * groups, c, kernel, kernel], DType::F64);
        let how = Conv {
            stride: [stride; 2], padding: Padding::Zeros([pad; 2]), dilation: [dilation; 2], groups: groups as isize,
        };
        let made = x.conv(&w, None, &how, "conv2d").expect("a convolution");
        let out = made.shape()[2];
        let (xs, ws) = (numbers(&x), numbers(&w));
        let at = |n: usize, ch: usize, y: isize, z: isize| {
            let inside = |i: isize| (0..size as isize).contains(&i);
            if inside(y) && inside(z) { xs[((n * c * groups + ch) * size + y as usize) * size + z as usize] } else { 0.0 }
        };
        let mut want = vec![];
        for n in 0..2 {
            for f in 0..o * groups {
                for y in 0..out {
                    for z in 0..out {
                        let mut sum = 0.0;
                        for ch in 0..c {
                            for i in 0..kernel {
                                for j in 0..kernel {
                                    let tap = |i: usize, y: usize| y as isize * stride - pad + i as isize * dilation;
                                    sum += ws[((f * c + ch) * kernel + i) * kernel + j]
                                        * at(n, f / o * c + ch, tap(i, y), tap(j, z));
                                }
                            }
                        }
                        want.push(sum);
                    }
                }
            }
        }
        prop_assert_eq!(numbers(&made), want);
    }

    /// `<conv(x), y> = <x, conv_transpose(y)>`.
    #[test]
    fn a_transposed_convolution_is_the_transpose(
        size in 3isize..8, kernel in 1isize..4, stride in 1isize..4, pad in 0isize..2, dilation in 1isize..3,
    ) {
        let reach = dilation * (kernel - 1) + 1;
        prop_assume!(size + 2 * pad >= reach && pad < reach);
        let more = (size + 2 * pad - reach) % stride;
        prop_assume!(more < stride.max(dilation));
        let x = counted(&[1, 2, size as usize, size as usize], DType::F64);
        let w = counted(&[3, 2, kernel as usize, kernel as usize], DType::F64);
        let forward = Conv { stride: [stride; 2], padding: Padding::Zeros([pad; 2]), dilation: [dilation; 2], groups: 1 };
        let made = x.conv(&w, None, &forward, "conv2d").expect("a convolution");
        let y = counted(made.shape(), DType::F64);
        let back = ConvTranspose {
            stride: [stride; 2], padding: [pad; 2], output_padding: [more; 2], dilation: [dilation; 2], groups: 1,
        };
        let back = y.conv_transpose(&w, None, &back, "conv_transpose2d").expect("a convolution");
        prop_assert_eq!(back.shape(), x.shape());
        let dot = |a: &View, b: &View| numbers(a).iter().zip(numbers(b)).map(|(a, b)| a * b).sum::<f64>();
        prop_assert_eq!(dot(&made, &y), dot(&x, &back));
    }
}

#[test]
fn products_larger_than_a_tile() -> Outcome {
    for (m, k, n) in [
        (500, 270, 800),
        (1, 5000, 70),
        (70, 5000, 1),
        (1, 9, 2000),
        (13, 600, 33),
    ] {
        let (a, b) = (counted(&[m, k], DType::F32), counted(&[k, n], DType::F32));
        let want = product(&numbers(&a), &numbers(&b), [m, k, n]);
        assert_eq!(numbers(&a.matmul(&b)?), want, "{m} {k} {n}");
        let (a, b) = (
            laid_out([m, k], DType::F32, 1),
            laid_out([k, n], DType::F32, 1),
        );
        assert_eq!(numbers(&a.matmul(&b)?), want, "{m} {k} {n}, transposed");
    }
    Ok(())
}

#[test]
fn long_sums_of_few_columns() -> Outcome {
    for (n, columns) in [(200_000, 1), (100_003, 2), (70_000, 65)] {
        let ones = |shape: &[usize]| View::ones(shape, DType::F32, &Device::cpu());
        let row = ones(&[n])?;
        for matrix in [ones(&[n, columns])?, ones(&[columns, n])?.t()?] {
            let sums = numbers(&row.matmul(&matrix)?);
            assert_eq!(sums, vec![n as f64; columns]);
        }
        assert_eq!(numbers(&row.dot(&row)?), [n as f64]);
    }
    Ok(())
}

#[test]
fn contractions_are_by_name() -> Outcome {
    let (a, b) = (counted(&[3, 4], DType::I64), counted(&[4, 5], DType::I64));
    let want = numbers(&a.matmul(&b)?);
    let made = View::contract([(&a, b"ij"), (&b, b"jk")], (&[3, 5], b"ik"))?;
    assert_eq!(numbers(&made), want);
    // The same the other way round, and a sum over a dim that is kept with size 1.
    let turned = View::contract([(&b, b"jk"), (&a, b"ij")], (&[5, 3], b"ki"))?;
    assert_eq!(numbers(&turned.t()?), want);
    let summed = View::contract([(&a, b"ij"), (&b, b"jk")], (&[3, 1], b"ik"))?;
    let rows: Vec<f64> = want.chunks(5).map(|row| row.iter().sum()).collect();
    assert_eq!((summed.shape(), numbers(&summed)), (&[3, 1][..], rows));
    // A dim of size 1 broadcasts; one that neither has is filled.
    let row = counted(&[1, 4], DType::I64);
    let made = View::contract([(&row, b"ij"), (&a, b"ij")], (&[3], b"i"))?;
    assert_eq!(numbers(&made), numbers(&a.matmul(&row.view(&[4])?)?));
    let made = View::contract([(&row, b"ij"), (&row, b"ij")], (&[2], b"k"))?;
    assert_eq!(numbers(&made), [39.0, 39.0]); // the squares of -2, 5, 1 and -3
    assert!(View::contract([(&a, b"ij"), (&a, b"ji")], (&[3, 3], b"ij")).is_err());
    Ok(())
}

#[test]
fn attention_is_its_formula() -> Outcome {
    let f = |shape: &[usize]| counted(shape, DType::F64);
    let (q, k, v) = (f(&[2, 4, 3, 8]), f(&[2, 2, 5, 8]), f(&[2, 2, 5, 8]));
    let heads = q.unflatten(1, &[2, 2])?; // that share a head of the others
    let grouped = heads.attention(&k.unsqueeze(2)?, &v.unsqueeze(2)?, &Attention::default())?;
    let (qs, ks, vs) = (numbers(&q), numbers(&k), numbers(&v));
    let mut want = vec![];
    for b in 0..2 {
        for h in 0..4 {
            for l in 0..3 {
                let row = |list: &[f64], heads: usize, h: usize, len: usize, i: usize| {
                    list[((b * heads + h) * len + i) * 8..][..8].to_vec()
                };
                let query = row(&qs, 4, h, 3, l);
                let weights: Vec<f64> = (0..5)
                    .map(|s| {
                        row(&ks, 2, h / 2, 5, s)
                            .iter()
                            .zip(&query)
                            .map(|(a, b)| a * b)
                            .sum::<f64>()
                    })
                    .map(|score| (score / 8f64.sqrt()).exp())
                    .collect();
                let total: f64 = weights.iter().sum();
                for e in 0..8 {
                    want.push(
                        (0..5)
                            .map(|s| weights[s] / total * row(&vs, 2, h / 2, 5, s)[e])
                            .sum::<f64>(),
                    );
                }
            }
        }
    }
    for (got, want) in numbers(&grouped).iter().zip(&want) {
        assert!((got - want).abs() < 1e-12, "{got} {want}");
    }
    let nothing = View::zeros(&[3, 5], DType::Bool, &Device::cpu())?;
    let how = Attention {
        mask: Some(&nothing),
        ..Attention::default()
    };
    let blind = q.narrow(1, 0, 2)?.attention(&k, &v, &how)?;
    assert!(numbers(&blind).iter().all(|&x| x == 0.0));
    Ok(())
}

#[test]
fn a_refused_product_says_what_does_not_fit() -> Outcome {
    let (a, b) = (counted(&[2, 3], DType::F32), counted(&[2, 3], DType::F32));
    let message = a.matmul(&b).unwrap_err().to_string();
    assert!(
        message.contains("[2, 3]") && message.contains("3 columns against 2 rows"),
        "{message}"
    );
    assert!(
        a.matmul(&b.t()?.to_dtype(DType::F64)?)
            .unwrap_err()
            .is_dtype()
    );
    let zero = View::full(&[], Scalar::Int(1), DType::F32, &Device::cpu())?;
    assert!(a.matmul(&zero).unwrap_err().is_shape());
    Ok(())
}
