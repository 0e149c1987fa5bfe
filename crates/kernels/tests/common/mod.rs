//! What the property tests share: shapes, and layouts of every kind over them.
#![allow(dead_code)]

use osteon_spec::{Dims, Layout};
use proptest::prelude::*;

/// Shapes of rank 0 to 5, some with a dim of size 0; often small, sometimes long.
pub fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        8 => proptest::collection::vec(prop_oneof![1 => Just(0usize), 20 => 1usize..6], 0..=5),
        4 => proptest::collection::vec(1usize..90, 2..=2),
        2 => proptest::collection::vec(1usize..30, 3..=3),
        2 => proptest::collection::vec(1usize..3000, 1..=1),
    ]
}

/// A layout of exactly this shape in which no position repeats: permuted, stepped, sliced.
pub fn dense_or_stepped(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    let rank = shape.len();
    (
        Just((0..rank).collect::<Vec<_>>()).prop_shuffle(),
        any::<bool>(),
        proptest::collection::vec(
            prop_oneof![3 => Just((1usize, 0usize)), 1 => (1usize..4, 0usize..3)],
            rank,
        ),
        prop_oneof![Just(0usize), 0usize..9],
    )
        .prop_map(move |(order, row_major, gaps, offset)| {
            let mut strides = Dims::from_elem(1, rank);
            let mut next = 1;
            for (i, &d) in order.iter().enumerate() {
                let d = if row_major { rank - 1 - i } else { d };
                let (step, extra) = gaps[d];
                strides[d] = next * step;
                next = next * step * shape[d].max(1) + extra;
            }
            Layout::new(Dims::from_slice(&shape), strides, offset).unwrap()
        })
}

/// A layout that broadcasts to this shape: the above with dims of size 1, dims left out, or stride 0.
pub fn broadcasting(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    let rank = shape.len();
    let changes = proptest::collection::vec(
        prop_oneof![4 => Just(0u8), 1 => Just(1), 1 => Just(2)],
        rank,
    );
    (
        dense_or_stepped(shape),
        changes,
        prop_oneof![3 => Just(0), 1 => 0..=rank],
    )
        .prop_map(|(layout, changes, dropped)| {
            let mut sizes = Dims::from_slice(layout.sizes());
            let mut strides = Dims::from_slice(layout.strides());
            for (d, change) in changes.into_iter().enumerate() {
                match change {
                    1 => sizes[d] = 1,
                    2 => strides[d] = 0,
                    _ => {}
                }
            }
            let sizes = Dims::from_slice(&sizes[dropped..]);
            let strides = Dims::from_slice(&strides[dropped..]);
            Layout::new(sizes, strides, layout.offset()).unwrap()
        })
}
