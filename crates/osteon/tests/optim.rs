//! Optimisers, schedules and clipping against PyTorch's recorded trajectories; states that go through files.

mod common;

use common::{assert_close, numbers, recorded, tensor};
use osteon::nn::parameter;
use osteon::optim::{
    Adam, AdamW, Algorithm, Anneal, ConstantLR, CosineAnnealingLR, ExponentialLR, LambdaLR,
    LinearLR, Metric, MultiStepLR, OneCycleLR, Optimizer, PolynomialLR, RMSprop, ReduceLROnPlateau,
    SGD, Schedule, Scheduler, SequentialLR, StepLR, clip_grad_norm_, clip_grad_value_,
};
use osteon::{DType, Device, Result, Tensor, memory};
use serde_json::Value;

/// An option of a recorded case.
fn number(options: &Value, name: &str, default: f64) -> f64 {
    options[name].as_f64().unwrap_or(default)
}

fn flag(options: &Value, name: &str) -> bool {
    options[name].as_bool().unwrap_or(false)
}

fn dtype(case: &Value) -> DType {
    if case["dtype"] == "float32" {
        DType::F32
    } else {
        DType::F64
    }
}

/// Steps of an algorithm from the recorded start along the recorded gradients, each compared; after `pause` steps
/// through `between`.
fn follow<A: Algorithm>(
    file: &Value,
    case: &Value,
    algorithm: A,
    between: impl Fn(usize, &mut Optimizer<A>, &[Tensor]) -> Result<()>,
) -> Result<()> {
    let dtype = dtype(case);
    let start = file["start"].as_array().unwrap().iter();
    let parameters: Vec<Tensor> = start
        .map(|p| parameter(tensor(p)?.to(dtype)?))
        .collect::<Result<_>>()?;
    let mut optimizer = Optimizer::new(&parameters, algorithm)?;
    let tolerance = if dtype == DType::F32 { 2e-6 } else { 1e-13 };
    let steps = case["steps"].as_array().unwrap();
    for (k, gradients) in file["gradients"].as_array().unwrap().iter().enumerate() {
        for (p, g) in parameters.iter().zip(gradients.as_array().unwrap()) {
            let g = if g.is_null() {
                None
            } else {
                Some(tensor(g)?.to(dtype)?)
            };
            p.set_grad(g.as_ref())?;
        }
        let before: Vec<_> = parameters.iter().map(Tensor::grad).collect();
        let copies: Vec<_> = before
            .iter()
            .flatten()
            .map(Tensor::copy)
            .collect::<Result<_>>()?;
        optimizer.step()?;
        for (g, copy) in before.iter().flatten().zip(&copies) {
            assert!(g.equal(copy)?, "a step leaves gradients alone");
        }
        let ours: Vec<f64> = parameters
            .iter()
            .flat_map(|p| {
                p.detach()
                    .unwrap()
                    .to(DType::F64)
                    .unwrap()
                    .to_vec::<f64>()
                    .unwrap()
            })
            .collect();
        for (ours, theirs) in ours.iter().zip(numbers(&steps[k])) {
            let close = (ours - theirs).abs() <= tolerance * (1.0 + theirs.abs());
            assert!(
                close,
                "{} {} step {k}: {ours} instead of {theirs}",
                case["name"], case["options"]
            );
        }
        between(k, &mut optimizer, &parameters)?;
    }
    Ok(())
}

fn sgd(o: &Value) -> SGD {
    SGD {
        lr: number(o, "lr", 1e-3),
        momentum: number(o, "momentum", 0.0),
        dampening: number(o, "dampening", 0.0),
        weight_decay: number(o, "weight_decay", 0.0),
        nesterov: flag(o, "nesterov"),
        maximize: flag(o, "maximize"),
    }
}

fn betas(o: &Value) -> (f64, f64) {
    match o["betas"].as_array() {
        Some(b) => (b[0].as_f64().unwrap(), b[1].as_f64().unwrap()),
        None => (0.9, 0.999),
    }
}

