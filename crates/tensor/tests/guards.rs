//! Guards: what they give, for every layout, and what they keep away.

use osteon_memory::{Origin, Storage};
use osteon_spec::{DType, Device, Dims, Kind, Layout, Result, Scalar};
use osteon_tensor::{Data, Number, View};
use proptest::prelude::*;
use std::panic::Location;
use std::sync::Arc;

fn range(n: i64) -> View {
    View::from_slice(&(0..n).collect::<Vec<_>>(), &[n as usize], &Device::cpu()).unwrap()
}

/// Every index of a shape, in row-major order.
fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |all, &n| {
        let longer = |i: Vec<usize>| (0..n).map(move |j| [&i[..], &[j]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A storage that holds its own positions: each element must be the position that the strides say.
    #[test]
    fn elements_are_where_the_layout_says(
        dims in prop::collection::vec((0..4usize, 0..5usize), 0..4),
        offset in 0..5usize,
    ) {
        let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        let base = range(64);
        let layout =
            Layout::new(Dims::from_slice(&sizes), Dims::from_slice(&strides), offset).unwrap();
        let view = base.with_layout(layout, "test").unwrap();
        let at = |i: &[usize]| offset + i.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>();
        let expected: Vec<i64> = indices(&sizes).iter().map(|i| at(i) as i64).collect();

        let read = view.read::<i64>().unwrap();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), expected.clone());
        for (index, value) in indices(&sizes).iter().zip(&expected) {
            prop_assert_eq!(read.get(index), Some(*value));
        }
        // One too far in any dim, and the wrong number of indices, is outside.
        for d in 0..sizes.len() {
            let mut index = vec![0; sizes.len()];
            index[d] = sizes[d];
            prop_assert_eq!(read.get(&index), None);
        }
        prop_assert_eq!(read.get(vec![0; sizes.len() + 1]), None);
        let dense = expected.windows(2).all(|w| w[1] == w[0] + 1);
        match read.as_slice() {
            Some(slice) => prop_assert_eq!(slice, &expected[..]),
            None => prop_assert!(!dense, "{sizes:?} {strides:?} is dense"),
        }
        prop_assert_eq!(view.to_vec::<i64>().unwrap(), expected.clone());
        drop(read);

        // Writing through the guard is writing those positions.
        let mut write = view.write::<i64>().unwrap();
        for index in indices(&sizes) {
            let value = write.get(&index).unwrap();
            let again = if value >= 100 { value } else { value + 100 };
            prop_assert!(write.set(&index, again));
        }
        prop_assert!(!write.set(vec![0; sizes.len() + 1], 1));
        drop(write);
        let all = base.to_vec::<i64>().unwrap();
        for (position, value) in all.iter().enumerate() {
            let written = expected.contains(&(position as i64));
            prop_assert_eq!(*value, position as i64 + if written { 100 } else { 0 });
        }
    }
}

#[test]
fn every_number_goes_in_and_comes_out() {
    fn check<T: Number + PartialEq + std::fmt::Debug>(values: [T; 3]) {
        let view = View::from_slice(&values, &[3], &Device::cpu()).unwrap();
        assert_eq!(view.read::<T>().unwrap().iter().collect::<Vec<_>>(), values);
        let mut write = view.write::<T>().unwrap();
        assert!(write.set([0], values[2]) && !write.set([3], values[0]));
        drop(write);
        assert_eq!(
            view.to_vec::<T>().unwrap(),
            [values[2], values[1], values[2]]
        );
    }
    check([1u8, 0, 255]);
    check([1i8, -1, 127]);
    check([1i16, -1, 127]);
    check([1i32, -1, 127]);
    check([1i64, -1, 127]);
    check([1u16, 2, 127]);
    check([1u32, 2, 127]);
    check([1u64, 2, 127]);
    check([1.5f32, -0.5, f32::INFINITY]);
    check([1.5f64, -0.5, f64::INFINITY]);
    check([true, false, true]);
    check([1.5, -0.5, 3.0].map(half::f16::from_f32));
    check([1.5, -0.5, 3.0].map(half::bf16::from_f32));
    check([1.5, -0.5, 3.0].map(|x| num_complex::Complex::new(x, -x)));
    check([1.5f32, -0.5, 3.0].map(|x| num_complex::Complex::new(x, -x)));
}

