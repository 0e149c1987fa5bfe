//! Programs that do to graphs, modules and optimisers what nobody should: the answer is a result or an error, never a
//! panic, a deadlock or a wrong number, and what an error says is left alone is.

use osteon::autograd::{
    Backward, BackwardContext, ForwardContext, Function, Grad, checkpoint, grad,
};
use osteon::nn::{Layer, Linear, Module, Parts, StateDict, parameter};
use osteon::optim::{
    Adam, AdamW, ExponentialLR, OneCycleLR, Optimizer, RMSprop, SGD, Schedule, Scheduler, StepLR,
    clip_grad_norm_,
};
use osteon::{DType, Device, Result, Tensor, enable_grad, inference_mode, memory, no_grad};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, RwLock};

/// Limits and random numbers are the process's: such tests run one at a time, and no other beside them.
static PROCESS: RwLock<()> = RwLock::new(());

fn leaf(values: &[f32]) -> Result<Tensor> {
    parameter(Tensor::new(values)?)
}

fn grad_of(t: &Tensor) -> Vec<f32> {
    t.grad().map_or(Vec::new(), |g| g.to_vec().unwrap())
}

/// Fails where `f` has not come back in time.
fn in_time(f: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        f();
        let _ = done.send(());
    });
    let waited = wait.recv_timeout(std::time::Duration::from_secs(60));
    assert!(
        !matches!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout)),
        "hangs"
    );
    thread.join().unwrap();
}

#[test]
fn hooks_may_do_anything_but_change_the_kind_of_a_gradient() -> Result<()> {
    let _p = PROCESS.read();
    type Bad = fn(&Tensor) -> Result<Tensor>;
    let bad: [Bad; 3] = [
        |_| Tensor::new([1f32; 3]),
        |g| g.to(DType::F64),
        |g| g.expand([2, 2]),
    ];
    for bad in bad {
        let w = leaf(&[1.0, 2.0])?;
        w.register_hook(move |g| bad(g).map(Some))?;
        let e = w.mul(3)?.sum()?.backward().unwrap_err().to_string();
        assert!(e.contains("hook") && w.grad().is_none(), "{e}");
        let w = leaf(&[1.0, 2.0])?;
        let y = w.mul(3)?;
        y.register_hook(move |g| bad(g).map(Some))?;
        assert!(y.sum()?.backward().is_err() && w.grad().is_none());
    }
    // A backward pass in a hook, over the same leaf.
    in_time(|| {
        let w = leaf(&[1.0, 2.0]).unwrap();
        let inner = w.clone();
        let y = w.mul(3).unwrap();
        y.register_hook(move |_| {
            enable_grad(|| inner.mul(10)?.sum()?.backward())?;
            Ok(None)
        })
        .unwrap();
        let again = w.clone();
        w.register_post_accumulate_grad_hook(move |w| {
            assert_eq!(w.shape(), [2]);
            if again
                .grad()
                .is_some_and(|g| g.to_vec::<f32>().unwrap()[0] < 12.0)
            {
                enable_grad(|| again.mul(100)?.sum()?.backward())?;
            }
            Ok(())
        })
        .unwrap();
        y.sum().unwrap().backward().unwrap();
        assert_eq!(grad_of(&w), [113.0, 113.0]);
    });
    // A panic goes through, and the next pass is as ever.
    let w = leaf(&[1.0])?;
    let y = w.mul(3)?;
    let first = Arc::new(Mutex::new(true));
    let is_first = first.clone();
    y.register_hook(move |_| {
        assert!(
            !std::mem::take(&mut *is_first.lock().unwrap_or_else(|e| e.into_inner())),
            "on purpose"
        );
        Ok(None)
    })?;
    let s = y.sum()?;
    let retain = Backward {
        retain_graph: true,
        ..Backward::default()
    };
    assert!(catch_unwind(AssertUnwindSafe(|| s.backward_with(&retain))).is_err());
    assert!(osteon::is_grad_enabled() && w.grad().is_none());
    s.backward()?;
    assert_eq!(grad_of(&w), [3.0]);
    // Hooks that write the leaf, overwrite what is saved, or let the gradient go.
    let w = leaf(&[2.0])?;
    let y = w.mul(&w)?;
    let target = w.clone();
    y.register_hook(move |_| {
        target.zero_()?;
        Ok(None)
    })?;
    let e = y.sum()?.backward().unwrap_err().to_string();
    assert!(
        e.contains("modified by an in-place operation") && w.grad().is_none(),
        "{e}"
    );
    let w = leaf(&[2.0])?;
    w.register_post_accumulate_grad_hook(|w| w.set_grad(None))?;
    w.mul(2)?.sum()?.backward()?;
    assert!(w.grad().is_none());
    Ok(())
}

