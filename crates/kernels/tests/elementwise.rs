//! The driver of elementwise loops against one element at a time: layouts, dtypes, work in place, threads.

mod common;

use osteon_kernels::{
    BinaryOp, CompareOp, Kernel, TernaryOp, UnaryOp, any_zero, binary, cast, compare, naive, par,
    select, ternary, unary,
};
use osteon_spec::{Category, DType, Layout, Plan, Scalar};
use proptest::prelude::*;

/// Bytes of small numbers of a dtype, positive and negative, for every position that a layout reaches.
fn numbers(layout: &Layout, dtype: DType, seed: usize) -> Vec<u8> {
    let mut bytes = vec![];
    for i in 0..layout.required_len() {
        let v = ((i * 7 + seed) % 23) as f64 - 9.0;
        let v = osteon_kernels::Value::new(Scalar::Float(v * 0.75), dtype);
        // SAFETY: an element's bytes.
        bytes.extend(unsafe { std::slice::from_raw_parts(v.as_ptr(), dtype.size()) });
    }
    bytes
}

/// Makes every NaN the same: its sign is what a compiler or a CPU happens to give it.
fn drop_signs_of_nan(bytes: &mut [u8], dtype: DType) {
    // The bits of infinity, and the width of a number, of which a complex one has two.
    let (infinity, width) = match dtype {
        DType::F8E4M3FN => (0x7e, 1),
        DType::F8E5M2 => (0x7c, 1),
        DType::F16 => (0x7c00, 2),
        DType::BF16 => (0x7f80, 2),
        DType::F32 | DType::C64 => (0x7f80_0000, 4),
        DType::F64 | DType::C128 => (0x7ff0_0000_0000_0000, 8),
        _ => return,
    };
    for number in bytes.chunks_exact_mut(width) {
        let mut bits = [0; 8];
        bits[..width].copy_from_slice(number);
        let magnitude = u64::from_le_bytes(bits) & !(1 << (8 * width - 1));
        if magnitude > infinity {
            number.fill(0xff);
        }
    }
}

/// In place, the destination is that input as well.
fn check<const N: usize>(
    kernel: &Kernel<N>,
    shape: &[usize],
    layouts: [&Layout; N],
    dtypes: [DType; N],
    in_place: Option<usize>,
) {
    let mut buffers: [Vec<u8>; N] =
        std::array::from_fn(|k| numbers(layouts[k], dtypes[k], k * 5 + 1));
    let mut twins = buffers.clone();
    let run = |buffers: &mut [Vec<u8>; N], naive: bool| {
        let mut ptrs = buffers.each_mut().map(|b| b.as_mut_ptr());
        if let Some(k) = in_place {
            ptrs[k] = ptrs[0];
        }
        let plan = Plan::new(
            shape,
            std::array::from_fn(|k| (layouts[k], dtypes[k].size())),
        );
        // SAFETY: the buffers hold all that the layouts reach.
        unsafe {
            if naive {
                naive::run(kernel, shape, layouts, ptrs, dtypes);
            } else {
                kernel.run(&plan, ptrs, dtypes);
            }
        }
    };
    run(&mut buffers, false);
    run(&mut twins, true);
    drop_signs_of_nan(&mut buffers[0], dtypes[0]);
    drop_signs_of_nan(&mut twins[0], dtypes[0]);
    assert!(
        buffers == twins,
        "{kernel:?} of {layouts:?} {dtypes:?}, in place: {in_place:?}"
    );
}

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(&DType::ALL[..])
}

/// Four layouts over one shape, the first without repeated positions.
fn layouts(
    shape: impl Strategy<Value = Vec<usize>>,
) -> impl Strategy<Value = (Vec<usize>, [Layout; 4])> {
    shape.prop_flat_map(|s| {
        let other = || common::broadcasting(s.clone());
        (
            Just(s.clone()),
            (
                common::dense_or_stepped(s.clone()),
                other(),
                other(),
                other(),
            )
                .prop_map(<[_; 4]>::from),
        )
    })
}

/// Shapes with runs that loops do in one call, with tiles and their edges, and with results that
/// are written past the caches.
fn large_shape() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        (2usize..40, 90usize..600).prop_map(|(a, b)| vec![a, b]),
        (90usize..600, 2usize..40).prop_map(|(a, b)| vec![a, b]),
        (1usize..4, 8usize..80, 8usize..80).prop_map(|(a, b, c)| vec![a, b, c]),
        (1000usize..9000).prop_map(|a| vec![a]),
    ]
}

fn fresh(shape: &[usize], [out, a, b, c]: [&Layout; 4], dtypes: [DType; 4], computed: DType) {
    let [d0, d1, d2, d3] = dtypes;
    check(&cast(d1, d0), shape, [out, a], [d0, d1], None);
    check(&select(computed), shape, [out, a, b, c], dtypes, None);
    if let Some(kernel) = unary(UnaryOp::Neg, computed) {
        check(&kernel, shape, [out, a], [d0, d1], None);
    }
    if let Some(kernel) = binary(BinaryOp::AddScaled, computed) {
        let kernel = kernel.with(&[Scalar::Int(2)]);
        check(&kernel, shape, [out, a, b], [d0, d1, d2], None);
        check(&kernel, shape, [out, a, b], [computed, d1, computed], None);
        check(&kernel, shape, [out, a, b], [computed; 3], None);
    }
    if let Some(kernel) = compare(CompareOp::Lt, computed) {
        check(&kernel, shape, [out, a, b], [d0, d1, d2], None);
        check(
            &kernel,
            shape,
            [out, a, b],
            [DType::Bool, computed, computed],
            None,
        );
    }
    if let Some(kernel) = ternary(TernaryOp::Addcmul, computed) {
        check(&kernel, shape, [out, a, b, c], [d0, d1, d2, d3], None);
    }
}

