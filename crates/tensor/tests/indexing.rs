//! Elements by index tensors and masks, against their naive twins, over layouts and dtypes.

#[allow(dead_code, reason = "each test file uses its part")]
mod twin;

use osteon_spec::{DType, Device, MemoryFormat, Scalar};
use osteon_tensor::{Reduce, View};
use twin::{Twin, indices, views};

fn whole(values: &[i64], shape: &[usize]) -> View {
    View::from_slice(values, shape, &Device::cpu()).unwrap()
}

fn with(index: &[usize], d: usize, value: usize) -> Vec<usize> {
    let mut index = index.to_vec();
    index[d] = value;
    index
}

/// A matrix of indices into a dim of `n`, some from the end, as no contiguous view.
fn places(n: usize) -> View {
    let n = n as i64;
    whole(&[0, n - 1, -1, -n, n / 2, 0], &[3, 2]).t().unwrap()
}

fn wrapped(places: &Twin, at: &[usize], n: usize) -> usize {
    (places.at(at) as i64).rem_euclid(n as i64) as usize
}

#[test]
fn one_index_tensor_takes_the_place_of_its_dim() {
    for x in views().into_iter().filter(|x| x.numel() > 0) {
        let own = Twin::of(&x);
        for d in 0..x.dim() {
            let n = own.shape[d];
            let at = Twin::of(&places(n));
            let shape = [&own.shape[..d], &[2, 3], &own.shape[d + 1..]].concat();
            let want = Twin::make(&shape, |i| {
                let place = wrapped(&at, &i[d..d + 2], n);
                own.at(&[&i[..d], &[place], &i[d + 2..]].concat())
            });
            let mut list = vec![None; d];
            list.push(Some(places(n)));
            assert_eq!(Twin::of(&x.index(&list).unwrap()), want, "{x:?} dim {d}");
            list[d] = Some(places(n).to_dtype(DType::I32).unwrap());
            assert_eq!(Twin::of(&x.index(&list).unwrap()), want, "{x:?} dim {d}");
        }
    }
}

#[test]
fn several_index_tensors_broadcast_in_place_or_in_front() {
    for x in views()
        .into_iter()
        .filter(|x| x.dim() == 3 && x.numel() > 0)
    {
        let own = Twin::of(&x);
        let (a, b) = (whole(&[0, -1, 1], &[3]), whole(&[1, 0], &[2, 1]));
        let (ta, tb) = (Twin::of(&a), Twin::of(&b));
        let [n0, n1, n2] = own.shape[..] else {
            unreachable!()
        };
        // Neighbours: the result's dims stay where they were.
        let want = Twin::make(&[n0, 2, 3], |i| {
            own.at(&[
                i[0],
                wrapped(&ta, &[i[2]], n1),
                wrapped(&tb, &[i[1], 0], n2),
            ])
        });
        let got = x.index(&[None, Some(a.clone()), Some(b.clone())]).unwrap();
        assert_eq!(Twin::of(&got), want, "{x:?}");
        // Apart: they come first.
        let want = Twin::make(&[2, 3, n1], |i| {
            own.at(&[
                wrapped(&ta, &[i[1]], n0),
                i[2],
                wrapped(&tb, &[i[0], 0], n2),
            ])
        });
        let got = x.index(&[Some(a.clone()), None, Some(b.clone())]).unwrap();
        assert_eq!(Twin::of(&got), want, "{x:?}");
    }
}

#[test]
fn results_are_laid_out_as_pytorch_lays_them_out() {
    // Strides of PyTorch 2.15.
    let x = View::zeros(&[120], DType::F32, &Device::cpu()).unwrap();
    let x = x.as_strided(&[5, 3, 2, 4], &[1, 20, 60, 5], None).unwrap();
    let pair = whole(&[0, 1], &[2]);
    assert_eq!(
        x.index(&[Some(pair.clone())]).unwrap().stride(),
        [24, 4, 12, 1]
    );
    let dense = View::zeros(&[5, 3, 4], DType::F32, &Device::cpu()).unwrap();
    assert_eq!(
        dense.index(&[None, Some(pair)]).unwrap().stride(),
        [8, 4, 1]
    );
}

#[test]
fn masks_pick_what_is_true() {
    for x in views().into_iter().filter(|x| x.dim() > 0) {
        let own = Twin::of(&x);
        let mask = Twin::make(&own.shape, |i| f64::from(own.at(i) > 4.0));
        let picked: Vec<f64> = own.values.iter().copied().filter(|v| *v > 4.0).collect();
        let mask_view = mask.view(DType::Bool);
        assert_eq!(
            Twin::of(&x.masked_select(&mask_view).unwrap()).values,
            picked,
            "{x:?}"
        );
        for dtype in [DType::Bool, DType::U8] {
            let got = x.index(&[Some(mask.view(dtype))]).unwrap();
            assert_eq!(Twin::of(&got).values, picked, "{x:?}");
        }
        let at = Twin::of(&mask_view.nonzero().unwrap());
        let want: Vec<f64> = indices(&own.shape)
            .into_iter()
            .filter(|i| mask.at(i) != 0.0)
            .flatten()
            .map(|i| i as f64)
            .collect();
        assert_eq!(at.values, want, "{x:?}");
        // Back to where they came from.
        let copy = View::zeros(x.shape(), x.dtype(), &Device::cpu()).unwrap();
        copy.masked_scatter_(&mask_view, &x.masked_select(&mask_view).unwrap())
            .unwrap();
        let want = Twin::make(
            &own.shape,
            |i| if mask.at(i) != 0.0 { own.at(i) } else { 0.0 },
        );
        assert_eq!(Twin::of(&copy), want, "{x:?}");
        let chosen = View::choose(&mask_view, (&x).into(), Scalar::Int(0).into()).unwrap();
        assert_eq!(Twin::of(&chosen), want, "{x:?}");
    }
}

