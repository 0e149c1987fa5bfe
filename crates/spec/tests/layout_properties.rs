//! The layout algebra against the naive definition: every index, and the bytes that it reaches.

use osteon_spec::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

/// Every index in row-major order.
fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in sizes {
        all = all
            .into_iter()
            .flat_map(|index| {
                (0..n).map(move |i| {
                    let mut longer = index.clone();
                    longer.push(i);
                    longer
                })
            })
            .collect();
    }
    all
}

fn position(x: &Layout, index: &[usize]) -> usize {
    x.offset()
        + index
            .iter()
            .zip(x.strides())
            .map(|(i, s)| i * s)
            .sum::<usize>()
}

fn positions(x: &Layout) -> Vec<usize> {
    indices(x.sizes())
        .iter()
        .map(|index| position(x, index))
        .collect()
}

fn bytes(p: Placed<'_>, base: usize) -> BTreeSet<usize> {
    let width = p.itemsize();
    positions(p.layout())
        .into_iter()
        .flat_map(|at| base + at * width..base + (at + 1) * width)
        .collect()
}

fn runs_of(bytes: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for &b in bytes {
        match runs.last_mut() {
            Some(run) if run.end == b => run.end += 1,
            _ => runs.push(b..b + 1),
        }
    }
    runs
}

/// Layouts of every sort: scalars, sizes 0 and 1, stride 0, dense, strided, interleaved.
fn layouts(max_rank: usize) -> impl Strategy<Value = Layout> {
    let size = prop_oneof![1 => Just(0usize), 2 => Just(1), 12 => 2..6usize];
    let stride = prop_oneof![1 => Just(0usize), 4 => 1..8usize, 2 => 8..40usize];
    let wild = prop::collection::vec((size.clone(), stride), 0..=max_rank)
        .prop_map(|dims| dims.into_iter().unzip());
    // Dense in any order of dims, with gaps now and then.
    let tidy = (
        prop::collection::vec(size, 0..=max_rank),
        any::<u64>(),
        prop::collection::vec(0..3usize, max_rank),
    )
        .prop_map(|(sizes, order, gaps)| {
            let mut dims: Vec<usize> = (0..sizes.len()).collect();
            dims.sort_by_key(|&d| order.rotate_left(d as u32 * 13) % 64);
            let mut strides = vec![1; sizes.len()];
            let mut next = 1;
            for d in dims {
                next *= 1 + gaps[d] / 2;
                strides[d] = next;
                next *= sizes[d].max(1);
            }
            (sizes, strides)
        });
    (prop_oneof![wild, tidy], 0..6usize).prop_map(
        |((sizes, strides), offset): ((Vec<usize>, Vec<usize>), usize)| {
            Layout::new(sizes.into(), strides.into(), offset).unwrap()
        },
    )
}

fn itemsize() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1usize, 2, 4, 8, 16])
}