#[test]
fn gradients_that_are_named_twice_come_once() -> Result<()> {
    let _p = PROCESS.read();
    let w = leaf(&[1.0, 1.0])?;
    let y = w.mul(2)?;
    let s = y.mul(3)?.sum()?;
    s.backward_with(&Backward {
        inputs: Some(&[&y, &y]),
        retain_graph: true,
        ..Backward::default()
    })?;
    assert_eq!(grad_of(&y), [3.0, 3.0]);
    let w = leaf(&[1.0, 1.0])?;
    let y = w.mul(2)?;
    y.retain_grad()?;
    let s = y.mul(3)?.sum()?;
    s.backward_with(&Backward {
        inputs: Some(&[&y]),
        retain_graph: true,
        ..Backward::default()
    })?;
    assert_eq!(grad_of(&y), [3.0, 3.0]);
    s.backward_with(&Backward {
        inputs: Some(&[&w, &w]),
        ..Backward::default()
    })?;
    assert_eq!(grad_of(&w), [6.0, 6.0]);
    // Outputs that are inputs.
    let one = Tensor::new([1f32, 1.0])?;
    let how = Grad {
        gradients: Some(&[&one]),
        ..Grad::default()
    };
    let found = grad(&[&w], &[&w], &how)?;
    assert_eq!(found[0].as_ref().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    // A tensor that is its own gradient.
    let w = leaf(&[1.0, 1.0])?;
    assert!(w.set_grad(Some(&w)).is_err() && w.grad().is_none());
    Ok(())
}

type Gradients = fn(&Tensor) -> Result<Option<Tensor>>;

struct Odd(Gradients);

impl Function<1> for Odd {
    fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
        let y = x.mul(2)?;
        ctx.save(&y);
        ctx.mark_non_differentiable(7);
        assert!(!ctx.needs(9));
        Ok([y])
    }

    fn backward(&self, ctx: &BackwardContext<'_>, [g]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
        assert!(ctx.saved(1).is_err() && !ctx.needs(9));
        Ok([(self.0)(&g)?])
    }
}

/// Gives what it was made with.
struct Constant(Tensor);

impl Function<1> for Constant {
    fn forward(&self, _: &mut ForwardContext, _: [&Tensor; 1]) -> Result<[Tensor; 1]> {
        Ok([self.0.clone()])
    }

    fn backward(&self, _: &BackwardContext<'_>, [g]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(g)])
    }
}