#[test]
fn nonzero_s_columns_are_dense() {
    let x = View::ones(&[2, 3], DType::F32, &Device::cpu()).unwrap();
    let at = x.nonzero().unwrap();
    assert_eq!((at.shape(), at.stride()), (&[6, 2][..], &[1, 6][..]));
}

#[test]
fn assignments_write_where_reading_reads() {
    for x in views().into_iter().filter(|x| x.dim() > 0 && x.numel() > 0) {
        let own = Twin::of(&x);
        for d in 0..x.dim() {
            let n = own.shape[d];
            let mut list = vec![None; d];
            list.push(Some(whole(&[(n - 1) as i64, 0], &[2])));
            let value = View::full(&[], Scalar::Int(9), x.dtype(), &Device::cpu()).unwrap();
            let copy = x.copy(MemoryFormat::Preserve).unwrap();
            copy.index_put_(&list, &value, false).unwrap();
            let hit = |i: &[usize]| i[d] == 0 || i[d] == n - 1;
            let want = Twin::make(&own.shape, |i| if hit(i) { 9.0 } else { own.at(i) });
            assert_eq!(Twin::of(&copy), want, "{x:?} dim {d}");
            // Places that meet all count.
            let copy = x.copy(MemoryFormat::Preserve).unwrap();
            list[d] = Some(whole(&[0, 0, -1], &[3]));
            copy.index_put_(&list, &value, true).unwrap();
            let times = |i: usize| 2.0 * f64::from(i == 0) + f64::from(i == n - 1);
            let want = Twin::make(&own.shape, |i| own.at(i) + 9.0 * times(i[d]));
            assert_eq!(Twin::of(&copy), want, "{x:?} dim {d}");
            assert_eq!(copy.version(), 1);
        }
    }
}

#[test]
fn numbers_in_row_major_order_are_elements() {
    for x in views().into_iter().filter(|x| x.numel() > 0) {
        let own = Twin::of(&x);
        let n = x.numel();
        let at = places(n);
        let want = Twin::make(&[2, 3], |i| own.values[wrapped(&Twin::of(&at), i, n)]);
        assert_eq!(Twin::of(&x.take(&at).unwrap()), want, "{x:?}");
        let copy = x.copy(MemoryFormat::Preserve).unwrap();
        let value = View::full(&[2, 3], Scalar::Int(1), x.dtype(), &Device::cpu()).unwrap();
        copy.put_(&at, &value, true).unwrap();
        let mut want = own.values.clone();
        for i in indices(&[2, 3]) {
            want[wrapped(&Twin::of(&at), &i, n)] += 1.0;
        }
        assert_eq!(Twin::of(&copy).values, want, "{x:?}");
        assert!(x.take(&whole(&[n as i64], &[1])).unwrap_err().is_index());
    }
}

#[test]
fn scatters_reduce_what_meets() {
    for x in views().into_iter().filter(|x| x.dim() > 0 && x.numel() > 0) {
        let own = Twin::of(&x);
        let d = x.dim() - 1;
        let n = own.shape[d];
        // Everything of a lane goes to its first or second place.
        let to = |i: &[usize]| (i[d] % 2).min(n - 1);
        let index = Twin::make(&own.shape, |i| to(i) as f64).view(DType::I64);
        let cases = [
            Reduce::Sum,
            Reduce::Prod,
            Reduce::Mean,
            Reduce::Amax,
            Reduce::Amin,
        ];
        for reduce in cases {
            for include in [false, true] {
                let start =
                    View::full(&own.shape, Scalar::Int(2), DType::F64, &Device::cpu()).unwrap();
                let source = x.to_dtype(DType::F64).unwrap();
                start
                    .scatter_reduce_(d as isize, &index, (&source).into(), reduce, include)
                    .unwrap();
                let want = Twin::make(&own.shape, |i| {
                    let mut met: Vec<f64> = (0..n)
                        .filter(|j| to(&with(i, d, *j)) == i[d])
                        .map(|j| own.at(&with(i, d, j)))
                        .collect();
                    if include || met.is_empty() {
                        met.push(2.0);
                    }
                    match reduce {
                        Reduce::Sum => met.iter().sum(),
                        Reduce::Prod => met.iter().product(),
                        Reduce::Mean => met.iter().sum::<f64>() / met.len() as f64,
                        Reduce::Amax => met.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                        Reduce::Amin => met.iter().copied().fold(f64::INFINITY, f64::min),
                    }
                });
                assert_eq!(Twin::of(&start), want, "{x:?} {reduce:?} {include}");
            }
        }
    }
}

