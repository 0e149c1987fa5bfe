//! Sorting and sets, against the standard library's stable sort.

#[allow(dead_code, reason = "each test file uses its part")]
mod twin;

use osteon_spec::{DType, Device};
use osteon_tensor::{Pick, View};
use std::cmp::Ordering;
use twin::{Twin, indices, views};

/// NaN above all, both zeros equal.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The lanes of a view along a dim, each sorted, with where its elements were.
fn sorted_lanes(x: &View, d: usize, descending: bool) -> Vec<Vec<(f64, usize)>> {
    let own = Twin::of(x);
    let mut outer = own.shape.clone();
    let n = outer.remove(d);
    indices(&outer)
        .into_iter()
        .map(|mut i| {
            i.insert(d, 0);
            let mut lane: Vec<(f64, usize)> = (0..n)
                .map(|j| {
                    i[d] = j;
                    (own.at(&i), j)
                })
                .collect();
            lane.sort_by(|a, b| {
                if descending {
                    order(b.0, a.0)
                } else {
                    order(a.0, b.0)
                }
            });
            lane
        })
        .collect()
}

/// Values and indices of a result, lane by lane.
fn lanes_of((values, indices): &(View, View), d: usize) -> Vec<Vec<(f64, usize)>> {
    let last = |v: &View| Twin::of(&v.movedim(&[d as isize], &[-1]).unwrap());
    let (values, places) = (last(values), last(indices));
    let n = values.shape.last().copied().unwrap_or(1);
    let pairs: Vec<(f64, usize)> = values
        .values
        .iter()
        .zip(&places.values)
        .map(|(v, p)| (*v, *p as usize))
        .collect();
    if n == 0 {
        Vec::new()
    } else {
        pairs.chunks(n).map(<[_]>::to_vec).collect()
    }
}

fn same(a: &[Vec<(f64, usize)>], b: &[Vec<(f64, usize)>]) -> bool {
    a.len() == b.len()
        && a.iter()
            .flatten()
            .zip(b.iter().flatten())
            .all(|(x, y)| order(x.0, y.0) == Ordering::Equal && x.1 == y.1)
}

#[test]
fn sorts_are_stable_over_every_layout() {
    for x in views().into_iter().filter(|x| x.dim() > 0 && x.numel() > 0) {
        for d in 0..x.dim() {
            for descending in [false, true] {
                let got = x.sort(d as isize, descending).unwrap();
                let want = sorted_lanes(&x, d, descending);
                assert!(same(&lanes_of(&got, d), &want), "{x:?} dim {d}");
            }
        }
    }
}

#[test]
fn floats_of_every_width_are_ordered_with_nan_last() {
    let values = [
        0.0,
        f64::NAN,
        -0.0,
        1.5,
        f64::INFINITY,
        -2.0,
        f64::NEG_INFINITY,
        1.5,
        -f64::NAN,
        -1e-4,
        6e4,
    ];
    let x = View::from_slice(&values, &[values.len()], &Device::cpu()).unwrap();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = x.to_dtype(dtype).unwrap();
        for descending in [false, true] {
            let got = x.sort(0, descending).unwrap();
            let want = sorted_lanes(&x, 0, descending);
            assert!(same(&lanes_of(&got, 0), &want), "{dtype}");
        }
    }
}

#[test]
fn the_ends_of_integers_are_ordered() {
    let values = [3i64, i64::MIN, i64::MAX, -1, 0, i64::MIN];
    let x = View::from_slice(&values, &[6], &Device::cpu()).unwrap();
    let mut want = values;
    want.sort_unstable();
    assert_eq!(x.sort(0, false).unwrap().0.to_vec::<i64>().unwrap(), want);
    want.reverse();
    assert_eq!(x.sort(0, true).unwrap().0.to_vec::<i64>().unwrap(), want);
    let bits = x.view_dtype(DType::U64).unwrap();
    let mut want = values.map(|v| v as u64);
    want.sort_unstable();
    assert_eq!(
        bits.sort(0, false).unwrap().0.to_vec::<u64>().unwrap(),
        want
    );
}

#[test]
fn long_lanes_are_sorted_by_several_threads() {
    let n = 70_000usize;
    let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 10_007) as f32).collect();
    let x = View::from_slice(&values, &[7, n / 7], &Device::cpu()).unwrap();
    for d in 0..2 {
        let got = x.sort(d, false).unwrap();
        assert!(same(
            &lanes_of(&got, d as usize),
            &sorted_lanes(&x, d as usize, false)
        ));
    }
}