fn adam(o: &Value) -> Adam {
    Adam {
        lr: number(o, "lr", 1e-3),
        betas: betas(o),
        eps: number(o, "eps", 1e-8),
        weight_decay: number(o, "weight_decay", 0.0),
        amsgrad: flag(o, "amsgrad"),
        maximize: flag(o, "maximize"),
    }
}

fn adamw(o: &Value) -> AdamW {
    AdamW {
        lr: number(o, "lr", 1e-3),
        betas: betas(o),
        eps: number(o, "eps", 1e-8),
        weight_decay: number(o, "weight_decay", 1e-2),
        amsgrad: flag(o, "amsgrad"),
        maximize: flag(o, "maximize"),
    }
}

fn rmsprop(o: &Value) -> RMSprop {
    RMSprop {
        lr: number(o, "lr", 1e-2),
        alpha: number(o, "alpha", 0.99),
        eps: number(o, "eps", 1e-8),
        weight_decay: number(o, "weight_decay", 0.0),
        momentum: number(o, "momentum", 0.0),
        centered: flag(o, "centered"),
        maximize: flag(o, "maximize"),
    }
}

#[test]
fn steps_are_pytorchs() -> Result<()> {
    let file = recorded("optim.json");
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 38);
    for case in cases {
        let options = &case["options"];
        match case["name"].as_str().unwrap() {
            "SGD" => follow(&file, case, sgd(options), |_, _, _| Ok(())),
            "Adam" => follow(&file, case, adam(options), |_, _, _| Ok(())),
            "AdamW" => follow(&file, case, adamw(options), |_, _, _| Ok(())),
            _ => follow(&file, case, rmsprop(options), |_, _, _| Ok(())),
        }?;
    }
    Ok(())
}

/// In the middle, the optimiser's state goes through a file into an optimiser with other numbers.
fn reloads<A: Algorithm + 'static>(
    extension: &str,
    fresh: A,
) -> impl Fn(usize, &mut Optimizer<A>, &[Tensor]) -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("state.{extension}"));
    move |k, optimizer, parameters| {
        if k != 2 {
            return Ok(());
        }
        let _ = &dir;
        osteon::save(&path, &optimizer.state_dict()?)?;
        *optimizer = Optimizer::new(parameters, fresh.clone())?;
        optimizer.load_state_dict(&osteon::load(&path)?)
    }
}

#[test]
fn states_go_through_files() -> Result<()> {
    let file = recorded("optim.json");
    for (i, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let options = &case["options"];
        let extension = ["pt", "safetensors"][i % 2];
        match case["name"].as_str().unwrap() {
            "SGD" => {
                let fresh = SGD {
                    lr: 9.0,
                    ..sgd(options)
                };
                follow(&file, case, sgd(options), reloads(extension, fresh))
            }
            "Adam" => {
                let fresh = Adam {
                    lr: 9.0,
                    betas: (0.5, 0.5),
                    ..adam(options)
                };
                follow(&file, case, adam(options), reloads(extension, fresh))
            }
            "AdamW" => {
                let fresh = AdamW {
                    eps: 1.0,
                    weight_decay: 3.0,
                    ..adamw(options)
                };
                follow(&file, case, adamw(options), reloads(extension, fresh))
            }
            _ => {
                let fresh = RMSprop {
                    alpha: 0.1,
                    ..rmsprop(options)
                };
                follow(&file, case, rmsprop(options), reloads(extension, fresh))
            }
        }?;
    }
    Ok(())
}

#[test]
fn states_that_do_not_fit_change_nothing() -> Result<()> {
    let step = |shape: [usize; 1]| -> Result<Optimizer<Adam>> {
        let w = parameter(Tensor::zeros(shape, DType::F32, &Device::cpu())?)?;
        w.set_grad(Some(&Tensor::ones(shape, DType::F32, &Device::cpu())?))?;
        let mut optimizer = Optimizer::new([&w], Adam::default())?;
        optimizer.step()?;
        Ok(optimizer)
    };
    let (mut two, mut three) = (step([2])?, step([3])?);
    let state = two.state_dict()?;
    let error = three.load_state_dict(&state).unwrap_err().to_string();
    assert!(
        error.contains("state.0.exp_avg has shape [3] here and [2] there"),
        "{error}"
    );
    let mut part = state.clone();
    part.remove("state.0.exp_avg_sq");
    assert!(
        two.load_state_dict(&part)
            .unwrap_err()
            .to_string()
            .contains("not all states")
    );
    let mut more = state.clone();
    more.insert("state.1.exp_avg".into(), Tensor::new([1f32])?);
    assert!(two.load_state_dict(&more).is_err());
    assert!(two.state_dict()?["state.0.exp_avg"].is(&state["state.0.exp_avg"]));
    Ok(())
}

