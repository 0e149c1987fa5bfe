//! Writes between views that share memory, against a model that moves elements one at a time.

use osteon_memory::{Origin, Storage};
use osteon_spec::{DType, Device, Dims, Kind, Layout, Scalar};
use osteon_tensor::View;
use proptest::prelude::*;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

const CELLS: usize = 40;

/// The positions of a layout's elements, in row-major order.
fn positions(sizes: &[usize], strides: &[usize], offset: usize) -> Vec<usize> {
    let mut all = vec![offset];
    for (&n, &stride) in sizes.iter().zip(strides) {
        all = all
            .iter()
            .flat_map(|at| (0..n).map(move |i| at + i * stride))
            .collect();
    }
    all
}

fn view(base: &View, sizes: &[usize], strides: &[usize], offset: usize) -> View {
    let layout = Layout::new(Dims::from_slice(sizes), Dims::from_slice(strides), offset).unwrap();
    base.with_layout(layout, "test").unwrap()
}

fn base() -> View {
    let values: Vec<i32> = (0..CELLS as i32).collect();
    View::from_slice(&values, &[CELLS], &Device::cpu()).unwrap()
}

fn place() -> impl Strategy<Value = (Vec<usize>, usize)> {
    (prop::collection::vec(0..6usize, 2), 0..12usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// `copy_` inside one storage is exactly right or refused: refused when the target meets itself or shares
    /// a place with the source other than element for element; and what is refused changes nothing.
    #[test]
    fn copies_inside_a_storage_are_right_or_refused(
        sizes in prop::collection::vec(0..4usize, 2),
        (to, to_offset) in place(),
        (from, from_offset) in place(),
    ) {
        let base = base();
        let (dst, src) = (view(&base, &sizes, &to, to_offset), view(&base, &sizes, &from, from_offset));
        let (d, s) = (positions(&sizes, &to, to_offset), positions(&sizes, &from, from_offset));
        let places: HashSet<_> = d.iter().collect();
        let itself = places.len() < d.len();
        let shared = s.iter().any(|p| places.contains(p));
        prop_assert_eq!(dst.overlaps(&src).unwrap(), shared);

        let mut expected: Vec<i32> = (0..CELLS as i32).collect();
        match dst.copy_(&src) {
            Ok(()) => {
                prop_assert!(d == s || !itself && !shared);
                let moved: Vec<_> = s.iter().map(|&p| expected[p]).collect();
                for (&p, value) in d.iter().zip(moved) {
                    expected[p] = value;
                }
                prop_assert_eq!(base.version(), 1);
            }
            Err(e) => {
                prop_assert_eq!(e.kind(), Kind::Overlap);
                // PyTorch's rule, which is kept: one element seen through different strides is refused too.
                prop_assert!(itself || shared && (d != s || to != from), "{e}");
                prop_assert_eq!(base.version(), 0);
            }
        }
        prop_assert_eq!(base.to_vec::<i32>().unwrap(), expected);
    }

    /// One number may be written everywhere, whatever overlaps.
    #[test]
    fn fills_reach_exactly_their_places(sizes in prop::collection::vec(0..4usize, 2), (to, offset) in place()) {
        let base = base();
        view(&base, &sizes, &to, offset).fill_(Scalar::Int(-1)).unwrap();
        let places: HashSet<_> = positions(&sizes, &to, offset).into_iter().collect();
        for (p, value) in base.to_vec::<i32>().unwrap().into_iter().enumerate() {
            prop_assert_eq!(value, if places.contains(&p) { -1 } else { p as i32 });
        }
    }
}

/// Two foreign storages over the same bytes share memory, though not a storage.
#[test]
fn foreign_storages_over_one_memory_overlap() {
    static WORDS: [u32; 8] = [0; 8];
    let bytes = |from: usize, to: usize| -> Storage {
        let bytes: &'static [u8] = bytemuck::cast_slice(&WORDS[from..to]);
        let origin = Origin::Foreign {
            owner: Arc::from("a test"),
            site: Location::caller(),
        };
        Storage::from_owner(bytes, origin).unwrap()
    };
    let look = |storage: &Storage, n| {
        View::new(
            storage.clone(),
            Layout::contiguous(&[n]).unwrap(),
            DType::F32,
            "test",
        )
        .unwrap()
    };
    let (all, front, back) = (bytes(0, 8), bytes(0, 4), bytes(4, 8));
    let views = [look(&all, 8), look(&front, 4), look(&back, 4)];
    let overlaps = |i: usize, j: usize| views[i].overlaps(&views[j]).unwrap();
    assert!(overlaps(0, 1) && overlaps(0, 2) && overlaps(1, 0) && !overlaps(1, 2));
    assert!(!look(&all, 4).overlaps(&views[2]).unwrap());
    // Memory of ours is apart from all of them.
    let ours = View::zeros(&[4], DType::F32, &Device::cpu()).unwrap();
    assert!(!ours.overlaps(&views[0]).unwrap());
    ours.copy_(&views[1]).unwrap();
}

/// On a device without addresses storages are apart, and views of one storage are decided as everywhere.
#[test]
fn overlap_on_meta() {
    let meta = || View::empty(&[8], DType::F32, &Device::meta()).unwrap();
    let (a, b) = (meta(), meta());
    assert!(!a.overlaps(&b).unwrap());
    let (front, rest) = (a.narrow(0, 0, 5).unwrap(), a.narrow(0, 3, 5).unwrap());
    assert!(front.overlaps(&rest).unwrap());
    assert_eq!(front.copy_(&rest).unwrap_err().kind(), Kind::Overlap);
    front.copy_(&b.narrow(0, 0, 5).unwrap()).unwrap();
}

#[test]
fn an_expanded_view_of_any_size_is_filled() {
    let row = View::zeros(&[3], DType::F32, &Device::cpu()).unwrap();
    let huge = row.expand(&[1 << 50, 3]).unwrap();
    huge.fill_(Scalar::Float(2.0)).unwrap();
    assert_eq!(row.to_vec::<f32>().unwrap(), [2.0; 3]);
}