#[test]
fn any_byte_is_a_bool() {
    let bytes = View::from_slice(&[0u8, 1, 2, 255], &[4], &Device::cpu()).unwrap();
    let bools = bytes.view_dtype(DType::Bool).unwrap();
    let expected = [false, true, true, true];
    assert_eq!(
        bools.read::<bool>().unwrap().iter().collect::<Vec<_>>(),
        expected
    );
    assert_eq!(bools.to_vec::<bool>().unwrap(), expected);
}

#[test]
fn guards_keep_conflicting_operations_away() {
    let (a, b) = (range(8), range(8));
    let half = a.slice(0, Some(0), Some(4), 1).unwrap();
    let refused = |result: Result<()>, line: u32| {
        let e = result.unwrap_err();
        assert_eq!(e.kind(), Kind::Borrowed);
        assert!(e.to_string().contains(&format!("guards.rs:{line}:")), "{e}");
    };
    let line = line!() + 1;
    let read = half.read::<i64>().unwrap();
    // Reading goes on; writes are refused, also through a view of other elements of the storage.
    assert_eq!(a.to_vec::<i64>().unwrap().len(), 8);
    b.copy_(&a).unwrap();
    let rest = a.slice(0, Some(4), Some(8), 1).unwrap();
    refused(rest.fill_(Scalar::Int(0)), line);
    refused(a.copy_(&b), line);
    refused(a.write::<i64>().map(drop), line);
    refused(a.resized(&[100]).map(drop), line);
    assert_eq!((a.version(), a.storage().nbytes()), (0, 64));
    assert_eq!(read.as_slice(), Some(&[0, 1, 2, 3][..]));
    drop(read);

    let line = line!() + 1;
    let mut write = half.write::<i64>().unwrap();
    let slice = write.as_mut_slice().unwrap();
    refused(a.to_vec::<i64>().map(drop), line);
    refused(b.copy_(&a), line);
    refused(rest.read::<i64>().map(drop), line);
    slice.fill(5);
    assert!(
        a.to_string().contains("guards.rs"),
        "printing says what is in the way"
    );
    // Views need no access, and operations on other storages go on.
    assert_eq!(a.t().unwrap().shape(), [8]);
    b.fill_(Scalar::Int(1)).unwrap();
    drop(write);
    assert_eq!(a.to_vec::<i64>().unwrap(), [5, 5, 5, 5, 4, 5, 6, 7]);
    assert_eq!(a.version(), 1);
}

#[test]
fn guards_outlive_their_tensors_and_travel() {
    let mut write = range(4).write::<i64>().unwrap();
    write.as_mut_slice().unwrap()[0] = 9;
    let sum = std::thread::spawn(move || write.iter().sum::<i64>())
        .join()
        .unwrap();
    assert_eq!(sum, 9 + 1 + 2 + 3);
    let read = range(4).expand(&[3, 4]).unwrap().read::<i64>().unwrap();
    assert!(read.as_slice().is_none());
    let sums: Vec<i64> = std::thread::scope(|s| {
        let threads = [(); 2].map(|()| s.spawn(|| read.iter().sum()));
        threads.map(|t| t.join().unwrap()).into()
    });
    assert_eq!(sums, [18, 18]);
}

