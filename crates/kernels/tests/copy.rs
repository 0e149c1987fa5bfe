//! Copies and fills against plain counting, for every width and kind of layout.

mod common;

use osteon_kernels::{copy, fill, naive};
use osteon_spec::{Layout, Plan};
use proptest::prelude::*;

fn bytes(layout: &Layout, width: usize, seed: u8) -> Vec<u8> {
    (0..layout.required_len() * width)
        .map(|i| {
            (i as u8)
                .wrapping_mul(31)
                .wrapping_add((i >> 8) as u8)
                .wrapping_add(seed)
        })
        .collect()
}

fn check_copy(shape: &[usize], to: &Layout, from: &Layout, width: usize) {
    let src = bytes(from, width, 1);
    let mut got = bytes(to, width, 100);
    let mut want = got.clone();
    for (d, s) in naive::positions(shape, to)
        .into_iter()
        .zip(naive::positions(shape, from))
    {
        want[d * width..][..width].copy_from_slice(&src[s * width..][..width]);
    }
    let plan = Plan::new(shape, [(to, width), (from, width)]);
    // SAFETY: the buffers hold all that the layouts reach.
    unsafe { copy(&plan, got.as_mut_ptr(), src.as_ptr(), width) };
    assert!(got == want, "{to} from {from}, width {width}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn copies((shape, to, from) in common::shape().prop_flat_map(|s| (
        Just(s.clone()), common::dense_or_stepped(s.clone()), common::broadcasting(s),
    ))) {
        for width in [1, 2, 4, 8, 16] {
            check_copy(&shape, &to, &from, width);
        }
    }

    /// Matrices that are turned, with edges of any width, rows that begin anywhere, and dims around them.
    #[test]
    fn matrices(
        (batch, rows, cols) in (1usize..4, 1usize..300, 1usize..300),
        (pads, offset, outside) in ((0usize..70, 0usize..70), 0usize..70, any::<bool>()),
    ) {
        let shape = [batch, rows, cols];
        let strides = |inner: usize, outer: usize, pad: usize| {
            let (next, all) = if outside { (inner + pad, (inner + pad) * outer) } else { ((inner + pad) * batch, inner + pad) };
            [all, next]
        };
        let [to_all, to_next] = strides(cols, rows, pads.0);
        let [from_all, from_next] = strides(rows, cols, pads.1);
        let to = Layout::new(shape[..].into(), [to_all, to_next, 1][..].into(), offset).unwrap();
        let from = Layout::new(shape[..].into(), [from_all, 1, from_next][..].into(), 70 - offset).unwrap();
        for width in [1, 2, 4, 8, 16] {
            check_copy(&shape, &to, &from, width);
        }
    }

    /// Rows with any step between their elements, some of them backwards.
    #[test]
    fn steps(
        (rows, cols) in (1usize..40, 1usize..400),
        (to_step, from_step, back) in (1usize..3, 0usize..6, any::<(bool, bool)>()),
    ) {
        let row = |step: usize| (cols * step + 3) as isize;
        for width in [1, 2, 4, 8, 16] {
            let by = |step: isize| step * width as isize;
            let to = [by(row(to_step)), by(to_step as isize)];
            let mut from = [by(row(from_step)), by(from_step as isize)];
            let mut first = 0;
            for (stride, (size, back)) in from.iter_mut().zip([(rows, back.0), (cols, back.1)]) {
                if back {
                    first += *stride * (size as isize - 1);
                    *stride = -*stride;
                }
            }
            let src: Vec<u8> = (0..rows * row(from_step) as usize * width).map(|i| (i % 251) as u8).collect();
            let mut got = vec![255; rows * row(to_step) as usize * width];
            let mut want = got.clone();
            for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r as isize, c as isize))) {
                let (d, s) = (r * to[0] + c * to[1], first + r * from[0] + c * from[1]);
                want[d as usize..][..width].copy_from_slice(&src[s as usize..][..width]);
            }
            let plan = Plan::from_strides(&[rows, cols], [0, first], [&to, &from]).sorted();
            // SAFETY: the buffers hold all that the strides reach.
            unsafe { copy(&plan, got.as_mut_ptr(), src.as_ptr(), width) };
            prop_assert!(got == want, "{plan:?} width {width}");
        }
    }

    #[test]
    fn fills((shape, to) in common::shape().prop_flat_map(|s| (
        Just(s.clone()), common::dense_or_stepped(s.clone()),
    ))) {
        for width in [1, 2, 4, 8, 16] {
            let value = &b"osteon is a bone"[..width];
            let mut got = bytes(&to, width, 5);
            let mut want = got.clone();
            for d in naive::positions(&shape, &to) {
                want[d * width..][..width].copy_from_slice(value);
            }
            let plan = Plan::new(&shape, [(&to, width)]);
            // SAFETY: the buffer holds all that the layout reaches.
            unsafe { fill(&plan, got.as_mut_ptr(), value.as_ptr(), width) };
            prop_assert!(got == want, "{} width {}", to, width);
        }
    }
}

