//! Programs that do to modules and optimisers what nobody should: the answer is a result or an error, never a panic, a
//! deadlock or a wrong number, and what an error says is left alone is.

#[path = "common/hostile.rs"]
mod hostile;

use hostile::{PROCESS, grad_of, in_time, leaf, with_left};
use osteon::nn::{Layer, Linear, Module, Parts, StateDict, parameter};
use osteon::optim::{
    Adam, AdamW, ExponentialLR, OneCycleLR, Optimizer, RMSprop, SGD, Schedule, Scheduler, StepLR,
    clip_grad_norm_,
};
use osteon::{DType, Device, Result, Tensor, inference_mode, no_grad};
use std::sync::Arc;

/// A step of one parameter without memory at any point has not begun: the next one is the first.
fn interrupted<A: osteon::optim::Algorithm>(algorithm: A) -> Result<()> {
    let n = 1 << 15;
    let filled = |x| Tensor::full([n], x, DType::F32, &Device::cpu());
    let fresh = || -> Result<Tensor> {
        let w = parameter(filled(1.0)?)?;
        w.set_grad(Some(&filled(0.25)?))?;
        Ok(w)
    };
    let expected = fresh()?;
    let mut optimizer = Optimizer::new([&expected], algorithm.clone())?;
    optimizer.step()?;
    optimizer.step()?;
    let mut failed = 0;
    for left in 0..8 {
        let w = fresh()?;
        let mut optimizer = Optimizer::new([&w], algorithm.clone())?;
        if with_left(left, n, || optimizer.step()).is_err() {
            failed += 1;
            assert!(w.equal(&filled(1.0)?)?, "changed without memory, {left}");
            optimizer.step()?;
        }
        optimizer.step()?;
        assert!(w.equal(&expected)?, "another step, {left}");
        // A guard in the way of a later step.
        let guard = w.read::<f32>()?;
        assert!(optimizer.step().is_err());
        drop(guard);
        let (gradient, more) = (w.grad().unwrap(), fresh()?);
        let guard = gradient.write::<f32>()?;
        assert!(optimizer.step().is_err());
        drop(guard);
        let mut straight = Optimizer::new([&more], algorithm.clone())?;
        (0..3).try_for_each(|_| straight.step())?;
        optimizer.step()?;
        assert!(w.equal(&more)?, "a guard changed the step");
    }
    assert!((1..8).contains(&failed), "{failed}");
    Ok(())
}

#[test]
fn steps_without_memory_have_not_begun() -> Result<()> {
    let _p = PROCESS.write();
    interrupted(SGD {
        lr: 0.1,
        momentum: 0.9,
        dampening: 0.5,
        ..SGD::default()
    })?;
    interrupted(SGD {
        lr: 0.1,
        momentum: 0.9,
        nesterov: true,
        weight_decay: 0.1,
        maximize: true,
        ..SGD::default()
    })?;
    interrupted(Adam {
        weight_decay: 0.1,
        maximize: true,
        amsgrad: true,
        ..Adam::default()
    })?;
    interrupted(AdamW {
        weight_decay: 0.1,
        ..AdamW::default()
    })?;
    interrupted(AdamW {
        maximize: true,
        ..AdamW::default()
    })?;
    interrupted(RMSprop {
        momentum: 0.9,
        centered: true,
        weight_decay: 0.1,
        ..RMSprop::default()
    })?;
    interrupted(RMSprop::default())
}

