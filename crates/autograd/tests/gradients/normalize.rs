//! Softmax, normalisations and losses, each by its fused derivative and, where derivatives of derivatives are wanted, as a
//! composition.

use crate::check::{check, check_first, complex, layouts, numbers};
use osteon_autograd::functional::{self, Classes, Reduction};
use osteon_autograd::{BatchNorm, Tensor};
use osteon_spec::{DType, Device, Result};

/// Both derivatives.
#[track_caller]
fn both(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    check_first(&format!("{name}, fused"), inputs, &f);
    check(&format!("{name}, composed"), inputs, f);
}

/// Over all layouts of the first input.
fn over<const N: usize>(
    name: &str,
    shape: [usize; N],
    others: &[Tensor],
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    for (k, x) in layouts(&numbers(shape)).into_iter().take(3).enumerate() {
        let inputs: Vec<Tensor> = [x].into_iter().chain(others.iter().cloned()).collect();
        both(&format!("{name}, layout {k}"), &inputs, &f);
    }
}

#[test]
fn softmaxes() {
    over("softmax", [2, 3], &[], |x| x[0].softmax(1));
    over("softmax along the first dim", [3, 2], &[], |x| {
        x[0].softmax(0)
    });
    over("softmax of a number", [], &[], |x| x[0].softmax(0));
    over("softmax_in", [2, 3], &[], |x| {
        x[0].softmax_in(-1, DType::F64)
    });
    over("log_softmax", [2, 3, 2], &[], |x| x[0].log_softmax(1));
    over("softmin", [2, 3], &[], |x| x[0].softmin(1));
    over("softmax of nothing", [0, 3], &[], |x| x[0].softmax(1));
}

#[test]
fn layer_norms() {
    let affine = [numbers([3, 2]), numbers([3, 2]).add(0.1).unwrap()];
    over("layer_norm", [2, 3, 2], &affine, |x| {
        x[0].layer_norm([3, 2], Some(&x[1]), Some(&x[2]), 1e-3)
    });
    over("layer_norm alone", [2, 3], &[], |x| {
        x[0].layer_norm([3], None, None, 1e-3)
    });
    over("layer_norm with bias", [2, 3], &[numbers([3])], |x| {
        x[0].layer_norm([3], None, Some(&x[1]), 1e-3)
    });
    over("layer_norm of nothing", [0, 3], &[numbers([3])], |x| {
        x[0].layer_norm([3], Some(&x[1]), None, 1e-3)
    });
    over("rms_norm", [2, 3], &[numbers([3])], |x| {
        x[0].rms_norm([3], Some(&x[1]), Some(0.1))
    });
    over("rms_norm alone", [2, 3], &[], |x| {
        x[0].rms_norm([2, 3], None, None)
    });
    both("rms_norm, complex", &[complex([2, 3]), complex([3])], |x| {
        x[0].rms_norm([3], Some(&x[1]), Some(0.1))
    });
    // Weights whose input requires no gradient.
    let x = numbers([2, 3]);
    both(
        "weights of layer_norm",
        &[numbers([3]), numbers([3])],
        |w| x.layer_norm([3], Some(&w[0]), Some(&w[1]), 1e-3),
    );
}

#[test]
fn norms_of_channels() {
    let affine = [numbers([4]), numbers([4]).add(0.1).unwrap()];
    fn training<'a>(x: &'a [Tensor]) -> BatchNorm<'a> {
        BatchNorm {
            weight: Some(&x[1]),
            bias: Some(&x[2]),
            training: true,
            eps: 1e-3,
            ..BatchNorm::default()
        }
    }
    over("batch_norm", [3, 4], &affine, |x| {
        x[0].batch_norm(&training(x))
    });
    over("batch_norm of images", [2, 4, 2, 1], &affine, |x| {
        x[0].batch_norm(&training(x))
    });
    let (mean, var) = (numbers([4]), numbers([4]).abs().unwrap());
    over("batch_norm, not training", [2, 4, 2], &affine, |x| {
        x[0].batch_norm(&BatchNorm {
            running: Some((&mean, &var)),
            training: false,
            ..training(x)
        })
    });
    over("group_norm", [2, 4, 2], &affine, |x| {
        x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-3)
    });
    over("group_norm of vectors", [2, 4], &[], |x| {
        x[0].group_norm(2, None, None, 1e-3)
    });
    over("instance_norm", [2, 4, 3], &affine, |x| {
        x[0].instance_norm(Some(&x[1]), Some(&x[2]), 1e-3)
    });
}