/// The rates (and momenta) that a recorded schedule has.
fn compare<A: Algorithm, S: Schedule>(case: &Value, algorithm: A, schedule: S) -> Result<()> {
    let mut optimizer = Optimizer::new([Tensor::new([0f32])?], algorithm)?;
    let mut scheduler = Scheduler::new(&mut optimizer, schedule)?;
    let momenta = numbers(&case["momentum"]);
    for (k, theirs) in numbers(&case["lr"]).into_iter().enumerate() {
        let group = &mut optimizer.groups_mut()[0];
        let near = |x: f64, y: f64| (x - y).abs() <= 1e-12 * y.abs().max(1e-3);
        let ours = group.lr();
        assert!(
            near(ours, theirs),
            "{} step {k}: {ours} instead of {theirs}",
            case["name"]
        );
        let numbers = group.algorithm.numbers();
        let momentum = numbers
            .iter()
            .find(|(n, _)| *n == "momentum" || *n == "betas.0")
            .unwrap();
        assert!(
            near(*momentum.1, momenta[k]),
            "{} momentum {k}",
            case["name"]
        );
        scheduler.step(&mut optimizer)?;
    }
    Ok(())
}

#[test]
fn schedules_are_pytorchs() -> Result<()> {
    let file = recorded("schedules.json");
    let cases = file.as_array().unwrap();
    assert_eq!(cases.len(), 15);
    for case in cases {
        let o = &case["options"];
        let count = |name: &str| o[name].as_u64().unwrap();
        let sgd = || SGD {
            lr: 0.8,
            momentum: 0.9,
            ..SGD::default()
        };
        let cycle = || OneCycleLR {
            max_lr: number(o, "max_lr", 0.0),
            total_steps: count("total_steps"),
            pct_start: number(o, "pct_start", 0.3),
            anneal: if o["anneal_strategy"] == "linear" {
                Anneal::Linear
            } else {
                Anneal::Cosine
            },
            three_phase: flag(o, "three_phase"),
            ..OneCycleLR::default()
        };
        let gamma = number(o, "gamma", 0.0);
        match case["name"].as_str().unwrap() {
            "StepLR" => compare(
                case,
                sgd(),
                StepLR {
                    step_size: count("step_size"),
                    gamma,
                },
            ),
            "MultiStepLR" => {
                let milestones = numbers(&o["milestones"])
                    .into_iter()
                    .map(|m| m as u64)
                    .collect();
                compare(case, sgd(), MultiStepLR { milestones, gamma })
            }
            "ExponentialLR" => compare(case, sgd(), ExponentialLR { gamma }),
            "CosineAnnealingLR" => {
                let schedule = CosineAnnealingLR {
                    t_max: count("T_max"),
                    eta_min: number(o, "eta_min", 0.0),
                };
                compare(case, sgd(), schedule)
            }
            "LinearLR" => {
                let (start_factor, end_factor) =
                    (number(o, "start_factor", 0.0), number(o, "end_factor", 0.0));
                compare(
                    case,
                    sgd(),
                    LinearLR {
                        start_factor,
                        end_factor,
                        total_iters: count("total_iters"),
                    },
                )
            }
            "ConstantLR" => compare(
                case,
                sgd(),
                ConstantLR {
                    factor: number(o, "factor", 0.0),
                    total_iters: count("total_iters"),
                },
            ),
            "PolynomialLR" => compare(
                case,
                sgd(),
                PolynomialLR {
                    total_iters: count("total_iters"),
                    power: number(o, "power", 0.0),
                },
            ),
            "LambdaLR" => compare(
                case,
                sgd(),
                LambdaLR(|step| 0.9f64.powi(step as i32) / (1.0 + step as f64)),
            ),
            "SequentialLR" => {
                let warm = LinearLR {
                    start_factor: 0.25,
                    end_factor: 1.0,
                    total_iters: 5,
                };
                let wave = CosineAnnealingLR {
                    t_max: 15,
                    eta_min: 0.0,
                };
                compare(case, sgd(), SequentialLR::new(warm).then(5, wave))
            }
            "OneCycleLR" if case["optimiser"] == "Adam" => compare(
                case,
                Adam {
                    lr: 0.8,
                    ..Adam::default()
                },
                cycle(),
            ),
            "OneCycleLR" => compare(case, sgd(), cycle()),
            _ => {
                let mut schedule = ReduceLROnPlateau {
                    metric: if o["mode"] == "max" {
                        Metric::Max
                    } else {
                        Metric::Min
                    },
                    factor: number(o, "factor", 0.1),
                    patience: count("patience"),
                    threshold: number(o, "threshold", 1e-4),
                    absolute: o["threshold_mode"] == "abs",
                    cooldown: o["cooldown"].as_u64().unwrap_or(0),
                    min_lr: number(o, "min_lr", 0.0),
                    ..ReduceLROnPlateau::default()
                };
                let mut optimizer = Optimizer::new([Tensor::new([0f32])?], sgd())?;
                for (lr, metric) in numbers(&case["lr"])
                    .into_iter()
                    .zip(numbers(&case["metrics"]))
                {
                    assert!((optimizer.groups_mut()[0].lr() - lr).abs() < 1e-15, "{o}");
                    schedule.step(&mut optimizer, metric);
                }
                Ok(())
            }
        }?;
    }
    Ok(())
}

