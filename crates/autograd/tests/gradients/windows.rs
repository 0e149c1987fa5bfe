//! Layers: linear maps, convolutions, pools, embeddings, attention; and borders, grids and diagonals.

use crate::check::{check, layouts, numbers};
use osteon_autograd::functional::{
    self as f, Attention, Average, Conv, ConvTranspose, Padding, Pool,
};
use osteon_autograd::{Indexing, PadMode, Tensor};
use osteon_spec::{DType, MemoryFormat, Result, Scalar};

#[test]
fn linear_maps() {
    for x in [numbers([3]), numbers([2, 3]), numbers([2, 2, 3])] {
        for x in layouts(&x) {
            let inputs = [x.clone(), numbers([2, 3]), numbers([2])];
            check("linear", &inputs, |x| f::linear(&x[0], &x[1], Some(&x[2])));
            check("linear", &[x, numbers([3])], |x| {
                f::linear(&x[0], &x[1], None)
            });
        }
    }
}

#[test]
fn convolutions() -> Result<()> {
    let layouts_of = |x: &Tensor| {
        let mut list = layouts(x);
        if x.dim() == 4 {
            list.push(x.contiguous_in(MemoryFormat::ChannelsLast).expect("memory"));
        }
        list
    };
    for x in layouts_of(&numbers([2, 4, 5])) {
        for (stride, padding, dilation, groups) in [
            (1, Padding::Valid, 1, 1),
            (2, Padding::Zeros([1]), 1, 2),
            (1, Padding::Same, 1, 1),
            (3, Padding::Zeros([2]), 2, 4),
        ] {
            let how = Conv {
                stride: [stride],
                padding,
                dilation: [dilation],
                groups,
            };
            let inputs = [
                x.clone(),
                numbers([4, 4 / groups as usize, 2]),
                numbers([4]),
            ];
            check(&format!("conv1d {how:?}"), &inputs, |x| {
                f::conv1d(&x[0], &x[1], Some(&x[2]), &how)
            });
        }
    }
    let how = Conv {
        stride: [2, 1],
        padding: Padding::Zeros([1, 2]),
        dilation: [1, 2],
        groups: 2,
    };
    let inputs = [numbers([1, 2, 4, 3]), numbers([4, 1, 3, 2]), numbers([4])];
    for x in layouts_of(&inputs[0]) {
        let inputs = [x, inputs[1].clone(), inputs[2].clone()];
        check("conv2d", &inputs, |x| {
            f::conv2d(&x[0], &x[1], Some(&x[2]), &how)
        });
    }
    let single = [inputs[0].select(0, 0)?, inputs[1].clone()];
    check("conv2d without a batch", &single, |x| {
        f::conv2d(&x[0], &x[1], None, &how)
    });
    let inputs = [
        crate::check::complex([1, 2, 3, 2]),
        crate::check::complex([1, 2, 2, 1]),
    ];
    check("conv2d, complex", &inputs, |x| {
        f::conv2d(&x[0], &x[1], None, &Conv::default())
    });
    Ok(())
}

#[test]
fn transposed_convolutions() -> Result<()> {
    for (stride, padding, output_padding, dilation, groups) in [
        ([1, 1], [0, 0], [0, 0], [1, 1], 1),
        ([2, 3], [1, 0], [1, 2], [1, 1], 2),
        ([1, 2], [0, 1], [1, 2], [2, 3], 1),
    ] {
        let how = ConvTranspose {
            stride,
            padding,
            output_padding,
            dilation,
            groups,
        };
        let inputs = [
            numbers([2, 2, 2, 3]),
            numbers([2, 1, 2, 2]),
            numbers([groups as usize]),
        ];
        let name = format!("conv_transpose2d {how:?}");
        check(&name, &inputs, |x| {
            f::conv_transpose2d(&x[0], &x[1], Some(&x[2]), &how)
        });
        let single = [inputs[0].select(0, 0)?, inputs[1].clone()];
        check(&name, &single, |x| {
            f::conv_transpose2d(&x[0], &x[1], None, &how)
        });
    }
    Ok(())
}

