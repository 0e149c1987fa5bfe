//! What a refused view says: the operation, the shape, and what would be accepted.

use osteon_spec::{Kind, Layout, Result, broadcast_shapes};

fn layout(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).unwrap()
}

fn says<T: std::fmt::Debug>(result: Result<T>, kind: Kind, message: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
}

#[test]
fn messages_name_the_operation_the_shape_and_the_way_out() {
    let x = layout(&[2, 3, 4]);
    says(
        x.view(&[5, -1]),
        Kind::Shape,
        "view: shape '[5, -1]' is invalid for input of size 24",
    );
    says(
        x.view(&[-1, -1]),
        Kind::Shape,
        "view: only one dimension can be inferred, but shape [-1, -1] has more than one -1",
    );
    says(
        x.transpose(0, 1).unwrap().view(&[6, 4]),
        Kind::Layout,
        "view: shape [6, 4] is not compatible with the size and stride of (3, 2, 4)@(4, 12, 1): \
         dimensions 0 and 1 do not merge: a step of dimension 0 is 4 elements, not the 24 that \
         dimension 1 spans (size 2 x stride 12); use reshape(...), which copies",
    );
    says(
        x.select(1, 3),
        Kind::Index,
        "select: index 3 out of range for tensor of size [2, 3, 4] at dimension 1: \
         expected -3 <= index < 3",
    );
    says(
        x.transpose(0, 3),
        Kind::Index,
        "transpose: dimension out of range (expected to be in range of [-3, 2], but got 3)",
    );
    says(
        x.narrow(0, 1, 2),
        Kind::Value,
        "narrow: start (1) + length (2) exceeds the size (2) of dimension 0 of shape [2, 3, 4]",
    );
    says(
        x.slice(0, None, None, -1),
        Kind::Value,
        "slice: step must be greater than zero, got -1; flip(dims) copies in reverse order",
    );
    says(
        x.expand(&[2, 2, 4]),
        Kind::Shape,
        "expand: the expanded size of the tensor (2) must match the existing size (3) at \
         non-singleton dimension 1. Target sizes: [2, 2, 4]. Tensor sizes: [2, 3, 4]",
    );
    says(
        x.permute(&[0, 1, 1]),
        Kind::Value,
        "permute: duplicate dims are not allowed: a dimension appears twice in [0, 1, 1]",
    );
    says(
        x.split_with_sizes(&[1, 1], 2),
        Kind::Value,
        "split_with_sizes: split_sizes must be non-negative and add up to 4, the size of dimension 2 \
         of shape [2, 3, 4], but got [1, 1]",
    );
    says(
        broadcast_shapes(&[&[2, 3], &[4, 1]]),
        Kind::Shape,
        "shapes [2, 3] and [4, 1] do not broadcast: size 2 must match size 4 at non-singleton \
         dimension 0",
    );
}

#[test]
fn ranks_end_at_64() {
    let full = layout(&[1; 64]);
    assert!(full.unsqueeze(0).unwrap_err().is_shape());
    assert!(full.view(&[1; 65]).unwrap_err().is_shape());
    assert!(full.expand(&[1; 65]).unwrap_err().is_shape());
    assert!(full.unfold(0, 1, 1).unwrap_err().is_shape());
    assert!(full.unflatten(0, &[1, 1]).unwrap_err().is_shape());
    assert!(full.view_as_real().unwrap_err().is_shape());
    assert_eq!(full.squeeze().rank(), 0);
    assert_eq!(
        full.permute(&Vec::from_iter((0..64).rev())).unwrap().rank(),
        64
    );
}

/// Sums of dozens of unrelated strides are beyond any search: that is said, soon.
#[test]
fn overlap_that_is_too_hard_is_an_error() {
    let strides: Vec<usize> = (0..50)
        .map(|i: usize| 2 * ((1 << 45) + i.pow(5) * 7919 % 1_000_003))
        .collect();
    let x = Layout::new(vec![2; 50].into(), strides.into(), 0).unwrap();
    assert!(x.overlaps_itself().unwrap_err().is_overlap());
}