#[test]
fn functions_that_lie_are_told() -> Result<()> {
    let _p = PROCESS.read();
    let odd: [(Gradients, Option<&[f32]>); 6] = [
        (|_| Tensor::new([1f32; 5]).map(Some), None),
        (|_| Tensor::new([1f32]).map(Some), None),
        (
            |_| Tensor::new([[1i64, 2], [3, 4]]).map(Some),
            Some(&[4.0, 6.0]),
        ),
        (
            |g| {
                g.to(DType::C64)?
                    .mul(&Tensor::new(num(2.0, 5.0))?)
                    .map(Some)
            },
            Some(&[2.0, 2.0]),
        ),
        (|_| Ok(None), Some(&[])),
        (
            |_| {
                enable_grad(|| {
                    let v = leaf(&[1.0, 2.0])?;
                    let [y] = Odd(|g| g.mul(2).map(Some)).apply([&v])?;
                    y.sum()?.backward()?;
                    Ok(v.grad())
                })
            },
            Some(&[2.0, 2.0]),
        ),
    ];
    for (i, (gradients, expected)) in odd.into_iter().enumerate() {
        let w = leaf(&[1.0, 2.0])?;
        let [y] = Odd(gradients).apply([&w])?;
        let result = y.sum()?.backward();
        match expected {
            Some(expected) => assert_eq!(
                (result.is_ok(), grad_of(&w)),
                (true, expected.to_vec()),
                "{i}"
            ),
            None => {
                let e = result.unwrap_err().to_string();
                assert!(e.contains("Odd") && w.grad().is_none(), "{i}: {e}");
            }
        }
    }
    // A parameter stays a parameter when a function returns it; another graph stays what it is.
    let (w, x) = (leaf(&[1.0, 2.0])?, leaf(&[5.0, 5.0])?);
    let [y] = Constant(w.clone()).apply([&x.mul(&w)?])?;
    assert!(w.is_leaf()? && !y.is_leaf()?);
    y.sum()?.backward()?;
    assert_eq!(grad_of(&x), [1.0, 2.0]);
    let cached = Tensor::new([7f32, 7.0])?;
    let [first] = Constant(cached.clone()).apply([&x])?;
    let other = leaf(&[1.0, 1.0])?;
    let [second] = Constant(cached.clone()).apply([&other])?;
    assert!(!cached.requires_grad());
    x.set_grad(None)?;
    first.sum()?.backward()?;
    second.sum()?.backward()?;
    assert_eq!(
        (grad_of(&x), grad_of(&other)),
        (vec![1.0, 1.0], vec![1.0, 1.0])
    );
    Ok(())
}

fn num(re: f32, im: f32) -> num_complex::Complex<f32> {
    num_complex::Complex::new(re, im)
}