#[test]
fn running_statistics_follow_and_have_no_gradient() -> Result<()> {
    let x = Tensor::new([[1.0f64, 10.0], [3.0, 30.0]])?;
    x.requires_grad_(true)?;
    let mean = Tensor::zeros([2], DType::F64, &Device::cpu())?;
    let var = Tensor::ones([2], DType::F64, &Device::cpu())?;
    let how = BatchNorm {
        running: Some((&mean, &var)),
        training: true,
        momentum: 0.5,
        ..BatchNorm::default()
    };
    let y = x.batch_norm(&how)?;
    assert_eq!(mean.to_vec::<f64>()?, [1.0, 10.0]);
    assert_eq!(var.to_vec::<f64>()?, [1.5, 100.5]);
    assert!(y.requires_grad() && !mean.requires_grad());
    mean.requires_grad_(true)?;
    assert!(
        x.batch_norm(&how)
            .unwrap_err()
            .to_string()
            .contains("running statistics")
    );
    // Statistics that the derivative needs must not change before it.
    mean.requires_grad_(false)?;
    let y = x.batch_norm(&BatchNorm {
        training: false,
        ..how
    })?;
    mean.add_(1.0)?;
    assert!(y.sum()?.backward().is_err());
    Ok(())
}

#[test]
fn unit_vectors() -> Result<()> {
    over("normalize", [2, 3], &[], |x| x[0].normalize(2.0, 1, 1e-12));
    over("normalize by another norm", [3, 2], &[], |x| {
        x[0].normalize(3.0, 0, 1e-12)
    });
    over("normalize below eps", [2, 3], &[], |x| {
        x[0].normalize(2.0, 1, 10.0)
    });
    over("cosine_similarity", [2, 3], &[numbers([1, 3])], |x| {
        x[0].cosine_similarity(&x[1].mul(0.7)?, 1, 1e-8)
    });
    // PyTorch's answer where norms are below eps.
    let (x, y) = (Tensor::new([1.0f64, 2.0])?, Tensor::new([3.0f64, -1.0])?);
    x.requires_grad_(true)?;
    x.cosine_similarity(&y, 0, 10.0)?.backward()?;
    let want = Tensor::new([0.029552786404500042, -0.010894427190999915])?;
    assert!(x.grad().unwrap().allclose(&want, 1e-12, 0.0)?);
    Ok(())
}

#[test]
fn losses_of_pairs() {
    let (x, y) = (numbers([2, 3]), numbers([2, 3]).mul(0.4).unwrap());
    let pair = [x, y];
    let reductions = [Reduction::None, Reduction::Mean, Reduction::Sum];
    for how in reductions {
        both("mse_loss", &pair, |x| {
            functional::mse_loss(&x[0], &x[1], how)
        });
        both("l1_loss", &pair, |x| functional::l1_loss(&x[0], &x[1], how));
        both("smooth_l1_loss", &pair, |x| {
            functional::smooth_l1_loss(&x[0], &x[1], 0.4, how)
        });
        both("huber_loss", &pair, |x| {
            functional::huber_loss(&x[0], &x[1], 0.3, how)
        });
        both("kl_div", &pair, |x| {
            functional::kl_div(&x[0], &x[1].abs()?, false, how)
        });
        both("kl_div of logarithms", &pair, |x| {
            functional::kl_div(&x[0], &x[1], true, how)
        });
        both("binary_cross_entropy", &pair, |x| {
            let [x, y] = [&x[0], &x[1]].map(|x| x.mul(0.3)?.add(0.5));
            functional::binary_cross_entropy(&x?, &y?, None, how)
        });
        let weighted = [&pair[0], &pair[1], &numbers([3]), &numbers([1])].map(Tensor::clone);
        both("binary_cross_entropy_with_logits", &weighted, |x| {
            functional::binary_cross_entropy_with_logits(
                &x[0],
                &x[1],
                Some(&x[2]),
                Some(&x[3]),
                how,
            )
        });
    }
    both("kl_div, batchmean", &pair, |x| {
        functional::kl_div(&x[0], &x[1].abs()?, false, Reduction::BatchMean)
    });
}

