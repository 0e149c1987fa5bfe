//! Gathers, scatters and masks against plain counting.

mod common;

use osteon_kernels::{
    BinaryOp, F8E4M3FN, Index, Indexed, binary, count_nonzero, masked_scatter, masked_select,
    naive, nonzero,
};
use osteon_spec::{DType, Layout, Plan};
use proptest::prelude::*;

/// A tensor of `u32` for tests: a layout, and all that it reaches.
#[derive(Clone, Debug)]
struct Tensor {
    layout: Layout,
    data: Vec<u32>,
}

impl Tensor {
    fn new(layout: &Layout, seed: u32) -> Tensor {
        let data = (0..layout.required_len() as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ seed);
        Tensor {
            layout: layout.clone(),
            data: data.collect(),
        }
    }

    fn strides(&self) -> Vec<isize> {
        self.layout
            .strides()
            .iter()
            .map(|&s| 4 * s as isize)
            .collect()
    }

    fn offset(&self) -> isize {
        4 * self.layout.offset() as isize
    }

    fn at(&self, index: &[usize]) -> usize {
        self.layout.offset()
            + index
                .iter()
                .zip(self.layout.strides())
                .map(|(i, s)| i * s)
                .sum::<usize>()
    }
}

/// Every index of a shape, in row-major order.
fn all(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..shape.iter().product()).map(|mut rest: usize| {
        let mut index: Vec<usize> = shape
            .iter()
            .rev()
            .map(|&n| {
                let i = rest % n;
                rest /= n;
                i
            })
            .collect();
        index.reverse();
        index
    })
}

fn without(list: &[isize], dim: usize) -> Vec<isize> {
    list.iter()
        .enumerate()
        .filter(|(d, _)| *d != dim)
        .map(|(_, &s)| s)
        .collect()
}

/// A big side, a dim of it, and a small side whose dim has another size.
fn case() -> impl Strategy<Value = (Tensor, Tensor, usize, Vec<i64>, Layout, bool)> {
    let shape = prop_oneof![
        4 => proptest::collection::vec(1usize..6, 1..=4),
        1 => proptest::collection::vec(1usize..70, 2..=2),
    ];
    (
        shape,
        0usize..4,
        prop_oneof![Just(0usize), 1usize..9, Just(50usize)],
    )
        .prop_flat_map(|(shape, dim, n)| {
            let dim = dim % shape.len();
            let mut small = shape.clone();
            small[dim] = n;
            let size = shape[dim] as i64;
            (
                common::dense_or_stepped(shape),
                common::dense_or_stepped(small),
                Just(dim),
                proptest::collection::vec(-size..size, n),
                common::dense_or_stepped(vec![n]),
                any::<bool>(),
            )
        })
        .prop_map(|(big, small, dim, index, layout, narrow)| {
            (
                Tensor::new(&big, 1),
                Tensor::new(&small, 99),
                dim,
                index,
                layout,
                narrow,
            )
        })
}

/// The bytes of indices in this layout, as int32 or int64.
fn index_bytes(values: &[i64], layout: &Layout, narrow: bool) -> (Vec<u8>, DType) {
    let width = if narrow { 4 } else { 8 };
    let mut bytes = vec![0xee; layout.required_len() * width];
    for (&v, at) in values.iter().zip(naive::positions(&[values.len()], layout)) {
        bytes[at * width..][..width].copy_from_slice(&v.to_le_bytes()[..width]);
    }
    (bytes, if narrow { DType::I32 } else { DType::I64 })
}