#[test]
fn pools() {
    let images = layouts(&numbers([2, 2, 5, 4]));
    for x in images.iter().chain([&images[0]
        .contiguous_in(MemoryFormat::ChannelsLast)
        .expect("memory")])
    {
        let how = Pool {
            stride: Some([2, 1]),
            padding: [1, 0],
            dilation: [1, 2],
            ceil_mode: true,
            ..Pool::new([3, 2])
        };
        let one = std::slice::from_ref(x);
        check("max_pool2d", one, |x| f::max_pool2d(&x[0], &how));
        check("max_pool2d", one, |x| {
            Ok(f::max_pool2d_with_indices(&x[0], &how)?.0)
        });
        let how = Pool {
            dilation: [1, 1],
            ..how
        };
        for (count_include_pad, divisor) in [(true, None), (false, None), (true, Some(7))] {
            let average = Average {
                count_include_pad,
                divisor,
            };
            check("avg_pool2d", one, |x| f::avg_pool2d(&x[0], &how, average));
        }
        check("adaptive_avg_pool2d", one, |x| {
            f::adaptive_avg_pool2d(&x[0], [Some(3), None])
        });
        check("adaptive_avg_pool2d", one, |x| {
            f::adaptive_avg_pool2d(&x[0], [Some(1), Some(1)])
        });
        check("unfold", one, |x| {
            f::unfold(&x[0], [2, 3], [2, 1], [0, 1], [1, 2])
        });
    }
    let how = Pool {
        padding: [1],
        ..Pool::new([3])
    };
    check("max_pool1d", &[numbers([2, 6])], |x| {
        f::max_pool1d(&x[0], &how)
    });
    check("avg_pool1d", &[numbers([2, 2, 6])], |x| {
        f::avg_pool1d(&x[0], &how, Average::default())
    });
    check("adaptive_avg_pool2d", &[numbers([2, 3, 3])], |x| {
        f::adaptive_avg_pool2d(&x[0], [Some(0), Some(2)])
    });
    check("unfold", &[numbers([2, 3, 3])], |x| {
        f::unfold(&x[0], [2, 2], [1, 1], [1, 1], [2, 2])
    });
}

#[test]
fn embeddings() -> Result<()> {
    let indices = Tensor::new([[2i64, 0, 2], [1, 1, 2]])?;
    for x in layouts(&numbers([3, 2])) {
        check("embedding", &[x], |x| f::embedding(&indices, &x[0]));
    }
    let weight = numbers([3, 2]);
    weight.requires_grad_(true)?;
    let how = f::Embedding {
        padding_idx: Some(-1),
        ..f::Embedding::default()
    };
    f::embedding_with(&indices, &weight, &how)?
        .sum()?
        .backward()?;
    let gradient = weight.grad().expect("a gradient").to_vec::<f64>()?;
    assert_eq!(gradient, [1.0, 1.0, 2.0, 2.0, 0.0, 0.0]);

    // Row 2 is looked up three times, and gets the mean of what each time brings.
    weight.set_grad(None)?;
    let how = f::Embedding {
        scale_grad_by_freq: true,
        ..f::Embedding::default()
    };
    let upstream = Tensor::new([[[1.0], [2.0], [5.0]], [[4.0], [5.0], [6.0]]])?;
    let rows = f::embedding_with(&indices, &weight, &how)?;
    rows.mul(&upstream)?.sum()?.backward()?;
    let gradient = weight.grad().expect("a gradient").to_vec::<f64>()?;
    assert!(
        gradient
            .iter()
            .zip([2.0, 2.0, 4.5, 4.5, 4.0, 4.0])
            .all(|(got, want)| (got - want).abs() < 1e-12)
    );
    Ok(())
}