#[test]
fn losses_of_classes() -> Result<()> {
    let weight = Tensor::new([0.5f64, 2.0, 1.5])?;
    let target = Tensor::new([2i64, 0, 1])?;
    let images = Tensor::new([[2i64, 0], [1, 1]])?;
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        for weight in [None, Some(&weight)] {
            for (ignore_index, label_smoothing) in [(-100, 0.0), (1, 0.0), (0, 0.2)] {
                let how = Classes {
                    weight,
                    ignore_index,
                    label_smoothing,
                    reduction,
                };
                let name = format!("{how:?}");
                over(&name, [3, 3], &[], |x| {
                    functional::cross_entropy(&x[0], &target, &how)
                });
                over(&name, [2, 3, 2], &[], |x| {
                    functional::cross_entropy(&x[0], &images, &how)
                });
                over(&name, [3], &[], |x| {
                    functional::cross_entropy(&x[0], &Tensor::new(2i64)?, &how)
                });
                over(&name, [3, 3], &[], |x| {
                    functional::nll_loss(&x[0], &target, &how)
                });
                let shares = [numbers([3, 3]).abs()?];
                over(&name, [3, 3], &shares, |x| {
                    functional::cross_entropy(&x[0], &x[1], &how)
                });
            }
        }
    }
    both("weights", &[numbers([3, 3]), weight], |x| {
        let how = Classes {
            weight: Some(&x[1]),
            ..Classes::default()
        };
        functional::cross_entropy(&x[0], &target, &how)
    });
    // Where no target counts, the loss is NaN and the gradient zero, as in PyTorch.
    let x = numbers([3, 3]);
    x.requires_grad_(true)?;
    let none = Tensor::full([3], -100i64, DType::I64, &Device::cpu())?;
    let loss = functional::cross_entropy(&x, &none, &Classes::default())?;
    loss.backward()?;
    assert!(loss.item::<f64>()?.is_nan());
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.0; 9]);
    Ok(())
}

/// Half precision, against the same in float64.
#[test]
fn half_precision() -> Result<()> {
    type Op = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let ops: [Op; 5] = [
        |x, _| x.softmax(1),
        |x, _| x.log_softmax(1),
        |x, w| x.layer_norm([8], Some(w), Some(w), 1e-5),
        |x, w| x.rms_norm([8], Some(w), None),
        |x, w| {
            x.batch_norm(&BatchNorm {
                weight: Some(w),
                training: true,
                ..BatchNorm::default()
            })
        },
    ];
    for (k, op) in ops.into_iter().enumerate() {
        let [got, want] = [DType::BF16, DType::F64].map(|dtype| -> Result<_> {
            let [x, w] = [numbers([4, 8]).to(dtype)?, numbers([8]).to(dtype)?];
            x.requires_grad_(true)?;
            w.requires_grad_(k > 1)?;
            let y = op(&x, &w)?;
            y.mul(&numbers([4, 8]).to(dtype)?)?.sum()?.backward()?;
            let gradient = x.grad().unwrap();
            assert_eq!(gradient.dtype(), dtype);
            let weight = w.grad().map_or(Ok(None), |w| w.to(DType::F64).map(Some))?;
            Ok((gradient.to(DType::F64)?, weight))
        });
        let (got, want) = (got?, want?);
        let near = |a: &Tensor, b: &Tensor| a.sub(b)?.abs()?.max()?.item::<f64>();
        assert!(near(&got.0, &want.0)? < 0.02, "operation {k}");
        if let (Some(got), Some(want)) = (got.1, want.1) {
            assert!(near(&got, &want)? < 0.05, "weight of operation {k}");
        }
    }
    Ok(())
}