#[test]
fn what_was_saved_is_resized_or_replaced() -> Result<()> {
    let _p = PROCESS.read();
    let changes: [fn(&mut Tensor) -> Result<()>; 4] = [
        |x| x.resize_([1000]),
        |x| x.resize_([0]),
        |x| x.set_(&Tensor::new([7f32; 9])?),
        |x| {
            x.set_(&Tensor::new([7f32; 9])?)?;
            x.zero_()
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut x = Tensor::new([3f32, 4.0])?;
        let w = leaf(&[1.0, 2.0])?;
        let y = w.mul(&x)?;
        change(&mut x)?;
        let result = y.sum()?.backward();
        assert!(
            result.is_err() || grad_of(&w) == [3.0, 4.0],
            "{i}: {:?}",
            grad_of(&w)
        );
    }
    let mut w = leaf(&[1.0])?;
    assert!(w.resize_([4]).is_err() && w.set_(&Tensor::new([1f32, 2.0])?).is_err());
    assert_eq!(w.shape(), [1]);
    Ok(())
}

#[test]
fn empty_scalar_and_integer_tensors() -> Result<()> {
    let _p = PROCESS.read();
    let w = leaf(&[1.0, 2.0, 3.0])?;
    let none = parameter(Tensor::zeros([0, 3], DType::F32, &Device::cpu())?)?;
    none.mul(&w)?.sum()?.backward()?;
    assert_eq!(
        (grad_of(&w), none.grad().unwrap().shape().to_vec()),
        (vec![0.0; 3], vec![0, 3])
    );
    none.expand([5, 0, 3])?.add(&w)?.mean()?.backward()?;
    w.expand([0, 3])?.sum()?.backward()?;
    let s = parameter(Tensor::new(2f32)?)?;
    s.mul(&none)?.sum()?.backward()?;
    assert_eq!(s.grad().unwrap().item::<f32>()?, 0.0);
    s.expand([2, 3])?.mul(&w)?.sum()?.backward()?;
    assert_eq!(s.grad().unwrap().item::<f32>()?, 12.0);
    assert!(none.backward().is_err());
    let i = Tensor::new([1i64, 2])?;
    assert!(parameter(i.clone()).is_err() && i.backward().is_err());
    assert!(i.register_hook(|_| Ok(None)).is_err() && i.retain_grad().is_err());
    assert!(!w.argmax()?.requires_grad() && w.to(DType::I64)?.backward().is_err());
    let y = checkpoint(|x| x[0].sum(), &[&none])?;
    y.backward()?;
    let y = checkpoint(|_| Tensor::new([1f32]), &[])?;
    assert!(y.backward().is_err());
    Ok(())
}

#[test]
fn several_threads_on_one_graph() -> Result<()> {
    let _p = PROCESS.read();
    in_time(|| {
        let w = leaf(&[1.0, 2.0]).unwrap();
        let y = checkpoint(|x| x[0].exp()?.mul(&x[0])?.sin()?.sum(), &[&w]).unwrap();
        let retain = Backward {
            retain_graph: true,
            ..Backward::default()
        };
        y.backward_with(&retain).unwrap();
        let once = grad_of(&w);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..25).for_each(|_| y.backward_with(&retain).unwrap()));
            }
        });
        let all = grad_of(&w);
        assert!((all[0] - 101.0 * once[0]).abs() < 1e-2, "{all:?} {once:?}");
        // Without keeping it: one of them has it, the others are told.
        let oks: usize = std::thread::scope(|s| {
            let each: Vec<_> = (0..4)
                .map(|_| s.spawn(|| usize::from(y.backward().is_ok())))
                .collect();
            each.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert!(oks <= 4);
        assert!(y.backward().is_err());
    });
    Ok(())
}

#[test]
fn checkpoints_that_look_at_their_own_graph() -> Result<()> {
    let _p = PROCESS.read();
    in_time(|| {
        let w = leaf(&[1.0, 2.0]).unwrap();
        let own: Arc<Mutex<Option<Tensor>>> = Arc::default();
        let seen = own.clone();
        let y = checkpoint(
            move |x| {
                if let Some(y) = seen.lock().unwrap().as_ref() {
                    let node = y.grad_fn().unwrap();
                    let _ = (
                        node.saved_tensors(),
                        node.saved_nbytes(),
                        memory::map().to_string(),
                    );
                    std::thread::scope(|s| {
                        s.spawn(|| node.saved_nbytes()).join().unwrap();
                    });
                }
                x[0].exp()
            },
            &[&w],
        )
        .unwrap();
        *own.lock().unwrap() = Some(y.clone());
        y.sum().unwrap().backward().unwrap();
        *own.lock().unwrap() = None;
        assert!((grad_of(&w)[0] - 1f32.exp()).abs() < 1e-6);
    });
    Ok(())
}

#[test]
fn a_checkpoint_that_fails_the_second_time_leaves_all_as_it_was() -> Result<()> {
    let _p = PROCESS.write();
    for panics in [false, true] {
        let runs = Arc::new(Mutex::new(0));
        let count = runs.clone();
        let w = leaf(&[1.0, 2.0])?;
        let y = checkpoint(
            move |x| {
                let n = {
                    let mut n = count.lock().unwrap();
                    *n += 1;
                    *n
                };
                if n == 2 {
                    assert!(!panics, "on purpose");
                    return Err(osteon::Error::new(osteon::Kind::Value, "on purpose"));
                }
                let noise = x[0].detach()?.rand_like()?;
                x[0].mul(&noise)?.exp()
            },
            &[&w],
        )?;
        let before = osteon::get_rng_state();
        let s = y.sum()?;
        let failed = catch_unwind(AssertUnwindSafe(|| s.backward()));
        assert!(failed.is_err() == panics && failed.ok().is_none_or(|r| r.is_err()));
        assert_eq!(osteon::get_rng_state(), before, "panics: {panics}");
        assert!(w.grad().is_none() && osteon::is_grad_enabled());
        // The sum was passed by then, and has saved nothing: the pass can be run again.
        s.backward()?;
        assert!(w.grad().is_some());
    }
    Ok(())
}