#[test]
fn numbers_of_optimisers_change_between_steps() -> Result<()> {
    let _p = PROCESS.read();
    // PyTorch 2.15: SGD without momentum, two steps with it, one without but with dampening.
    let w = leaf(&[1.0])?;
    w.set_grad(Some(&Tensor::new([1f32])?))?;
    let mut o = Optimizer::new(
        [&w],
        SGD {
            lr: 0.1,
            ..SGD::default()
        },
    )?;
    o.step()?;
    o.groups_mut()[0].algorithm.momentum = 0.9;
    o.step()?;
    o.step()?;
    assert!(
        (w.item::<f32>()? - 0.61).abs() < 1e-6,
        "{}",
        w.item::<f32>()?
    );
    o.groups_mut()[0].algorithm.momentum = 0.0;
    o.groups_mut()[0].algorithm.dampening = 0.5;
    o.step()?;
    assert!(
        (w.item::<f32>()? - 0.51).abs() < 1e-6,
        "{}",
        w.item::<f32>()?
    );
    // Counts that are none.
    for count in [-1.0, 0.5, f64::NAN, f64::INFINITY, 1e30] {
        let mut o = Optimizer::new([&w], Adam::default())?;
        let zero = Tensor::new([0f32])?;
        let state = StateDict::from([
            ("state.0.exp_avg".to_string(), zero.clone()),
            ("state.0.exp_avg_sq".to_string(), zero),
            ("state.0.step".to_string(), Tensor::new(count)?),
        ]);
        assert!(o.load_state_dict(&state).is_err(), "{count}");
        o.step()?;
    }
    // Numbers that make no sense are refused when they come, not at the next step.
    let mut o = Optimizer::new([&w], Adam::default())?;
    for (name, x) in [("lr", f64::NAN), ("betas.1", 1.0), ("eps", -1.0)] {
        let state = StateDict::from([(format!("param_groups.0.{name}"), Tensor::new(x)?)]);
        assert!(o.load_state_dict(&state).is_err(), "{name}");
    }
    let state = StateDict::from([("param_groups.0.lr".to_string(), Tensor::new([1.0, 2.0])?)]);
    assert!(o.load_state_dict(&state).is_err());
    assert_eq!(o.groups()[0].algorithm, Adam::default());
    // No gradients, other gradients, NaN.
    let mixed = [DType::F32, DType::F64, DType::BF16, DType::C64].map(|d| {
        let p = parameter(Tensor::ones([2], d, &Device::cpu()).unwrap()).unwrap();
        p.set_grad(Some(&p.detach().unwrap().copy().unwrap()))
            .unwrap();
        p
    });
    let total = clip_grad_norm_(&mixed, 1.0, 2.0)?;
    assert!((total.item::<f64>()? - 8f64.sqrt()).abs() < 1e-2);
    let mut o = Optimizer::new(&mixed, Adam::default())?;
    o.step()?;
    mixed[0].set_grad(Some(&Tensor::new([f32::NAN, 1.0])?))?;
    o.step()?;
    assert!(mixed[0].to_vec::<f32>()?[0].is_nan() && !mixed[0].to_vec::<f32>()?[1].is_nan());
    let mut none = Optimizer::new(Vec::<Tensor>::new(), Adam::default())?;
    none.step()?;
    assert_eq!(
        clip_grad_norm_(Vec::<Tensor>::new(), 1.0, 2.0)?.item::<f32>()?,
        0.0
    );
    let empty = parameter(Tensor::zeros([0], DType::F32, &Device::cpu())?)?;
    empty.set_grad(Some(&empty.detach()?))?;
    Optimizer::new([&empty], Adam::default())?.step()?;
    Ok(())
}

#[test]
fn schedules_out_of_range() -> Result<()> {
    let _p = PROCESS.read();
    let w = leaf(&[1.0])?;
    let mut o = Optimizer::new(
        [&w],
        SGD {
            lr: 1.0,
            ..SGD::default()
        },
    )?;
    let mut s = Scheduler::resume(&mut o, ExponentialLR { gamma: 0.5 }, u64::MAX)?;
    let _ = s.step(&mut o);
    assert!(
        !StepLR {
            step_size: 0,
            gamma: 0.5
        }
        .lr(1.0, 3)
        .is_sign_negative()
    );
    assert!(
        Scheduler::new(
            &mut o,
            StepLR {
                step_size: 0,
                gamma: 0.5
            }
        )
        .is_err()
    );
    let mut o = Optimizer::new(
        [&w],
        SGD {
            lr: 1.0,
            ..SGD::default()
        },
    )?;
    for total_steps in 0..4 {
        let cycle = OneCycleLR {
            max_lr: 1.0,
            total_steps,
            ..OneCycleLR::default()
        };
        if let Ok(mut s) = Scheduler::new(&mut o, cycle) {
            while s.step(&mut o).is_ok() {
                assert!(s.steps() <= 4);
            }
        }
        assert!(!o.groups_mut()[0].lr().is_nan(), "{total_steps}");
    }
    let mut s = Scheduler::new(&mut o, ExponentialLR { gamma: f64::NAN })?;
    assert!(s.step(&mut o).is_err() && s.steps() == 0);
    assert!(!o.groups_mut()[0].lr().is_nan());
    Ok(())
}