#[test]
fn reductions_of_integers_start_at_the_ends_of_their_dtype() {
    let index = whole(&[0, 0], &[2]);
    for dtype in [DType::I8, DType::U8, DType::I64, DType::U64] {
        for reduce in [Reduce::Amax, Reduce::Amin] {
            let x = View::full(&[2], Scalar::Int(7), dtype, &Device::cpu()).unwrap();
            let source = View::full(&[2], Scalar::Int(5), dtype, &Device::cpu()).unwrap();
            x.scatter_reduce_(0, &index, (&source).into(), reduce, false)
                .unwrap();
            assert_eq!(Twin::of(&x).values, [5.0, 7.0], "{dtype}");
        }
    }
    // Means of integers round down.
    let x = whole(&[-1, 0], &[2]);
    x.scatter_reduce_(
        0,
        &index,
        (&whole(&[0, -3], &[2])).into(),
        Reduce::Mean,
        true,
    )
    .unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [-2, 0]);
}

#[test]
fn a_refused_write_changes_nothing() {
    let x = whole(&[1, 2, 3, 4], &[2, 2]);
    let bad = whole(&[0, 2], &[2]);
    let one = whole(&[9], &[]);
    assert!(
        x.index_put_(&[Some(bad.clone())], &one, false)
            .unwrap_err()
            .is_index()
    );
    assert!(
        x.index_put_(&[Some(whole(&[0], &[1]))], &whole(&[1, 2, 3], &[3]), false)
            .unwrap_err()
            .is_shape()
    );
    let float = View::ones(&[], DType::F32, &Device::cpu()).unwrap();
    assert!(
        x.index_put_(&[Some(whole(&[0], &[1]))], &float, false)
            .unwrap_err()
            .is_dtype()
    );
    assert!(
        x.put_(&whole(&[4], &[1]), &whole(&[9], &[1]), false)
            .unwrap_err()
            .is_index()
    );
    let index = whole(&[0, 5], &[1, 2]);
    let source = whole(&[7, 7], &[1, 2]);
    assert!(
        x.scatter_reduce_(0, &index, (&source).into(), Reduce::Sum, false)
            .unwrap_err()
            .is_index()
    );
    let mask = View::ones(&[2, 2], DType::Bool, &Device::cpu()).unwrap();
    assert!(
        x.masked_scatter_(&mask, &whole(&[1, 2], &[2]))
            .unwrap_err()
            .is_shape()
    );
    assert!(
        x.index_put_(&[Some(x.select(0, 0).unwrap())], &one, false)
            .unwrap_err()
            .is_overlap()
    );
    assert_eq!(
        (x.to_vec::<i64>().unwrap(), x.version()),
        (vec![1, 2, 3, 4], 0)
    );
}

#[test]
fn what_cannot_be_an_index_is_refused() {
    let x = View::zeros(&[2, 3], DType::F32, &Device::cpu()).unwrap();
    let index = |v: View| x.index(&[Some(v)]);
    assert!(
        index(View::zeros(&[2], DType::F32, &Device::cpu()).unwrap())
            .unwrap_err()
            .is_index()
    );
    assert!(
        index(View::zeros(&[3], DType::Bool, &Device::cpu()).unwrap())
            .unwrap_err()
            .is_index()
    );
    assert!(index(whole(&[2], &[1])).unwrap_err().is_index());
    let (two, three) = (whole(&[0, 1], &[2]), whole(&[0, 1, 0], &[3]));
    assert!(
        x.index(&[Some(two.clone()), Some(three)])
            .unwrap_err()
            .is_index()
    );
    let many = vec![Some(two); 3];
    assert!(x.index(&many).unwrap_err().is_index());
    let empty = View::zeros(&[0, 3], DType::F32, &Device::cpu()).unwrap();
    assert!(
        empty
            .index(&[Some(whole(&[0], &[1]))])
            .unwrap_err()
            .is_index()
    );
    assert_eq!(
        empty.index(&[Some(whole(&[], &[0]))]).unwrap().shape(),
        [0, 3]
    );
}

#[test]
fn copies_of_a_storage_keep_its_layout() {
    let base = whole(&(0..12).collect::<Vec<_>>(), &[12]);
    let x = base.as_strided(&[2, 3], &[1, 4], Some(1)).unwrap();
    let copy = x.copy_of_storage().unwrap();
    assert_eq!((copy.stride(), copy.storage_offset()), (&[1, 4][..], 1));
    assert_eq!(copy.storage().nbytes(), 96);
    assert_eq!(Twin::of(&copy), Twin::of(&x));
    assert!(!copy.shares_storage(&x));
    let expanded = whole(&[1], &[1]).expand(&[3]).unwrap();
    assert_eq!(expanded.copy_of_storage().unwrap().storage().nbytes(), 24);
}