/// Random numbers drawn on other threads meanwhile do not disturb what is computed again.
#[test]
fn a_checkpoint_beside_other_random_numbers() -> Result<()> {
    let _p = PROCESS.write();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let w = leaf(&[1.0; 64])?;
        let noise: Arc<Mutex<Vec<Vec<f32>>>> = Arc::default();
        let seen = noise.clone();
        let y = checkpoint(
            move |x| {
                let mut y = x[0].clone();
                for _ in 0..50 {
                    let drawn = y.detach()?.rand_like()?;
                    seen.lock().unwrap().push(drawn.to_vec()?);
                    y = y.mul(&drawn)?;
                }
                Ok::<_, osteon::Error>(y)
            },
            &[&w],
        )?;
        let (began, wait) = std::sync::mpsc::channel();
        let stop = &stop;
        s.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                Tensor::rand([3], DType::F32, &Device::cpu()).unwrap();
                let _ = began.send(());
            }
        });
        wait.recv().unwrap();
        let result = y.sum()?.backward();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        result?;
        let noise = noise.lock().unwrap();
        assert!(noise[..50] == noise[50..], "other numbers");
        Ok(())
    })
}

struct Twice;

impl Function<1> for Twice {
    fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
        ctx.save(x);
        Ok([x.mul(1)?])
    }

    fn backward(&self, ctx: &BackwardContext<'_>, [g]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
        ctx.saved(0)?;
        Ok([Some(g)])
    }
}