struct Two(&'static str, Tensor, &'static str, Tensor);

impl Module for Two {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.add(self.0, &self.1);
        parts.add(self.2, &self.3);
    }
}

#[test]
fn states_that_cannot_be_loaded_change_nothing() -> Result<()> {
    let _p = PROCESS.read();
    let ones = |names: [&str; 2]| -> Result<StateDict> {
        let one = || Tensor::new([1f32]);
        Ok(StateDict::from([
            (names[0].into(), one()?),
            (names[1].into(), one()?),
        ]))
    };
    // The second tensor cannot be written: one made for inference, one element for many, a guard in the way.
    let inference = inference_mode(|| Tensor::new([5f32]))?;
    let locked = Tensor::new([5f32])?;
    let guard = locked.read::<f32>()?;
    for (i, second) in [inference, locked.clone()].into_iter().enumerate() {
        let two = Two("a", leaf(&[5.0])?, "b", second);
        assert!(two.load_state_dict(&ones(["a", "b"])?).is_err(), "{i}");
        assert_eq!(two.1.to_vec::<f32>()?, [5.0], "{i}");
    }
    drop(guard);
    let spread = Two("a", leaf(&[5.0])?, "b", Tensor::new([5f32])?.expand([2])?);
    let state = StateDict::from([
        ("a".into(), Tensor::new([1f32])?),
        ("b".into(), Tensor::new([1f32, 2.0])?),
    ]);
    assert!(spread.load_state_dict(&state).is_err());
    assert_eq!(spread.1.to_vec::<f32>()?, [5.0]);
    // One name for two tensors would lose one of them.
    let same = Two("a", leaf(&[5.0])?, "a", leaf(&[6.0])?);
    let e = same.load_state_dict(&same.state_dict());
    assert!(e.is_err(), "{:?}", same.1);
    // A tensor of which two parts look at the same bytes, names with dots, and none.
    let w = leaf(&[5.0, 6.0])?;
    let parts = Two("", w.clone(), "x.y", leaf(&[7.0])?);
    parts.load_state_dict(&parts.state_dict())?;
    let names: Vec<_> = parts.state_dict().into_keys().collect();
    assert_eq!(names, ["", "x.y"]);
    let _ = parts.summary();
    // A layer on wrong inputs.
    let layer = Linear::new(3, 2)?;
    assert!(layer.forward(&Tensor::new([[1f32, 2.0]])?).is_err());
    assert_eq!(
        layer
            .forward(&Tensor::zeros([0, 3], DType::F32, &Device::cpu())?)?
            .shape(),
        [0, 2]
    );
    no_grad(|| layer.weight.fill_(f64::NAN))?;
    assert!(
        layer
            .forward(&Tensor::new([1f32; 3])?)?
            .sum()?
            .item::<f32>()?
            .is_nan()
    );
    Ok(())
}

/// Threads that train one model, each with graphs of its own, while another one steps.
#[test]
fn several_threads_on_shared_leaves() -> Result<()> {
    let _p = PROCESS.read();
    in_time(|| {
        let layer = Arc::new(Linear::new(8, 8).unwrap());
        let mut optimizer = Optimizer::new(layer.parameters(), Adam::default()).unwrap();
        let x = Tensor::ones([4, 8], DType::F32, &Device::cpu()).unwrap();
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..30 {
                        // A step of the other thread may write what this graph has saved: that is told.
                        let _ = layer
                            .forward(&x)
                            .unwrap()
                            .tanh()
                            .unwrap()
                            .sum()
                            .unwrap()
                            .backward();
                    }
                });
            }
            for _ in 0..30 {
                optimizer.step().unwrap();
                optimizer.zero_grad().unwrap();
                let _ = clip_grad_norm_(layer.parameters(), 1.0, 2.0).unwrap();
            }
        });
        assert!(
            layer
                .weight
                .isfinite()
                .unwrap()
                .all()
                .unwrap()
                .item::<bool>()
                .unwrap()
        );
    });
    Ok(())
}