#[test]
fn attention() -> Result<()> {
    let (q, k, v) = (
        numbers([2, 2, 3, 4]),
        numbers([1, 2, 2, 4]),
        numbers([2, 2, 2, 3]),
    );
    let seen = Tensor::new([[true, false], [false, false], [true, true]])?;
    let inputs = [q.clone(), k, v];
    let plain = Attention::default();
    let masked = Attention {
        mask: Some(&seen),
        ..plain
    };
    let causal = Attention {
        is_causal: true,
        scale: Some(0.7),
        ..plain
    };
    for how in [plain, masked, causal] {
        check(&format!("attention {how:?}"), &inputs, |x| {
            f::scaled_dot_product_attention(&x[0], &x[1], &x[2], &how)
        });
    }
    let with_mask = [
        inputs[0].clone(),
        inputs[1].clone(),
        inputs[2].clone(),
        numbers([2, 1, 2]),
    ];
    check("attention with a mask that is added", &with_mask, |x| {
        let how = Attention {
            mask: Some(&x[3]),
            ..plain
        };
        f::scaled_dot_product_attention(&x[0], &x[1], &x[2], &how)
    });
    let grouped = [
        numbers([1, 4, 2, 3]),
        numbers([1, 2, 2, 3]),
        numbers([1, 2, 2, 3]),
    ];
    let how = Attention {
        enable_gqa: true,
        ..plain
    };
    check("attention of heads that are shared", &grouped, |x| {
        f::scaled_dot_product_attention(&x[0], &x[1], &x[2], &how)
    });
    // The same weights are dropped each time.
    let how = Attention {
        dropout_p: 0.4,
        ..plain
    };
    check("attention with dropout", &inputs, |x| {
        osteon_autograd::manual_seed(3);
        f::scaled_dot_product_attention(&x[0], &x[1], &x[2], &how)
    });
    Ok(())
}

#[test]
fn borders() {
    for x in layouts(&numbers([2, 2, 3, 4])) {
        let x = &[x];
        check("pad", x, |x| {
            x[0].pad([1, -2, 0, 3], PadMode::Constant(Scalar::Float(7.0)))
        });
        check("pad", x, |x| {
            x[0].pad([-1, -1], PadMode::Constant(Scalar::Float(7.0)))
        });
        for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
            check(&format!("pad {mode:?}"), x, |x| {
                x[0].pad([2, 1, 1, -1], mode)
            });
        }
    }
}

#[test]
fn grids_and_diagonals() {
    let pair = [numbers([2]), numbers([3])];
    check("meshgrid", &pair, |x| {
        let grids = Tensor::meshgrid(&[&x[0], &x[1]], Indexing::Xy)?;
        grids[0].mul(&grids[1])
    });
    check("cartesian_prod", &pair, |x| {
        Tensor::cartesian_prod(&[&x[0], &x[1]])
    });
    check("combinations", &pair[1..], |x| x[0].combinations(2, true));
    for x in layouts(&numbers([2, 3])) {
        let x = &[x];
        check("diag", x, |x| x[0].diag(1));
        check("diagflat", x, |x| x[0].diagflat(-1));
        check("diag_embed", x, |x| x[0].diag_embed(1, 0, -1));
        check("rot90", x, |x| x[0].rot90(1, [0, 1]));
        check("rot90", x, |x| x[0].rot90(4, [0, 1]));
        check("diff", x, |x| x[0].diff(2, 1, Some(&x[0]), None));
        check("trapezoid", x, |x| x[0].trapezoid(0.5, 1));
    }
    check("trapezoid_at", &[numbers([2, 3]), numbers([3])], |x| {
        x[0].trapezoid_at(&x[1], -1)
    });
    for x in layouts(&numbers([1, 4, 2, 3])) {
        check("pixel_shuffle", &[x], |x| x[0].pixel_shuffle(2));
    }
    let half = numbers([2, 3]).to(DType::F32).expect("memory");
    half.requires_grad_(true).expect("a leaf");
    half.diag_embed(0, 0, 1)
        .and_then(|y| y.sum()?.backward())
        .expect("gradients");
    assert_eq!(half.grad().expect("a gradient").dtype(), DType::F32);
}
