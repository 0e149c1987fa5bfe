//! Operations that arrange elements, against their naive twins, over layouts and dtypes.

#[allow(dead_code, reason = "each test file uses its part")]
mod twin;

use osteon_spec::{DType, Device, MemoryFormat, Scalar};
use osteon_tensor::{PadMode, Triangle, View};
use twin::{Twin, views};

fn with(index: &[usize], d: usize, value: usize) -> Vec<usize> {
    let mut index = index.to_vec();
    index[d] = value;
    index
}

#[test]
fn flips_read_from_the_other_end() {
    for x in views() {
        let own = Twin::of(&x);
        for d in 0..x.dim() {
            let want = Twin::make(&own.shape, |i| own.at(&with(i, d, own.shape[d] - 1 - i[d])));
            assert_eq!(
                Twin::of(&x.flip(&[d as isize]).unwrap()),
                want,
                "{x:?} dim {d}"
            );
        }
        let all: Vec<isize> = (0..x.dim() as isize).collect();
        let reversed: Vec<f64> = own.values.iter().rev().copied().collect();
        assert_eq!(Twin::of(&x.flip(&all).unwrap()).values, reversed, "{x:?}");
    }
}

#[test]
fn rolls_wrap_around() {
    for x in views() {
        let own = Twin::of(&x);
        for shift in [-5isize, -1, 0, 2, 9] {
            for d in 0..x.dim() {
                let n = own.shape[d] as isize;
                let from = |i: &[usize]| (i[d] as isize - shift).rem_euclid(n.max(1)) as usize;
                let want = Twin::make(&own.shape, |i| own.at(&with(i, d, from(i))));
                let got = x.roll(&[shift], &[d as isize]).unwrap();
                assert_eq!(Twin::of(&got), want, "{x:?} by {shift} along {d}");
            }
            let mut turned = own.values.clone();
            if !turned.is_empty() {
                let n = turned.len() as isize;
                turned.rotate_right(shift.rem_euclid(n) as usize);
            }
            assert_eq!(Twin::of(&x.roll(&[shift], &[]).unwrap()).values, turned);
        }
    }
}

#[test]
fn repeats_take_indices_modulo_the_size() {
    for x in views() {
        let own = Twin::of(&x);
        let repeats: Vec<isize> = [2]
            .into_iter()
            .chain((0..x.dim()).map(|d| d as isize + 1))
            .collect();
        let shape: Vec<usize> = [2]
            .into_iter()
            .chain(own.shape.iter().enumerate().map(|(d, n)| n * (d + 1)))
            .collect();
        let want = Twin::make(&shape, |i| {
            let inside: Vec<usize> = i[1..].iter().zip(&own.shape).map(|(i, n)| i % n).collect();
            own.at(&inside)
        });
        assert_eq!(Twin::of(&x.repeat(&repeats).unwrap()), want, "{x:?}");
        for d in 0..x.dim() {
            let mut shape = own.shape.clone();
            shape[d] *= 3;
            let want = Twin::make(&shape, |i| own.at(&with(i, d, i[d] / 3)));
            let got = x.repeat_interleave(3, Some(d as isize)).unwrap();
            assert_eq!(Twin::of(&got), want, "{x:?}");
            let each = View::from_slice(&vec![3i64; own.shape[d]], &[own.shape[d]], &Device::cpu());
            let indices = x.repeated_indices(&each.unwrap(), d as isize).unwrap();
            let got = x.index_select(d as isize, &indices).unwrap();
            assert_eq!(Twin::of(&got), want, "{x:?}");
        }
    }
}

#[test]
fn triangles_keep_one_side_of_a_diagonal() {
    for x in views().into_iter().filter(|x| x.dim() >= 2) {
        let own = Twin::of(&x);
        for diagonal in -4isize..=4 {
            let column_minus_row = |i: &[usize]| i[i.len() - 1] as isize - i[i.len() - 2] as isize;
            let lower = Twin::make(&own.shape, |i| {
                if column_minus_row(i) <= diagonal {
                    own.at(i)
                } else {
                    0.0
                }
            });
            let upper = Twin::make(&own.shape, |i| {
                if column_minus_row(i) >= diagonal {
                    own.at(i)
                } else {
                    0.0
                }
            });
            let cut = |keep| Twin::of(&x.triangle(keep).unwrap());
            assert_eq!(cut(Triangle::Lower(diagonal)), lower, "{x:?} {diagonal}");
            assert_eq!(cut(Triangle::Upper(diagonal)), upper, "{x:?} {diagonal}");
            let copy = x.copy(MemoryFormat::Preserve).unwrap();
            copy.triangle_(Triangle::Lower(diagonal)).unwrap();
            assert_eq!(Twin::of(&copy), lower, "in place: {x:?} {diagonal}");
        }
    }
}

#[test]
fn triangles_take_extreme_diagonals() {
    let x = View::ones(&[2, 2], DType::I64, &Device::cpu()).unwrap();
    let sum = |keep| {
        Twin::of(&x.triangle(keep).unwrap())
            .values
            .iter()
            .sum::<f64>()
    };
    assert_eq!(sum(Triangle::Lower(isize::MAX)), 4.0);
    assert_eq!(sum(Triangle::Lower(isize::MIN)), 0.0);
    assert_eq!(sum(Triangle::Upper(isize::MAX)), 0.0);
    assert_eq!(sum(Triangle::Upper(isize::MIN)), 4.0);
}