#[test]
fn clipping_is_whole_or_not_at_all() -> Result<()> {
    let _p = PROCESS.read();
    let (a, b) = (leaf(&[0.0])?, leaf(&[0.0])?);
    for p in [&a, &b] {
        p.set_grad(Some(&Tensor::new([8f32])?))?;
    }
    let g = b.grad().unwrap();
    let guard = g.read::<f32>()?;
    assert!(clip_grad_norm_([&a, &b], 1.0, 2.0).is_err());
    assert!(osteon::optim::clip_grad_value_([&a, &b], 1.0).is_err());
    let o = Optimizer::new([&a, &b], Adam::default())?;
    assert!(o.fill_grad_with_zeros().is_err());
    drop(guard);
    assert_eq!((grad_of(&a), grad_of(&b)), (vec![8.0], vec![8.0]));
    // NaN and infinity, as in PyTorch: all gradients become NaN or 0.
    a.set_grad(Some(&Tensor::new([f32::INFINITY])?))?;
    clip_grad_norm_([&a, &b], 1.0, 2.0)?;
    assert!(grad_of(&a)[0].is_nan() && grad_of(&b)[0] == 0.0);
    Ok(())
}

#[test]
fn layers_of_senseless_sizes() -> Result<()> {
    use osteon::nn::{
        BatchNorm1d, Conv1d, Dropout, Embedding, LayerNorm, MultiheadAttention, Sequential,
        functional::Conv, init,
    };
    let _p = PROCESS.read();
    let cpu = Device::cpu();
    for (width, heads) in [(8, 0), (8, 3), (0, 1), (usize::MAX / 2, 1), (usize::MAX, 1)] {
        assert!(
            MultiheadAttention::new(width, heads).is_err(),
            "{width} {heads}"
        );
    }
    for n in [usize::MAX, usize::MAX / 2, 1 << 62] {
        assert!(Linear::new(n, n).is_err() && Embedding::new(n, n).is_err());
        assert!(LayerNorm::new([n, n]).is_err() && BatchNorm1d::new(n).is_err());
        assert!(Conv1d::new(n, n, [n], Conv::default()).is_err());
    }
    assert!(
        Conv1d::new(
            4,
            4,
            [3],
            Conv {
                groups: 0,
                ..Conv::default()
            }
        )
        .is_err()
    );
    for how in [
        Conv {
            stride: [0],
            ..Conv::default()
        },
        Conv {
            dilation: [0],
            ..Conv::default()
        },
    ] {
        let x = Tensor::zeros([1, 4, 9], DType::F32, &cpu)?;
        assert!(Conv1d::new(4, 4, [3], how)?.forward(&x).is_err());
    }
    let _ = Linear::new(0, 3)?.forward(&Tensor::zeros([2, 0], DType::F32, &cpu)?)?;
    let _ = Conv1d::new(0, 0, [0], Conv::default());
    let rows = Embedding::new(0, 4)?;
    assert!(
        rows.forward(&Tensor::new([0i64])?).is_err()
            && rows.forward(&Tensor::new([-1i64])?).is_err()
    );
    assert_eq!(
        rows.forward(&Tensor::zeros([0], DType::I64, &cpu)?)?
            .shape(),
        [0, 4]
    );
    assert!(
        BatchNorm1d::new(2)?
            .forward(&Tensor::zeros([1, 2], DType::F32, &cpu)?)
            .is_err()
    );
    assert!(
        LayerNorm::new([3])?
            .forward(&Tensor::zeros([2, 4], DType::F32, &cpu)?)
            .is_err()
    );
    for p in [f64::NAN, -1.0, 2.0] {
        assert!(Dropout::new(p).forward(&Tensor::new([1f32])?).is_err());
    }
    assert_eq!(
        Sequential::new().forward(&Tensor::new([1f32])?)?.shape(),
        [1]
    );
    for shape in [&[0, 3][..], &[3, 0], &[0, 0, 2]] {
        let t = Tensor::zeros(shape, DType::F32, &cpu)?;
        init::orthogonal_(&t, init::Gain::Linear)?;
        let _ = init::kaiming_uniform_(&t, 0.0);
        let _ = init::xavier_normal_(&t, init::Gain::Linear);
    }
    let t = Tensor::new([1f32, 2.0])?;
    assert!(
        init::orthogonal_(&t, init::Gain::Linear).is_err()
            && init::kaiming_uniform_(&t, 0.0).is_err()
    );
    let _ = init::trunc_normal_(&t, 0.0, 0.0, -1.0, 1.0);
    assert!(
        init::trunc_normal_(&t, 0.0, 1.0, 2.0, 1.0).is_err()
            && init::normal_(&t, 0.0, -1.0).is_err()
    );
    Ok(())
}