#[test]
fn parts_of_an_order_are_its_ranks() {
    for x in views().into_iter().filter(|x| x.dim() > 0 && x.numel() > 0) {
        for d in 0..x.dim() {
            let n = x.shape()[d];
            let (up, down) = (sorted_lanes(&x, d, false), sorted_lanes(&x, d, true));
            for k in 1..=n {
                let top = lanes_of(&x.topk(k as isize, d as isize, true).unwrap(), d);
                let want: Vec<Vec<_>> = down.iter().map(|l| l[..k].to_vec()).collect();
                assert!(same(&top, &want), "{x:?} top {k}");
                let kth = lanes_of(&x.kthvalue(k as isize, d as isize, true).unwrap(), d);
                let want: Vec<Vec<_>> = up.iter().map(|l| vec![l[k - 1]]).collect();
                assert!(same(&kth, &want), "{x:?} rank {k}");
            }
            let median = x
                .one_of_each(Pick::Median, d as isize, true, "median")
                .unwrap();
            let want: Vec<Vec<_>> = up.iter().map(|l| vec![l[(n - 1) / 2]]).collect();
            assert!(same(&lanes_of(&median, d), &want), "{x:?}");
            assert!(
                x.topk(n as isize + 1, d as isize, true)
                    .unwrap_err()
                    .is_value()
            );
            assert!(x.kthvalue(0, d as isize, true).unwrap_err().is_value());
        }
    }
}

#[test]
fn medians_and_modes_follow_pytorch() {
    // Values of PyTorch 2.15.
    let one = |values: &[f64], pick: Pick| {
        let x = View::from_slice(values, &[values.len()], &Device::cpu()).unwrap();
        let (value, index) = x.one_of_each(pick, 0, false, "median").unwrap();
        (
            value.to_vec::<f64>().unwrap()[0],
            index.to_vec::<i64>().unwrap()[0],
        )
    };
    let nan = f64::NAN;
    assert_eq!(one(&[3.0, nan, 1.0, 2.0], Pick::NanMedian), (2.0, 3));
    assert!(one(&[3.0, nan, 1.0, 2.0], Pick::Median).0.is_nan());
    assert!(one(&[nan, nan], Pick::NanMedian).0.is_nan());
    assert_eq!(one(&[1.0, 2.0, 2.0, 1.0, 3.0], Pick::Mode), (1.0, 3));
    assert_eq!(one(&[2.0, 1.0, 1.0, 2.0], Pick::Mode), (1.0, 2));
    let empty = View::zeros(&[2, 0], DType::F32, &Device::cpu()).unwrap();
    assert!(
        empty
            .one_of_each(Pick::Median, 1, false, "median")
            .unwrap_err()
            .is_index()
    );
    let none = empty.one_of_each(Pick::Median, 0, false, "median").unwrap();
    assert_eq!(none.0.shape(), [0]);
}

#[test]
fn sets_hold_each_element_once() {
    for x in views() {
        let own = Twin::of(&x);
        let found = x.unique(false).unwrap();
        let values = Twin::of(&found.values).values;
        let mut want = own.values.clone();
        want.sort_by(|a, b| order(*a, *b));
        want.dedup();
        assert_eq!(values, want, "{x:?}");
        let back: Vec<f64> = Twin::of(&found.inverse)
            .values
            .iter()
            .map(|i| values[*i as usize])
            .collect();
        assert_eq!(back, own.values, "{x:?}");
        let counts: Vec<f64> = values
            .iter()
            .map(|v| own.values.iter().filter(|o| *o == v).count() as f64)
            .collect();
        assert_eq!(Twin::of(&found.counts).values, counts, "{x:?}");
        let mut runs = own.values.clone();
        runs.dedup();
        assert_eq!(
            Twin::of(&x.unique(true).unwrap().values).values,
            runs,
            "{x:?}"
        );
    }
}