fn layout(sizes: &[usize], strides: &[usize]) -> Layout {
    Layout::new(sizes.into(), strides.into(), 0).unwrap()
}

/// Sizes that several threads share, with whole tiles, edges and dims around the matrix.
#[test]
fn large_copies() {
    for width in [1, 2, 4, 8, 16] {
        for [a, b, c] in [[1, 1000, 700], [3, 257, 300], [300, 17, 64]] {
            let rows = layout(&[a, b, c], &[b * c, c, 1]);
            for strides in [[1, a, a * b], [b, 1, a * b], [c * b, 1, b], [c * b, c, 1]] {
                check_copy(&[a, b, c], &rows, &layout(&[a, b, c], &strides), width);
            }
        }
        // Few channels that come together, and part again.
        for channels in [2, 3, 5, 15, 17] {
            let shape = [70, 90, channels];
            let together = layout(&shape, &[90 * channels, channels, 1]);
            let apart = layout(&shape, &[90, 1, 70 * 90]);
            check_copy(&shape, &together, &apart, width);
            check_copy(&shape, &apart, &together, width);
        }
        // Small matrices whose rows follow each other in the destination.
        for [n, rows, cols] in [[64, 40, 32], [36, 50, 17], [7, 33, 5], [12, 200, 3]] {
            let shape = [rows, n, cols];
            let to = layout(&shape, &[n * cols, cols, 1]);
            let from = layout(&shape, &[1, rows * cols, rows]);
            check_copy(&shape, &to, &from, width);
        }
        check_copy(
            &[500, 400],
            &layout(&[500, 400], &[800, 2]),
            &layout(&[500, 1], &[1, 1]),
            width,
        );
    }
}

/// Images whose lines are read backwards, pixel by pixel, and pixels cut out of wider ones.
#[test]
fn short_rows() {
    let (high, wide) = (9, 50);
    for bytes in 1..20 {
        for (pixel, back) in [(bytes, true), (bytes + 3, true), (bytes + 3, false)] {
            let src: Vec<u8> = (0..high * wide * pixel).map(|i| (i % 251) as u8).collect();
            let first = if back { (wide - 1) * pixel } else { 0 };
            let step = if back {
                -(pixel as isize)
            } else {
                pixel as isize
            };
            let mut got = vec![0; high * wide * bytes];
            let mut want = got.clone();
            for (i, pixels) in want.chunks_mut(bytes).enumerate() {
                let at = (i / wide * wide * pixel + first) as isize + (i % wide) as isize * step;
                pixels.copy_from_slice(&src[at as usize..][..bytes]);
            }
            let to = [wide * bytes, bytes, 1].map(|s| s as isize);
            let from = [(wide * pixel) as isize, step, 1];
            let strides = [&to[..], &from[..]];
            let plan = Plan::from_strides(&[high, wide, bytes], [0, first as isize], strides);
            // SAFETY: the buffers hold all that the strides reach.
            unsafe { copy(&plan.sorted(), got.as_mut_ptr(), src.as_ptr(), 1) };
            assert!(got == want, "{bytes} of {pixel} bytes, backwards: {back}");
        }
    }
}

#[test]
fn filling_an_expanded_destination_writes_its_one_row() {
    let expanded = layout(&[1000, 1000], &[0, 1]);
    let mut got = vec![0u32; 1000];
    let plan = Plan::new(&[1000, 1000], [(&expanded, 4)]);
    // SAFETY: the buffer holds the one row that the layout reaches.
    unsafe {
        fill(
            &plan,
            got.as_mut_ptr().cast(),
            7u32.to_ne_bytes().as_ptr(),
            4,
        )
    };
    assert!(got.iter().all(|&x| x == 7));
}