#[test]
fn schedules_end_and_go_on() -> Result<()> {
    let w = Tensor::new([0f32])?;
    let mut optimizer = Optimizer::new(
        [&w],
        SGD {
            lr: 1.0,
            ..SGD::default()
        },
    )?;
    let cycle = OneCycleLR {
        total_steps: 3,
        momentum: None,
        ..OneCycleLR::default()
    };
    let mut schedule = Scheduler::new(&mut optimizer, cycle)?;
    for _ in 0..3 {
        schedule.step(&mut optimizer)?;
    }
    assert!(
        schedule
            .step(&mut optimizer)
            .unwrap_err()
            .to_string()
            .contains("3 steps only")
    );
    assert_eq!(schedule.steps(), 3);
    assert!(
        Scheduler::new(
            &mut optimizer,
            StepLR {
                step_size: 0,
                gamma: 0.1
            }
        )
        .is_err()
    );
    // The base rate is in the state: a schedule goes on from a loaded one.
    let mut first = Optimizer::new(
        [&w],
        SGD {
            lr: 8.0,
            ..SGD::default()
        },
    )?;
    let mut schedule = Scheduler::new(&mut first, ExponentialLR { gamma: 0.5 })?;
    schedule.step(&mut first)?;
    let mut second = Optimizer::new([&w], SGD::default())?;
    second.load_state_dict(&first.state_dict()?)?;
    let mut schedule =
        Scheduler::resume(&mut second, ExponentialLR { gamma: 0.5 }, schedule.steps())?;
    schedule.step(&mut second)?;
    assert_eq!(second.groups_mut()[0].lr(), 2.0);
    Ok(())
}

#[test]
fn clipping_is_pytorchs() -> Result<()> {
    let (file, cases) = (recorded("optim.json"), recorded("clip.json"));
    for case in cases.as_array().unwrap() {
        let order: f64 = case["order"].as_str().unwrap().parse().unwrap();
        let parameters: Vec<Tensor> = file["gradients"][0]
            .as_array()
            .unwrap()
            .iter()
            .map(|g| {
                let g = tensor(g)?.to(DType::F32)?;
                let p = parameter(g.zeros_like(None)?)?;
                p.set_grad(Some(&g))?;
                Ok(p)
            })
            .collect::<Result<_>>()?;
        let norm = clip_grad_norm_(&parameters, 0.7, order)?.item::<f64>()?;
        assert!(
            (norm - case["norm"].as_f64().unwrap()).abs() < 1e-5,
            "order {order}: {norm}"
        );
        for (p, g) in parameters.iter().zip(case["gradients"].as_array().unwrap()) {
            assert_close("clipped", &p.grad().unwrap(), g, 1e-6);
        }
        clip_grad_value_(&parameters, 0.01)?;
        assert!(parameters[0].grad().unwrap().abs()?.max()?.item::<f64>()? <= 0.01 + 1e-9);
    }
    assert!(clip_grad_norm_(Vec::<Tensor>::new(), f64::NAN, 2.0).is_err());
    assert!(clip_grad_value_(Vec::<Tensor>::new(), -1.0).is_err());
    Ok(())
}