#[test]
fn slices_along_a_dim_are_a_set() {
    let x = View::from_slice(&[1i64, 2, 0, 5, 1, 2], &[3, 2], &Device::cpu()).unwrap();
    let found = x.unique_dim(0, false).unwrap();
    assert_eq!(found.values.to_vec::<i64>().unwrap(), [0, 5, 1, 2]);
    assert_eq!(found.inverse.to_vec::<i64>().unwrap(), [1, 0, 1]);
    assert_eq!(found.counts.to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(
        x.unique_dim(0, true)
            .unwrap()
            .counts
            .to_vec::<i64>()
            .unwrap(),
        [1, 1, 1]
    );
    let empty = View::zeros(&[3, 0], DType::F32, &Device::cpu()).unwrap();
    assert!(empty.unique_dim(0, false).unwrap_err().is_shape());
}

#[test]
fn searches_count_what_is_below() {
    for x in views() {
        let own = Twin::of(&x);
        let edges = View::from_slice(&[1f64, 3.0, 3.0, 8.0], &[4], &Device::cpu()).unwrap();
        let sorted = edges.to_dtype(x.dtype()).unwrap();
        for right in [false, true] {
            let got = Twin::of(&sorted.searchsorted(&x, right, None).unwrap());
            let below = |v: f64, e: f64| if right { e <= v } else { e < v };
            let want = Twin::make(&own.shape, |i| {
                [1.0, 3.0, 3.0, 8.0]
                    .iter()
                    .filter(|e| below(own.at(i), **e))
                    .count() as f64
            });
            assert_eq!(got, want, "{x:?}");
        }
        let among = x.isin(&sorted, false).unwrap();
        let want = Twin::make(&own.shape, |i| {
            f64::from(u8::from([1.0, 3.0, 8.0].contains(&own.at(i))))
        });
        assert_eq!(Twin::of(&among), want, "{x:?}");
    }
}

#[test]
fn complex_numbers_have_no_order() {
    let x = View::zeros(&[2], DType::C64, &Device::cpu()).unwrap();
    assert!(x.sort(0, false).unwrap_err().is_dtype());
    assert!(x.unique(false).unwrap_err().is_dtype());
    assert!(x.searchsorted(&x, false, None).unwrap_err().is_dtype());
    let numbers = View::zeros(&[2], DType::Bool, &Device::cpu()).unwrap();
    assert!(numbers.topk(1, 0, true).unwrap_err().is_dtype());
    assert_eq!(numbers.sort(0, false).unwrap().0.dtype(), DType::Bool);
}

/// Numbers that look random, of several kinds: some occur often, and some differ in the lowest bits alone.
fn long(n: usize) -> Vec<View> {
    let mixed = |i: usize| {
        (i as i64 + 1)
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .rotate_left(31)
            .wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    let numbers: [Vec<i64>; 3] = [
        (0..n).map(mixed).collect(),
        (0..n).map(|i| mixed(i) % 1000).collect(),
        (0..n)
            .map(|i| ((mixed(i) % 3) << 61) + mixed(i + 1) % 500)
            .collect(),
    ];
    let mut views = Vec::new();
    for numbers in numbers {
        let x = View::from_slice(&numbers, &[n], &Device::cpu()).unwrap();
        for dtype in [DType::F64, DType::F32, DType::BF16, DType::U8, DType::I32] {
            views.push(x.to_dtype(dtype).unwrap());
        }
        views.push(x.view_dtype(DType::F64).unwrap());
        // The twin's numbers cannot hold all of these.
        let mut want: Vec<(i64, i64)> = numbers.into_iter().zip(0..).collect();
        want.sort();
        let (values, places) = x.sort(0, false).unwrap();
        let (values, places) = (
            values.to_vec::<i64>().unwrap(),
            places.to_vec::<i64>().unwrap(),
        );
        assert!(values.into_iter().zip(places).eq(want));
    }
    views
}

#[test]
fn long_lanes_are_sorted_as_short_ones_on_any_number_of_threads() {
    for x in long(40_000) {
        for descending in [false, true] {
            let want = sorted_lanes(&x, 0, descending);
            for threads in [1, 3] {
                osteon_tensor::set_num_threads(threads);
                let got = x.sort(0, descending).unwrap();
                assert!(same(&lanes_of(&got, 0), &want), "{} {threads}", x.dtype());
            }
        }
        let mut counts = std::collections::HashMap::new();
        let lane = &sorted_lanes(&x, 0, false)[0];
        // NaN are all different; both zeros are one.
        let name = |&(v, i): &(f64, usize)| match v.is_nan() {
            true => i as u64 | (0x7FF8 << 48),
            false => (v + 0.0).to_bits(),
        };
        let names: Vec<u64> = lane.iter().map(name).collect();
        for name in &names {
            *counts.entry(*name).or_insert(0) += 1;
        }
        let mut classes = names.clone();
        classes.dedup();
        let unique = x.unique(false).unwrap();
        let want: Vec<i64> = classes.iter().map(|name| counts[name]).collect();
        assert_eq!(unique.counts.to_vec::<i64>().unwrap(), want);
        let back = unique.values.take(&unique.inverse).unwrap();
        let (back, own) = (Twin::of(&back).values, Twin::of(&x).values);
        assert!(back.iter().zip(&own).all(|(a, b)| order(*a, *b).is_eq()));
        let (values, places) = x.topk(50, 0, true).unwrap();
        let want = &sorted_lanes(&x, 0, true)[0][..50];
        let got = &lanes_of(&(values, places), 0)[0];
        assert!(
            same(std::slice::from_ref(got), &[want.to_vec()]),
            "{}",
            x.dtype()
        );
    }
}