fn in_place(shape: &[usize], [out, a, b]: [&Layout; 3], dtype: DType, other: DType) {
    let mixed = [dtype, other, other, dtype];
    check(&select(dtype), shape, [out, a, b, out], mixed, Some(3));
    for d in [dtype, other] {
        if let Some(kernel) = binary(BinaryOp::Sub, dtype) {
            check(&kernel, shape, [out, a, out], [dtype, d, dtype], Some(2));
            check(&kernel, shape, [out, out, a], [dtype, dtype, d], Some(1));
        }
        if let Some(kernel) = ternary(TernaryOp::Addcmul, dtype) {
            check(
                &kernel,
                shape,
                [out, out, a, b],
                [dtype, dtype, d, other],
                Some(1),
            );
        }
    }
    for op in [UnaryOp::Square, UnaryOp::Sign] {
        if let Some(kernel) = unary(op, dtype) {
            check(&kernel, shape, [out, out], [dtype, dtype], Some(1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_layouts_and_dtypes(
        (shape, [out, a, b, c]) in layouts(common::shape()),
        dtypes in [any_dtype(), any_dtype(), any_dtype(), any_dtype()],
        computed in any_dtype(),
    ) {
        fresh(&shape, [&out, &a, &b, &c], dtypes, computed);
    }

    #[test]
    fn zeros_are_found((shape, [_, a, _, _]) in layouts(common::shape()), dtype in any_dtype()) {
        let bytes = numbers(&a, dtype, 0);
        let want = dtype.category() <= Category::Integer
            && naive::positions(&shape, &a)
                .into_iter()
                .any(|i| bytes[i * dtype.size()..][..dtype.size()].iter().all(|&b| b == 0));
        let plan = Plan::new(&shape, [(&a, dtype.size())]);
        // SAFETY: the buffer holds all that the layout reaches.
        prop_assert_eq!(unsafe { any_zero(&plan, bytes.as_ptr(), dtype) }, want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_large_layouts(
        (shape, [out, a, b, c]) in layouts(large_shape()),
        dtypes in [any_dtype(), any_dtype(), any_dtype(), any_dtype()],
        computed in any_dtype(),
    ) {
        fresh(&shape, [&out, &a, &b, &c], dtypes, computed);
        fresh(&shape, [&out, &a, &b, &c], [DType::F32; 4], DType::F32);
    }

    #[test]
    fn any_in_place(
        (shape, [out, a, b, _]) in layouts(prop_oneof![common::shape(), large_shape()]),
        dtype in any_dtype(),
        other in any_dtype(),
    ) {
        in_place(&shape, [&out, &a, &b], dtype, other);
        in_place(&shape, [&out, &a, &b], DType::F32, DType::F32);
    }
}

/// Large enough to be shared out: the answer does not depend on the number of threads.
#[test]
fn many_elements_and_threads() {
    let shape = [90, 400];
    let layout =
        |strides: [usize; 2]| Layout::new(shape[..].into(), strides[..].into(), 0).unwrap();
    let (rows, cols, steps) = (layout([400, 1]), layout([1, 90]), layout([800, 2]));
    let (column, row) = (layout([1, 0]), layout([0, 1]));
    for threads in [1, 3] {
        par::set_num_threads(threads);
        for b in [&rows, &cols, &steps, &column, &row] {
            for dtypes in [
                [DType::F32; 3],
                [DType::BF16; 3],
                [DType::F32, DType::I64, DType::F32],
            ] {
                let kernel = binary(BinaryOp::Add, dtypes[2]).unwrap();
                check(&kernel, &shape, [&rows, &cols, b], dtypes, None);
                check(
                    &kernel,
                    &shape,
                    [&rows, b, &rows],
                    [dtypes[0], dtypes[1], dtypes[0]],
                    Some(2),
                );
            }
        }
    }
}

#[test]
fn operands_of_half_precision_operations_are_rounded_first() {
    // 2049 is no float16: PyTorch compares 2048 with 2048.
    let (x, y) = (2049i64, half::f16::from_f32(2048.0));
    let mut equal = 0u8;
    let layout = Layout::contiguous(&[]).unwrap();
    let plan = Plan::new(&[], [(&layout, 1), (&layout, 8), (&layout, 2)]);
    let ptrs = [
        &raw mut equal,
        (&raw const x).cast::<u8>().cast_mut(),
        (&raw const y).cast::<u8>().cast_mut(),
    ];
    let kernel = compare(CompareOp::Eq, DType::F16).unwrap();
    // SAFETY: one element each.
    unsafe { kernel.run(&plan, ptrs, [DType::Bool, DType::I64, DType::F16]) };
    assert_eq!(equal, 1);
}