#[test]
fn what_cannot_be_guarded_is_an_error() {
    let a = range(4);
    assert_eq!(a.read::<f32>().unwrap_err().kind(), Kind::DType);
    assert_eq!(a.write::<u64>().unwrap_err().kind(), Kind::DType);
    let meta = View::empty(&[4], DType::I64, &Device::meta()).unwrap();
    assert_eq!(meta.read::<i64>().unwrap_err().kind(), Kind::Device);
    let origin = Origin::Foreign {
        owner: Arc::from("a test"),
        site: Location::caller(),
    };
    let storage = Storage::from_owner([7u8; 4], origin).unwrap();
    let lent = View::new(
        storage,
        Layout::contiguous(&[4]).unwrap(),
        DType::U8,
        "test",
    )
    .unwrap();
    assert_eq!(lent.write::<u8>().unwrap_err().kind(), Kind::ReadOnly);
    assert_eq!(
        lent.fill_(Scalar::Int(1)).unwrap_err().kind(),
        Kind::ReadOnly
    );
    assert_eq!(lent.copy_(&lent).unwrap_err().kind(), Kind::ReadOnly);
    assert_eq!(lent.version(), 0);
    assert_eq!(lent.read::<u8>().unwrap().as_slice(), Some(&[7; 4][..]));
}

/// Nothing to read, in every way of having nothing.
#[test]
fn empty_views_have_empty_slices() {
    let device = Device::cpu();
    let none = View::empty(&[0], DType::F32, &device).unwrap();
    let far = range(4).slice(0, Some(4), Some(4), 1).unwrap();
    assert_eq!(none.read::<f32>().unwrap().as_slice(), Some(&[][..]));
    assert_eq!(
        far.write::<i64>().unwrap().as_mut_slice(),
        Some(&mut [][..])
    );
    assert_eq!(far.read::<i64>().unwrap().iter().next(), None);
    let wide = View::empty(&[3, 0, 5], DType::F32, &device).unwrap();
    assert_eq!(wide.read::<f32>().unwrap().get([0, 0, 0]), None);
    wide.fill_(Scalar::Int(1)).unwrap();
    none.copy_(&none.alias().unwrap()).unwrap();
    assert!(wide.to_vec::<f32>().unwrap().is_empty());
    assert_eq!(none.to_string(), "tensor([])");
    // Empty foreign memory may be at any address.
    let origin = Origin::Foreign {
        owner: Arc::from("a test"),
        site: Location::caller(),
    };
    let storage = Storage::from_owner(Vec::new(), origin).unwrap();
    let empty = View::new(
        storage,
        Layout::contiguous(&[0, 2]).unwrap(),
        DType::C128,
        "test",
    );
    assert!(
        empty
            .unwrap()
            .to_vec::<num_complex::Complex<f64>>()
            .unwrap()
            .is_empty()
    );
}

/// An expanded view has more elements than any memory: they are not laid out, and reading some is cheap.
#[test]
fn expanded_views_are_read_without_memory() {
    let one = range(1);
    let wide = one.expand(&[1 << 40]).unwrap();
    let read = wide.read::<i64>().unwrap();
    assert_eq!(read.iter().take(3).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(read.get([(1 << 40) - 1]), Some(0));
    assert_eq!(wide.to_vec::<i64>().unwrap_err().kind(), Kind::OutOfMemory);
}

/// A user's own `Data` that gives more numbers, or fewer, than its shape says: an error, not a write
/// beyond the storage.
#[test]
fn data_that_lies_about_its_shape_is_an_error() {
    struct Liar(usize);
    impl Data for Liar {
        type Item = f32;
        const RANK: usize = 1;
        fn shape(&self, _level: usize, shape: &mut Dims) -> Result<()> {
            shape.push(4);
            Ok(())
        }
        fn append(&self, out: &mut Vec<f32>) {
            out.resize(self.0, 1.0);
        }
    }
    assert_eq!(
        View::from_data(&Liar(4), &Device::cpu()).unwrap().numel(),
        4
    );
    for n in [0, 3, 5, 100_000] {
        let error = View::from_data(&Liar(n), &Device::cpu()).unwrap_err();
        assert_eq!(error.kind(), Kind::Shape);
        assert!(error.to_string().contains("shape [4]"), "{error}");
    }
}