/// The same depth over each kind of node, forward, backward and dropped with and without a pass.
#[test]
fn deep_graphs_need_little_stack() {
    let _p = PROCESS.read();
    const DEPTH: usize = 20_000;
    type Deeper = fn(Tensor) -> Result<Tensor>;
    let kinds: [Deeper; 4] = [
        |x| Twice.apply([&x]).map(|[y]| y),
        |x| checkpoint(|x| x[0].sin(), &[&x]),
        |x| {
            x.sin_()?;
            Ok(x)
        },
        |x| {
            x.slice(0, 0..1)?.mul_(1.0)?;
            Ok(x)
        },
    ];
    for deeper in kinds {
        let run = move || {
            for pass in [false, true] {
                let w = leaf(&[0.5]).unwrap();
                let mut x = w.mul(1).unwrap();
                for _ in 0..DEPTH {
                    x = deeper(x).unwrap();
                }
                if pass {
                    x.backward().unwrap();
                    assert!(w.grad().is_some());
                }
            }
            // A list of gradients' gradients.
            let mut x = leaf(&[0.5]).unwrap();
            for _ in 0..DEPTH {
                let next = leaf(&[0.5]).unwrap();
                next.set_grad(Some(&x)).unwrap();
                x = next;
            }
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
        thread.unwrap().join().unwrap();
    }
}

#[test]
fn passes_without_memory_or_copies_say_so() -> Result<()> {
    let _p = PROCESS.write();
    let w = parameter(Tensor::ones([1 << 16], DType::F32, &Device::cpu())?)?;
    let retain = Backward {
        retain_graph: true,
        ..Backward::default()
    };
    let y = checkpoint(|x| x[0].exp()?.mul(&x[0])?.sin()?.sum(), &[&w])?;
    let failures = (0..20).take_while(|&left| {
        let result = with_left(left, 1 << 16, || y.backward_with(&retain));
        assert!(result.is_ok() || w.grad().is_none());
        result.is_err()
    });
    let failures = failures.count();
    assert!((2..20).contains(&failures), "{failures}");
    let before = grad_of(&w);
    y.backward_with(&retain)?;
    assert_eq!(grad_of(&w)[0], 2.0 * before[0]);
    let forbidden = osteon::copies::forbid();
    let result = y.backward();
    drop(forbidden);
    assert!(result.is_ok(), "{result:?}");
    // A guard in the way.
    let w = leaf(&[1.0])?;
    w.mul(2)?.sum()?.backward()?;
    let g = w.grad().unwrap();
    let guard = g.read::<f32>()?;
    assert!(w.mul(2)?.sum()?.backward().is_err());
    drop(guard);
    assert_eq!(grad_of(&w), [2.0]);
    let guard = w.write::<f32>()?;
    assert!(w.mul(2).is_err());
    drop(guard);
    Ok(())
}

/// Runs `f` where there is room for so many tensors of `n` elements, and for nothing else.
fn with_left<R>(left: usize, n: usize, f: impl FnOnce() -> R) -> R {
    let device = Device::cpu();
    memory::empty_cache(&device);
    let reserved = memory::stats(&device).reserved_bytes.all.current;
    memory::set_limit(&device, Some(reserved as usize + (left + 1) * n * 4));
    let mut all = Vec::new();
    for size in [n, n / 16, 16] {
        while let Ok(t) = Tensor::zeros([size], DType::F32, &device) {
            all.push(t);
        }
    }
    all.drain(..left);
    let result = f();
    memory::set_limit(&device, None);
    result
}

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

#[test]
fn hooks_that_let_go_of_what_they_hang_on() -> Result<()> {
    let _p = PROCESS.read();
    in_time(|| {
        let w = leaf(&[1.0, 2.0]).unwrap();
        let held: Arc<Mutex<Vec<Tensor>>> = Arc::default();
        let (y, all) = (w.mul(3).unwrap(), held.clone());
        let (result, other) = (y.clone(), w.clone());
        y.register_hook(move |_| {
            all.lock().unwrap().clear();
            result.register_hook(|g| g.mul(100).map(Some))?;
            other.register_hook(|g| g.mul(2).map(Some))?;
            Ok(None)
        })
        .unwrap();
        let s = y.sum().unwrap();
        held.lock().unwrap().extend([y, s.clone()]);
        s.backward().unwrap();
        // A hook of the same tensor comes too late for this pass, one of the leaf does not.
        assert_eq!(grad_of(&w), [6.0, 6.0]);
        // The same graph again, from inside of its own pass.
        let w = leaf(&[3.0]).unwrap();
        let y = w.mul(&w).unwrap();
        let s = y.mul(1).unwrap();
        let own = s.clone();
        let done = Mutex::new(false);
        y.register_hook(move |_| {
            if !std::mem::replace(&mut *done.lock().unwrap(), true) {
                own.backward()?;
            }
            Ok(None)
        })
        .unwrap();
        // The outer pass has freed by then what the inner one needs.
        let e = s.backward().unwrap_err().to_string();
        assert!(e.contains("a second time") && w.grad().is_none(), "{e}");
    });
    Ok(())
}

#[test]
fn checkpoints_nested_in_place_and_unrecorded() -> Result<()> {
    let _p = PROCESS.write();
    let body = |x: &Tensor| -> Result<Tensor> {
        let y = x.mul(2)?;
        y.sin_()?;
        y.slice(0, 0..1)?.mul_(3.0)?;
        y.mul(&y.detach()?.rand_like()?)?.exp()
    };
    let gradient = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f32>> {
        osteon::manual_seed(3);
        let w = leaf(&[0.3, 0.7, 0.9])?;
        f(&w)?.sum()?.backward()?;
        Ok(grad_of(&w))
    };
    let plain = gradient(&|w| body(&body(&body(w)?)?))?;
    let nested = gradient(&|w| {
        checkpoint(
            move |x| {
                let y = checkpoint(move |x| body(&x[0]), &[&x[0]])?;
                checkpoint(
                    move |y| checkpoint(move |y| body(&body(&y[0])?), &[&y[0]]),
                    &[&y],
                )
            },
            &[w],
        )
    })?;
    assert_eq!(plain, nested);
    // Nothing is kept or run again where nothing is recorded, inside or outside.
    let w = leaf(&[1.0])?;
    let y = no_grad(|| checkpoint(|x| x[0].exp(), &[&w]))?;
    assert!(!y.requires_grad());
    let y = checkpoint(|x| no_grad(|| x[0].exp())?.mul(&x[0]), &[&w])?;
    y.backward()?;
    assert!((grad_of(&w)[0] - 1f32.exp()).abs() < 1e-6);
    // An input that is written inside would be other numbers the second time.
    let x = w.mul(1)?;
    let y = checkpoint(
        |x| {
            x[0].mul_(2)?;
            x[0].sin()
        },
        &[&x],
    )?;
    let e = y.backward().unwrap_err().to_string();
    assert!(e.contains("modified by an in-place operation"), "{e}");
    // A function inside, whose results are saved; a panic of the first run leaves the thread as it was.
    let y = checkpoint(
        |x| Odd(|g| g.mul(2).map(Some)).apply([&x[0]]).map(|[y]| y),
        &[&w],
    )?;
    w.set_grad(None)?;
    y.backward()?;
    assert_eq!(grad_of(&w), [2.0]);
    let fails = || checkpoint(|_| -> Result<Tensor> { panic!("on purpose") }, &[&w]);
    assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
    assert!(
        w.exp()?.grad_fn().unwrap().saved_nbytes() > 0,
        "still counts what is saved"
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
fn huge_tensors_are_refused() -> Result<()> {
    let _p = PROCESS.read();
    let w = leaf(&[1.0])?;
    let huge = w.expand([1 << 40])?;
    assert!(huge.mul(2).is_err() && huge.copy().is_err() && huge.backward().is_err());
    assert!(w.expand([1 << 40, 1 << 40]).is_err());
    // The gradient of a part is as large as the whole, as in PyTorch.
    let e = huge.narrow(0, 5, 2)?.sum()?.backward().unwrap_err();
    assert!(e.kind() == osteon::Kind::OutOfMemory && w.grad().is_none());
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

/// A leaf that becomes other bytes where nothing is recorded.
#[test]
fn leaves_that_are_replaced_keep_no_gradient_of_another_shape() -> Result<()> {
    let _p = PROCESS.read();
    let mut w = leaf(&[1.0, 2.0])?;
    let y = w.mul(&w)?;
    let old = w.clone();
    no_grad(|| w.set_(&Tensor::new([7f32; 3])?))?;
    assert_eq!(w.shape(), [3]);
    assert!(w.grad().is_none_or(|g| g.shape() == w.shape()));
    let _ = w.mul(2)?.sum()?.backward();
    assert!(w.grad().is_none_or(|g| g.shape() == w.shape()));
    let _ = y.sum()?.backward();
    assert!(old.grad().is_none_or(|g| g.shape() == old.shape()));
    Ok(())
}

/// Reports walk graphs of any depth with as little stack as passes do.
#[test]
fn deep_graphs_are_looked_at_with_little_stack() {
    let _p = PROCESS.write();
    let run = || -> Result<()> {
        let w = leaf(&[0.5])?;
        let mut x = w.mul(1)?;
        for _ in 0..20_000 {
            let [y] = Twice.apply([&x])?;
            x = checkpoint(|x| x[0].sin(), &[&y])?;
        }
        let mut list = leaf(&[0.5])?;
        for _ in 0..20_000 {
            let next = leaf(&[0.5])?;
            next.set_grad(Some(&list))?;
            list = next;
        }
        assert!(memory::map().to_string().len() > 100);
        assert!(memory::retained(&x)? > 0 && memory::retained(&list)? > 0);
        let _ = (memory::dominators()?, memory::holders(&w)?);
        memory::set_limit(&Device::cpu(), Some(0));
        let e = Tensor::zeros([1 << 24], DType::F32, &Device::cpu());
        memory::set_limit(&Device::cpu(), None);
        assert!(e.unwrap_err().to_string().contains("out of memory"));
        Ok(())
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(run).unwrap().join().unwrap().unwrap();
}

/// Two results that are one tensor, none at all, and gradients of their own making.
struct Doubled;

impl Function<1, 2> for Doubled {
    fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 2]> {
        let y = x.mul(2)?;
        ctx.save(&y);
        Ok([y.clone(), y])
    }

    fn backward(
        &self,
        ctx: &BackwardContext<'_>,
        [a, b]: [Tensor; 2],
    ) -> Result<[Option<Tensor>; 1]> {
        ctx.saved(0)?;
        Ok([Some(a.mul(10)?.add(&b)?)])
    }
}

struct Source;

impl Function<0, 1> for Source {
    fn forward(&self, _: &mut ForwardContext, _: [&Tensor; 0]) -> Result<[Tensor; 1]> {
        Ok([Tensor::new([1f32])?])
    }

    fn backward(&self, _: &BackwardContext<'_>, _: [Tensor; 1]) -> Result<[Option<Tensor>; 0]> {
        Ok([])
    }
}

#[test]
fn results_and_gradients_that_are_other_tensors() -> Result<()> {
    let _p = PROCESS.read();
    let w = leaf(&[1.0])?;
    let [a, b] = Doubled.apply([&w])?;
    a.mul(1)?.add(&b.mul(3)?)?.backward()?;
    assert_eq!(grad_of(&w), [13.0]);
    let [s] = Source.apply([])?;
    assert!(!s.requires_grad() && s.backward().is_err());
    // The gradient of a pass is the result itself, an integer, of another dtype, spread, or a parameter.
    let given: [fn(&Tensor, &Tensor) -> Result<Tensor>; 5] = [
        |y, _| Ok(y.clone()),
        |_, _| Tensor::new([1i64, 2]),
        |_, _| Tensor::new([1f64, 2.0]),
        |_, _| Tensor::new([1f32])?.expand([2]),
        |_, w| Ok(w.clone()),
    ];
    for (i, given) in given.into_iter().enumerate() {
        for create_graph in [false, true] {
            let w = leaf(&[1.0, 2.0])?;
            let y = w.mul(1)?;
            let g = given(&y, &w)?;
            let before = g.to(DType::F32)?.to_vec::<f32>()?;
            for _ in 0..2 {
                let how = Backward {
                    gradient: Some(&g),
                    retain_graph: true,
                    create_graph,
                    ..Backward::default()
                };
                y.backward_with(&how)?;
            }
            let twice: Vec<f32> = before.iter().map(|x| 2.0 * x).collect();
            assert_eq!(grad_of(&w), twice, "{i}");
            assert_eq!(
                (g.to(DType::F32)?.to_vec::<f32>()?, w.to_vec::<f32>()?),
                (before, vec![1.0, 2.0])
            );
            w.set_grad(None)?; // PyTorch's cycle of a leaf and its recorded gradient
        }
    }
    // A hook that gives the leaf itself.
    let w = leaf(&[1.0, 2.0])?;
    let own = w.clone();
    w.register_hook(move |_| Ok(Some(own.clone())))?;
    for _ in 0..2 {
        w.mul(2)?.sum()?.backward()?;
    }
    assert_eq!(
        (w.to_vec::<f32>()?, grad_of(&w)),
        (vec![1.0, 2.0], vec![2.0, 4.0])
    );
    Ok(())
}