#[test]
fn a_step_needs_little_memory_beside_its_states() -> Result<()> {
    let n = 1 << 20;
    let w = parameter(Tensor::zeros([n], DType::F32, &Device::cpu())?)?;
    w.set_grad(Some(&Tensor::ones([n], DType::F32, &Device::cpu())?))?;
    let how = RMSprop {
        centered: true,
        momentum: 0.5,
        weight_decay: 0.1,
        ..RMSprop::default()
    };
    let mut optimizer = Optimizer::new([&w], how)?;
    optimizer.step()?; // makes the states
    let mark = memory::allocated(&Device::cpu());
    memory::reset_peak(&Device::cpu());
    optimizer.step()?;
    // Other tests of this binary run beside this one with tensors of a few bytes.
    let peak = memory::max_allocated(&Device::cpu()).saturating_sub(mark);
    assert!(
        peak < 64 << 10,
        "{peak} bytes beyond what was there, for parameters of 4 MiB"
    );
    Ok(())
}

#[test]
fn complex_parameters_and_those_in_other_orders_step_too() -> Result<()> {
    let z = parameter(Tensor::new([num(3.0, 4.0)])?)?;
    z.set_grad(Some(&Tensor::new([num(1.0, -2.0)])?))?;
    let mut optimizer = Optimizer::new(
        [&z],
        Adam {
            lr: 0.1,
            ..Adam::default()
        },
    )?;
    optimizer.step()?; // real and imaginary part each by lr
    let parts = z.detach()?.view_as_real()?.to_vec::<f64>()?;
    assert!(
        (parts[0] - 2.9).abs() < 1e-6 && (parts[1] - 4.1).abs() < 1e-6,
        "{parts:?}"
    );
    let base = Tensor::zeros([3, 8], DType::F64, &Device::cpu())?;
    let w = base.slice_step(1, .., 2)?.t()?.detach()?; // with gaps, in another order
    w.requires_grad_(true)?;
    w.set_grad(Some(&Tensor::ones([4, 3], DType::F64, &Device::cpu())?))?;
    Optimizer::new(
        [&w],
        SGD {
            lr: 1.0,
            ..SGD::default()
        },
    )?
    .step()?;
    assert_eq!(base.sum()?.item::<f64>()?, -12.0);
    Ok(())
}

fn num(re: f64, im: f64) -> num_complex::Complex<f64> {
    num_complex::Complex::new(re, im)
}

#[test]
fn senseless_numbers_are_refused() -> Result<()> {
    let w = || Tensor::new([0f32]);
    assert!(
        Optimizer::new(
            [w()?],
            SGD {
                lr: -1.0,
                ..SGD::default()
            }
        )
        .is_err()
    );
    assert!(
        Optimizer::new(
            [w()?],
            SGD {
                nesterov: true,
                ..SGD::default()
            }
        )
        .is_err()
    );
    assert!(
        Optimizer::new(
            [w()?],
            Adam {
                betas: (1.0, 0.9),
                ..Adam::default()
            }
        )
        .is_err()
    );
    assert!(
        Optimizer::new(
            [w()?],
            RMSprop {
                alpha: f64::NAN,
                ..RMSprop::default()
            }
        )
        .is_err()
    );
    let one = w()?.named("head.weight");
    let error = Optimizer::new([&one, &one], SGD::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"head.weight\"") && error.contains("twice"),
        "{error}"
    );
    Ok(())
}
