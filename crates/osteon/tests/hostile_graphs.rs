//! Programs that do to graphs what nobody should: the answer is a result or an error, never a panic, a deadlock or a wrong
//! number, and what an error says is left alone is.

#[path = "common/hostile.rs"]
mod hostile;

use hostile::{PROCESS, grad_of, in_time, leaf, with_left};
use osteon::autograd::{
    Backward, BackwardContext, ForwardContext, Function, Grad, checkpoint, grad,
};
use osteon::nn::parameter;
use osteon::{DType, Device, Result, Tensor, enable_grad, memory, no_grad};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

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