#[test]
fn cats_and_stacks_put_tensors_side_by_side() {
    for x in views() {
        let own = Twin::of(&x);
        let y = x.flip(&[]).unwrap();
        for d in 0..x.dim() {
            let mut shape = own.shape.clone();
            shape[d] *= 2;
            let want = Twin::make(&shape, |i| own.at(&with(i, d, i[d] % own.shape[d])));
            assert_eq!(
                Twin::of(&View::cat(&[&x, &y], d as isize).unwrap()),
                want,
                "{x:?}"
            );
        }
        for d in 0..=x.dim() {
            let mut shape = own.shape.clone();
            shape.insert(d, 3);
            let want = Twin::make(&shape, |i| {
                let mut i = i.to_vec();
                i.remove(d);
                own.at(&i)
            });
            let got = View::stack(&[&x, &y, &x], d as isize).unwrap();
            assert_eq!(Twin::of(&got), want, "{x:?}");
        }
    }
}

#[test]
fn cat_leaves_out_empty_vectors_and_promotes() {
    let device = Device::cpu();
    let x = View::ones(&[2, 3], DType::I64, &device).unwrap();
    let nothing = View::ones(&[0], DType::F32, &device).unwrap();
    let joined = View::cat(&[&nothing, &x], 1).unwrap();
    assert_eq!((joined.shape(), joined.dtype()), (&[2, 3][..], DType::F32));
    let joined = View::cat(&[&nothing, &nothing], 5).unwrap();
    assert_eq!(joined.shape(), [0]);
    assert!(View::cat(&[], 0).unwrap_err().is_value());
    let scalar = View::ones(&[], DType::I64, &device).unwrap();
    assert!(View::cat(&[&scalar], 0).unwrap_err().is_shape());
    let other = View::ones(&[3, 3], DType::I64, &device).unwrap();
    assert_eq!(View::cat(&[&x, &other], 0).unwrap().shape(), [5, 3]);
    assert!(View::cat(&[&x, &other], 1).unwrap_err().is_shape());
}

#[test]
fn channels_last_stays_where_all_have_it() {
    // Strides of PyTorch 2.15.
    let x = View::ones(&[2, 3, 4, 5], DType::F32, &Device::cpu()).unwrap();
    let last = x.contiguous(MemoryFormat::ChannelsLast).unwrap();
    let strides = |views: &[&View], d| View::cat(views, d).unwrap().stride().to_vec();
    assert_eq!(strides(&[&last, &last], 1), [120, 1, 30, 6]);
    assert_eq!(strides(&[&last, &x], 1), [120, 20, 5, 1]);
    let stacked = View::stack(&[&last, &last], 0).unwrap();
    assert_eq!(stacked.stride(), [120, 60, 1, 15, 3]);
    assert_eq!(last.roll(&[1], &[1]).unwrap().stride(), [60, 1, 15, 3]);
    assert_eq!(last.roll(&[0], &[1]).unwrap().stride(), [60, 20, 5, 1]);
    let padded = last
        .pad(&[1, 1], PadMode::Constant(Scalar::Int(0)))
        .unwrap();
    assert_eq!(padded.stride(), [84, 1, 21, 3]);
}

#[test]
fn borders_repeat_what_they_say() {
    for x in views()
        .into_iter()
        .filter(|x| x.dim() >= 2 && x.numel() > 0)
    {
        let own = Twin::of(&x);
        let (d, n) = (x.dim() - 1, own.shape[x.dim() - 1] as isize);
        let modes = [
            PadMode::Constant(Scalar::Int(9)),
            PadMode::Reflect,
            PadMode::Replicate,
            PadMode::Circular,
        ];
        for mode in modes {
            for (before, after) in [(1, 2), (0, 1), (-1, 1), (2, 0)] {
                let mut shape = own.shape.clone();
                shape[d] = (n + before + after) as usize;
                let kept = (-before).max(0)..n;
                let want = Twin::make(&shape, |i| {
                    let at = i[d] as isize - before;
                    let place = match mode {
                        _ if kept.contains(&at) => at,
                        PadMode::Constant(_) => return 9.0,
                        PadMode::Reflect if at < 0 => -at,
                        PadMode::Reflect => 2 * (n - 1) - at,
                        PadMode::Replicate => at.clamp(0, n - 1),
                        PadMode::Circular => {
                            kept.start + (at - kept.start).rem_euclid(kept.end - kept.start)
                        }
                    };
                    own.at(&with(i, d, place as usize))
                });
                let reach = before.max(after);
                let got = x.pad(&[before, after], mode);
                if mode == PadMode::Reflect && reach >= n || mode == PadMode::Circular && reach > n
                {
                    assert!(got.unwrap_err().is_shape());
                } else {
                    assert_eq!(
                        Twin::of(&got.unwrap()),
                        want,
                        "{x:?} {mode:?} {before} {after}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_named_wrongly_is_refused() {
    let x = View::ones(&[2, 3], DType::I64, &Device::cpu()).unwrap();
    assert!(x.flip(&[0, -2]).unwrap_err().is_value());
    assert!(x.flip(&[2]).unwrap_err().is_index());
    assert!(x.roll(&[1, 2], &[0]).unwrap_err().is_value());
    assert!(x.repeat(&[2]).unwrap_err().is_shape());
    assert!(x.repeat(&[2, -1]).unwrap_err().is_value());
    assert!(x.repeat(&[isize::MAX, isize::MAX]).is_err());
    assert!(x.repeat_interleave(1, Some(3)).unwrap_err().is_index());
    assert!(
        x.select(0, 0)
            .unwrap()
            .triangle(Triangle::Lower(0))
            .unwrap_err()
            .is_shape()
    );
    assert!(x.pad(&[1], PadMode::Replicate).unwrap_err().is_value());
    assert!(x.pad(&[-2, -2], PadMode::Constant(Scalar::Int(0))).is_err());
}