fn signed(sizes: &[usize]) -> Vec<isize> {
    sizes.iter().map(|&n| n as isize).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn runs_are_the_bytes_reached(x in layouts(4), width in itemsize(), base in 0..100usize) {
        let placed = Placed::new(&x, width).at(base);
        let naive = bytes(placed, base);
        let runs: Vec<_> = byte_runs(placed).unwrap().collect();
        prop_assert_eq!(&runs, &runs_of(&naive));
        prop_assert_eq!(reached_bytes(&[placed]).unwrap(), naive.len());
        if let (Some(first), Some(last)) = (naive.first(), naive.last()) {
            prop_assert_eq!(placed.extent(), *first..last + 1);
        } else {
            prop_assert!(placed.extent().is_empty());
        }
    }

    #[test]
    fn unions_are_the_bytes_reached(
        views in prop::collection::vec((layouts(3), itemsize(), 0..200usize), 0..6),
        most in 1..8usize,
    ) {
        let placed: Vec<_> = views.iter().map(|(x, width, base)| Placed::new(x, *width).at(*base)).collect();
        let naive: BTreeSet<usize> = views
            .iter()
            .zip(&placed)
            .flat_map(|((.., base), p)| bytes(*p, *base))
            .collect();
        let exact = runs_of(&naive);
        let runs: Vec<_> = union_runs(&placed).unwrap().collect();
        prop_assert_eq!(&runs, &exact);
        prop_assert_eq!(reached_bytes(&placed).unwrap(), naive.len());

        let coarse = coarse_runs(&placed, most).unwrap();
        prop_assert_eq!(coarse.exact, exact.len() <= most);
        prop_assert_eq!(coarse.runs.len(), exact.len().min(most));
        prop_assert!(naive.iter().all(|b| coarse.runs.iter().any(|run| run.contains(b))));
        // The gaps that are left are the largest.
        let gaps = |runs: &[Range<usize>]| {
            let mut gaps: Vec<_> = runs.windows(2).map(|w| w[1].start - w[0].end).collect();
            gaps.sort_unstable_by(|a, b| b.cmp(a));
            gaps
        };
        let kept = gaps(&coarse.runs);
        prop_assert_eq!(&kept, &gaps(&exact)[..kept.len()]);
    }

    /// Slices of one tensor, which share all outer steps and are counted by them.
    #[test]
    fn slices_of_one_tensor_count_once(
        slices in prop::collection::vec((0..6isize, 1..7isize, 1..4isize, 0..5isize, 1..6isize), 1..5),
        width in itemsize(),
    ) {
        let x = Layout::contiguous(&[4, 5, 6]).unwrap();
        let views: Vec<_> = slices
            .iter()
            .map(|&(from, to, step, row, rows)| {
                let x = x.slice(2, Some(from), Some(to), step).unwrap();
                x.slice(1, Some(row), Some(rows), 1).unwrap()
            })
            .collect();
        let placed: Vec<_> = views.iter().map(|x| Placed::new(x, width)).collect();
        let naive: BTreeSet<_> = placed.iter().flat_map(|p| bytes(*p, 0)).collect();
        prop_assert_eq!(reached_bytes(&placed).unwrap(), naive.len());
    }

    #[test]
    fn overlap_is_a_shared_byte(
        a in layouts(3), b in layouts(3), wa in itemsize(), wb in itemsize(), base in 0..300usize,
    ) {
        let (pa, pb) = (Placed::new(&a, wa).at(100), Placed::new(&b, wb).at(base));
        let shared: BTreeSet<_> = bytes(pa, 100).intersection(&bytes(pb, base)).copied().collect();
        prop_assert_eq!(overlaps(pa, pb).unwrap(), !shared.is_empty());
        prop_assert_eq!(overlaps(pb, pa).unwrap(), !shared.is_empty());
        prop_assert_eq!(shared_bytes(pa, pb), runs_of(&shared).first().cloned());
    }

    #[test]
    fn internal_overlap_is_a_shared_position(x in layouts(4)) {
        let all = positions(&x);
        let shared = all.iter().collect::<BTreeSet<_>>().len() < all.len();
        prop_assert_eq!(x.overlaps_itself().unwrap(), shared);
        match x.has_internal_overlap() {
            InternalOverlap::No => prop_assert!(!shared),
            InternalOverlap::Yes => prop_assert!(shared || x.numel() == 0),
            InternalOverlap::TooHard => {}
        }
        prop_assert_eq!(x.numel(), all.len());
        prop_assert_eq!(x.required_len(), all.iter().max().map_or(0, |last| last + 1));
    }

    #[test]
    fn dense_is_every_position_once(x in layouts(4)) {
        let mut all = positions(&x);
        prop_assert_eq!(x.is_contiguous(), (0..all.len()).all(|i| all[i] == x.offset() + i));
        all.sort_unstable();
        let dense = (0..all.len()).all(|i| all[i] == all[0] + i);
        prop_assert_eq!(x.is_non_overlapping_and_dense(), dense);
    }

    #[test]
    fn a_view_keeps_the_order_of_elements_and_exists_when_strides_can(x in layouts(4), cuts in any::<u64>()) {
        // A shape of as many elements, from the prime factors in some grouping.
        let mut shape = vec![1usize];
        let mut rest = x.numel();
        let mut bits = cuts;
        while rest > 1 {
            let p = (2..=rest).find(|p| rest % p == 0).unwrap();
            rest /= p;
            if bits & 1 == 1 {
                shape.push(1);
            }
            *shape.last_mut().unwrap() *= p;
            bits = bits.rotate_right(1);
        }
        if x.numel() == 0 {
            shape.push(0);
        }
        let got = x.view(&signed(&shape));
        let info = x.reshape_info(&signed(&shape)).unwrap();
        prop_assert_eq!(info.is_view(), got.is_ok());
        let all = positions(&x);
        match got {
            Ok(view) => {
                prop_assert_eq!(view.sizes(), shape.as_slice());
                prop_assert_eq!(positions(&view), all);
            }
            Err(e) => {
                prop_assert!(e.is_layout());
                // The strides that the second index of each dimension would need do not fit the rest.
                let order = indices(&shape);
                let steps: Vec<isize> = (0..shape.len())
                    .map(|d| {
                        let second = order.iter().position(|i| i.iter().enumerate().all(|(k, &v)| v == usize::from(k == d)));
                        second.map_or(0, |at| all[at] as isize - all[0] as isize)
                    })
                    .collect();
                let fits = order.iter().zip(&all).all(|(index, &at)| {
                    let walked: isize = index.iter().zip(&steps).map(|(&i, s)| i as isize * s).sum();
                    all[0] as isize + walked == at as isize
                });
                prop_assert!(!fits, "{x} could be viewed as {shape:?}");
            }
        }
    }

    #[test]
    fn slices_take_what_python_takes(
        x in layouts(3), d in -3..3isize, start in prop::option::of(-8..8isize), end in prop::option::of(-8..8isize), step in 1..4isize,
    ) {
        if x.rank() == 0 {
            return Ok(());
        }
        let d = d % x.rank() as isize;
        let view = x.slice(d, start, end, step).unwrap();
        let axis = if d < 0 { d + x.rank() as isize } else { d } as usize;
        let n = x.sizes()[axis] as isize;
        let wrap = |i: isize| if i < 0 { (i + n).max(0) } else { i.min(n) };
        let (from, to) = (start.map_or(0, wrap), end.map_or(n, wrap));
        let taken: Vec<isize> = (from..to).step_by(step as usize).collect();
        prop_assert_eq!(view.sizes()[axis], taken.len());
        for index in indices(view.sizes()) {
            let mut original = index.clone();
            original[axis] = taken[index[axis]] as usize;
            prop_assert_eq!(position(&view, &index), position(&x, &original));
        }
        for (i, &at) in taken.iter().enumerate() {
            let (a, b) = (view.select(d, i as isize).unwrap(), x.select(d, at).unwrap());
            prop_assert_eq!(positions(&a), positions(&b));
        }
    }

    #[test]
    fn windows_and_diagonals_index_as_defined(x in layouts(3), size in 0..4isize, step in 1..4isize, offset in -4..4isize) {
        if x.rank() >= 1 && size as usize <= x.sizes()[0] {
            let windows = x.unfold(0, size, step).unwrap();
            for index in indices(windows.sizes()) {
                let (within, outer) = index.split_last().unwrap();
                let mut original = outer.to_vec();
                original[0] = outer[0] * step as usize + within;
                prop_assert_eq!(position(&windows, &index), position(&x, &original));
            }
        }
        if x.rank() >= 2 {
            let diagonal = x.diagonal(offset, 0, 1).unwrap();
            let expected = (0..x.sizes()[0] as isize).filter(|r| (0..x.sizes()[1] as isize).contains(&(r + offset))).count();
            prop_assert_eq!(*diagonal.sizes().last().unwrap(), expected);
            for index in indices(diagonal.sizes()) {
                let (&k, rest) = index.split_last().unwrap();
                let mut original = vec![k + offset.min(0).unsigned_abs(), k + offset.max(0) as usize];
                original.extend_from_slice(rest);
                prop_assert_eq!(position(&diagonal, &index), position(&x, &original));
            }
        }
    }

    #[test]
    fn permutations_undo_each_other(x in layouts(4), seed in any::<u64>()) {
        let mut order: Vec<isize> = (0..x.rank() as isize).collect();
        order.sort_by_key(|&d| seed.rotate_left(d as u32 * 11) % 32);
        let y = x.permute(&order).unwrap();
        for index in indices(y.sizes()) {
            let mut original = vec![0; index.len()];
            for (i, &d) in order.iter().enumerate() {
                original[d as usize] = index[i];
            }
            prop_assert_eq!(position(&y, &index), position(&x, &original));
        }
        let places: Vec<isize> = (0..x.rank() as isize).collect();
        prop_assert_eq!(&x.movedim(&order, &places).unwrap(), &y);
        prop_assert_eq!(&y.movedim(&places, &order).unwrap(), &x);
    }

    #[test]
    fn expanding_repeats_elements(x in layouts(3), front in prop::collection::vec(0..3usize, 0..3), n in 0..4usize) {
        let mut shape = front.clone();
        shape.extend(x.sizes().iter().map(|&size| if size == 1 { n } else { size }));
        let y = x.expand_to(&shape).unwrap();
        prop_assert_eq!(&x.expand(&signed(&shape)).unwrap(), &y);
        let together = broadcast_shapes(&[x.sizes(), &shape]).unwrap();
        prop_assert_eq!(together.as_slice(), y.sizes());
        for index in indices(y.sizes()) {
            let original: Vec<usize> = index[front.len()..]
                .iter()
                .zip(x.sizes())
                .map(|(&i, &size)| if size == 1 { 0 } else { i })
                .collect();
            prop_assert_eq!(position(&y, &index), position(&x, &original));
        }
    }

    #[test]
    fn dtype_views_keep_the_bytes(x in layouts(3), from in 0..17usize, to in 0..17usize) {
        let (from, to) = (DType::ALL[from], DType::ALL[to]);
        if let Ok(y) = x.view_dtype(from, to) {
            let in_order = |x: &Layout, width: usize| -> Vec<usize> {
                positions(x).into_iter().flat_map(|p| p * width..(p + 1) * width).collect()
            };
            prop_assert_eq!(in_order(&y, to.size()), in_order(&x, from.size()));
        }
        let pairs = x.view_as_real().unwrap();
        prop_assert_eq!(&pairs.view_as_complex().unwrap(), &x);
        let last = x.rank() as isize;
        prop_assert_eq!(x.real().unwrap(), pairs.select(last, 0).unwrap());
        prop_assert_eq!(x.imag().unwrap(), pairs.select(last, 1).unwrap());
    }

    #[test]
    fn results_are_dense(x in layouts(4), y in layouts(4)) {
        let copy = x.like(MemoryFormat::Preserve).unwrap();
        prop_assert!(copy.is_non_overlapping_and_dense());
        prop_assert_eq!(copy.offset(), 0);
        if let Ok(shape) = broadcast_shapes(&[x.sizes(), y.sizes()]) {
            let out = elementwise_output(&[&x, &y], &shape).unwrap();
            prop_assert!(out.is_non_overlapping_and_dense());
            prop_assert_eq!(out.sizes(), shape.as_slice());
        }
    }

    /// Absurd numbers end in an error, never in a panic; what comes out keeps the invariants, which
    /// `Layout::new` checks again.
    #[test]
    fn absurd_arguments_do_no_harm(
        sizes in prop::collection::vec(prop::sample::select(vec![0usize, 1, 2, 1 << 31, 1 << 62, isize::MAX as usize]), 0..5),
        stride in prop::sample::select(vec![0usize, 1, 1 << 40, isize::MAX as usize]),
        a in prop::sample::select(vec![isize::MIN, -3, -1, 0, 1, 2, 1 << 40, isize::MAX]),
        b in prop::sample::select(vec![isize::MIN, -3, -1, 0, 1, 2, 1 << 40, isize::MAX]),
        offset in prop::sample::select(vec![0usize, 1, (isize::MAX / 16) as usize - 1]),
    ) {
        let strides = vec![stride; sizes.len()];
        let Ok(x) = Layout::new(sizes.into(), strides.into(), offset) else { return Ok(()); };
        let d = 0;
        let mut results = vec![
            x.view(&[a, b]), x.view(&[a]), x.permute(&[a, b]), x.transpose(a, b), x.movedim(&[a], &[b]),
            x.select(d, a), x.select(a, b), x.slice(d, Some(a), Some(b), 1), x.slice(d, None, Some(b), a),
            x.narrow(d, a, b), x.diagonal(a, 0, 1), x.diagonal(0, a, b), x.unfold(d, a, b),
            x.as_strided(&[a, b], &[b, a], Some(a)), x.as_strided(&[a], &[b], None), x.squeeze_dims(&[a, b]),
            x.unsqueeze(a), x.expand(&[a, b, 1, 1, 1]), x.unflatten(d, &[a, b]), x.view_as_real(), x.view_as_complex(),
            x.view_dtype(DType::U8, DType::C128), x.view_dtype(DType::C128, DType::U8), x.real(), x.imag(),
            x.like(MemoryFormat::Preserve), x.like(MemoryFormat::ChannelsLast), elementwise_output(&[&x, &x], x.sizes()),
            Ok(x.squeeze()), x.t(), x.mt(), x.expand_to(&[a as usize, b as usize]),
        ];
        for info in [x.reshape_info(&[a, b]), x.flatten(a, b).map(|i| i.unwrap_or(ReshapeInfo::View(x.clone())))] {
            results.extend(info.into_iter().filter_map(|info| match info {
                ReshapeInfo::View(y) => Some(Ok(y)),
                ReshapeInfo::Copy { .. } => None,
            }));
        }
        // A list of as many views as asked for: not of 2^40.
        if a < 1 << 40 {
            for list in [x.split_with_sizes(&[a, b], d), x.tensor_split(&[a, b], d), x.tensor_split(a, d), x.chunk(a, d)] {
                results.extend(list.into_iter().flatten().map(Ok));
            }
        }
        for y in results.into_iter().flatten() {
            Layout::new(y.sizes().into(), y.strides().into(), y.offset()).unwrap();
        }
        let placed = Placed::new(&x, 16);
        prop_assert!(x.overlaps_itself().is_ok());
        prop_assert_eq!(overlaps(placed, placed).unwrap(), x.numel() > 0);
        prop_assert!(coarse_runs(&[placed, placed.at(8)], 4).unwrap().runs.len() <= 4);
        partial_overlap(placed, placed);
        x.suggest_memory_format();
    }
}