fn wrapped(v: i64, size: usize) -> usize {
    if v < 0 {
        (v + size as i64) as usize
    } else {
        v as usize
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// `index_select` into the small side, `index_copy` and `index_add` into the big one.
    #[test]
    fn along_a_dim((big, small, dim, values, layout, narrow) in case()) {
        let (shape, n) = (big.layout.sizes().to_vec(), values.len());
        let (bytes, dtype) = index_bytes(&values, &layout, narrow);
        let (bs, ss) = (big.strides(), small.strides());
        let index = [Index::new(&[n], &layout, bytes.as_ptr(), dtype, shape[dim], bs[dim])];
        // SAFETY: the buffers hold all that the layouts reach.
        prop_assert_eq!(unsafe { index[0].first_out_of_range(true) }, None);
        let mut rest = shape.clone();
        rest.remove(dim);
        let slice_strides = (without(&bs, dim), without(&ss, dim));

        let mut got = small.clone();
        let mut want = small.clone();
        let walk = Indexed {
            positions: Plan::from_strides(&[n], [small.offset(), big.offset()], [&[ss[dim]], &[0]]),
            slice: Plan::from_strides(&rest, [0, 0], [&slice_strides.1, &slice_strides.0]).sorted(),
            indices: &index,
        };
        // SAFETY: the buffers hold all that the layouts reach; the indices are in range.
        unsafe { walk.get(got.data.as_mut_ptr().cast(), big.data.as_ptr().cast(), 4) };
        for i in all(small.layout.sizes()) {
            let mut from = i.clone();
            from[dim] = wrapped(values[i[dim]], shape[dim]);
            want.data[small.at(&i)] = big.data[big.at(&from)];
        }
        prop_assert_eq!(&got.data, &want.data);

        let walk = Indexed {
            positions: Plan::from_strides(&[n], [big.offset(), small.offset()], [&[0], &[ss[dim]]]),
            slice: Plan::from_strides(&rest, [0, 0], [&slice_strides.0, &slice_strides.1]).sorted(),
            indices: &index,
        };
        let (mut set, mut added) = (big.clone(), big.clone());
        let (mut want_set, mut want_added) = (big.clone(), big.clone());
        // SAFETY: the buffers hold all that the layouts reach; the indices are in range.
        unsafe {
            walk.set(set.data.as_mut_ptr().cast(), small.data.as_ptr().cast(), 4);
            let add = binary(BinaryOp::Add, DType::U32).unwrap();
            walk.reduce(&add, added.data.as_mut_ptr().cast(), small.data.as_ptr().cast(), DType::U32);
        }
        // In the order of the index: the last of several writes stays.
        for (j, &v) in values.iter().enumerate() {
            for i in all(&rest) {
                let (mut to, mut from) = (i.clone(), i);
                to.insert(dim, wrapped(v, shape[dim]));
                from.insert(dim, j);
                let (to, from) = (big.at(&to), small.at(&from));
                want_set.data[to] = small.data[from];
                want_added.data[to] = want_added.data[to].wrapping_add(small.data[from]);
            }
        }
        prop_assert_eq!(&set.data, &want_set.data);
        prop_assert_eq!(&added.data, &want_added.data);
    }

    /// `gather` and `scatter`: an index for every element.
    #[test]
    fn elementwise((big, small, dim, _, _, narrow) in case(), seed in any::<u32>()) {
        let (shape, positions) = (big.layout.sizes().to_vec(), small.layout.sizes().to_vec());
        let n: usize = positions.iter().product();
        let size = shape[dim];
        let values: Vec<i64> =
            (0..n as u32).map(|i| (i.wrapping_mul(40_503) ^ seed) as i64 % size as i64).collect();
        let layout = Layout::contiguous(&positions).unwrap();
        let width = if narrow { 4 } else { 8 };
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect();
        let dtype = if narrow { DType::I32 } else { DType::I64 };
        let (bs, ss) = (big.strides(), small.strides());
        let index = [Index::new(&positions, &layout, bytes.as_ptr(), dtype, size, bs[dim])];
        let mut base = bs.clone();
        base[dim] = 0;
        let one = Plan::from_strides(&[], [0, 0], [&[], &[]]);

        let (mut got, mut want) = (small.clone(), small.clone());
        let walk = Indexed {
            positions: Plan::from_strides(&positions, [small.offset(), big.offset()], [&ss, &base]),
            slice: one.clone(),
            indices: &index,
        };
        // SAFETY: the buffers hold all that the layouts reach; the indices are in range.
        unsafe { walk.get(got.data.as_mut_ptr().cast(), big.data.as_ptr().cast(), 4) };
        let walk = Indexed {
            positions: Plan::from_strides(&positions, [big.offset(), small.offset()], [&base, &ss]),
            slice: one,
            indices: &index,
        };
        let (mut set, mut added) = (big.clone(), big.clone());
        let (mut want_set, mut want_added) = (big.clone(), big.clone());
        // SAFETY: as above.
        unsafe {
            walk.set(set.data.as_mut_ptr().cast(), small.data.as_ptr().cast(), 4);
            let add = binary(BinaryOp::Add, DType::U32).unwrap();
            walk.reduce(&add, added.data.as_mut_ptr().cast(), small.data.as_ptr().cast(), DType::U32);
        }
        for (i, &v) in all(&positions).zip(&values) {
            let mut other = i.clone();
            other[dim] = v as usize;
            let (s, b) = (small.at(&i), big.at(&other));
            want.data[s] = big.data[b];
            want_set.data[b] = small.data[s];
            want_added.data[b] = want_added.data[b].wrapping_add(small.data[s]);
        }
        prop_assert_eq!(&got.data, &want.data);
        prop_assert_eq!(&set.data, &want_set.data);
        prop_assert_eq!(&added.data, &want_added.data);
    }

    #[test]
    fn masks((shape, a, m) in common::shape().prop_flat_map(|s| (
        Just(s.clone()), common::dense_or_stepped(s.clone()), common::broadcasting(s),
    )), sparse in 1u8..5) {
        let tensor = Tensor::new(&a, 3);
        // Any byte but 0 is true.
        let mask: Vec<u8> = (0..m.required_len()).map(|i| (i as u8).wrapping_mul(89)).map(|b| if b % sparse == 0 { b } else { 0 }).collect();
        let truth: Vec<bool> = naive::positions(&shape, &m).into_iter().map(|i| mask[i] != 0).collect();
        let chosen: Vec<usize> = naive::positions(&shape, &a).into_iter().zip(&truth).filter(|(_, t)| **t).map(|(i, _)| i).collect();
        let alone = Plan::row_major(&shape, [(&m, 1)]);
        let both = Plan::row_major(&shape, [(&a, 4), (&m, 1)]);
        // SAFETY: the buffers hold all that the layouts reach, and room for all that is chosen.
        unsafe {
            prop_assert_eq!(count_nonzero(&alone, mask.as_ptr(), DType::Bool), chosen.len());
            let mut got = vec![0u32; chosen.len()];
            let (n, from) = (chosen.len(), tensor.data.as_ptr().cast());
            prop_assert!(!masked_select(&both, got.as_mut_ptr().cast(), from, mask.as_ptr(), 4, n + 1));
            prop_assert!(masked_select(&both, got.as_mut_ptr().cast(), from, mask.as_ptr(), 4, n));
            prop_assert_eq!(got, chosen.iter().map(|&i| tensor.data[i]).collect::<Vec<_>>());

            let source: Vec<u32> = (0..chosen.len() as u32).map(|i| i + 1_000_000).collect();
            let (mut got, mut want) = (tensor.clone(), tensor.clone());
            prop_assert!(masked_scatter(&both, got.data.as_mut_ptr().cast(), mask.as_ptr(), source.as_ptr().cast(), 4, n));
            for (&i, &v) in chosen.iter().zip(&source) {
                want.data[i] = v;
            }
            prop_assert_eq!(&got.data, &want.data);

            // Column-major, as PyTorch's result is.
            let (rows, rank) = (chosen.len(), shape.len());
            let mut got = vec![-1i64; rows * rank];
            let columns = [8, 8 * rows as isize];
            prop_assert!(nonzero(&shape, &alone, mask.as_ptr(), DType::U8, rows, got.as_mut_ptr().cast(), columns));
            let want: Vec<Vec<usize>> = all(&shape).zip(&truth).filter(|(_, t)| **t).map(|(i, _)| i).collect();
            for (n, index) in want.iter().enumerate() {
                for d in 0..rank {
                    prop_assert_eq!(got[d * rows + n], index[d] as i64);
                }
            }
        }
    }
}

#[test]
fn indices_out_of_range_are_found_with_their_place() {
    let values = [0i64, 2, -3, 1, -4, 3];
    let layout = Layout::contiguous(&[6]).unwrap();
    let first = |size, wrap| {
        let index = Index::new(&[6], &layout, values.as_ptr().cast(), DType::I64, size, 8);
        // SAFETY: six indices.
        unsafe { index.first_out_of_range(wrap) }
    };
    assert_eq!(first(4, true), None);
    assert_eq!(first(4, false), Some((2, -3)));
    assert_eq!(first(3, true), Some((4, -4)));
    assert_eq!(first(2, true), Some((1, 2)));
}

/// Two index tensors that broadcast: `x[[[0], [1]], :, [0, 2]]` of shape (2, 3, 4).
#[test]
fn several_indices_broadcast() {
    let x: Vec<u8> = (0..24).collect();
    let (rows, cols) = ([0i64, 1], [0i32, 2]);
    let (r, c) = (
        Layout::contiguous(&[2, 1]).unwrap(),
        Layout::contiguous(&[2]).unwrap(),
    );
    let indices = [
        Index::new(&[2, 2], &r, rows.as_ptr().cast(), DType::I64, 2, 12),
        Index::new(&[2, 2], &c, cols.as_ptr().cast(), DType::I32, 4, 1),
    ];
    let walk = Indexed {
        positions: Plan::from_strides(&[2, 2], [0, 0], [&[6, 3], &[0, 0]]),
        slice: Plan::from_strides(&[3], [0, 0], [&[1], &[4]]).sorted(),
        indices: &indices,
    };
    let mut got = [99u8; 12];
    // SAFETY: the buffers hold all that is addressed; the indices are in range.
    unsafe { walk.get(got.as_mut_ptr(), x.as_ptr(), 1) };
    assert_eq!(got, [0, 4, 8, 2, 6, 10, 12, 16, 20, 14, 18, 22]);
}

/// Half precision rounds at each addition: 2048 + 1 stays 2048, however often.
#[test]
fn sums_of_half_precision_round_at_each_step() {
    let mut dst = [half::f16::from_f32(2048.0), half::f16::from_f32(1.0)];
    let src = [half::f16::from_f32(1.0); 4];
    let values = [0i64, 0, 1, 0];
    let layout = Layout::contiguous(&[4]).unwrap();
    let indices = [Index::new(
        &[4],
        &layout,
        values.as_ptr().cast(),
        DType::I64,
        2,
        2,
    )];
    let walk = Indexed {
        positions: Plan::from_strides(&[4], [0, 0], [&[0], &[2]]),
        slice: Plan::from_strides(&[], [0, 0], [&[], &[]]),
        indices: &indices,
    };
    let add = binary(BinaryOp::Add, DType::F16).unwrap();
    // SAFETY: the buffers hold all that is addressed; the indices are in range.
    unsafe {
        walk.reduce(
            &add,
            dst.as_mut_ptr().cast(),
            src.as_ptr().cast(),
            DType::F16,
        )
    };
    assert_eq!(dst.map(f32::from), [2048.0, 2.0]);
}

#[test]
fn zero_is_zero_in_every_dtype() {
    let values = [0.0f32, -0.0, f32::NAN, 1e-45];
    let layout = Layout::contiguous(&[4]).unwrap();
    let plan = Plan::row_major(&[4], [(&layout, 4)]);
    // SAFETY: four elements.
    let count = unsafe { count_nonzero(&plan, values.as_ptr().cast(), DType::F32) };
    assert_eq!(count, 2);
    let values = [F8E4M3FN(0), F8E4M3FN(0x80), F8E4M3FN(1), F8E4M3FN(0x7f)];
    let plan = Plan::row_major(&[4], [(&layout, 1)]);
    // SAFETY: four elements.
    let count = unsafe { count_nonzero(&plan, values.as_ptr().cast(), DType::F8E4M3FN) };
    assert_eq!(count, 2);
}
