//! Functions of users with derivatives of their own, and checkpoints that compute again instead of keeping.

use osteon_autograd::{
    BackwardContext, ForwardContext, Function, Grad, Tensor, checkpoint, functional, grad,
    manual_seed, no_grad,
};
use osteon_memory::allocated;
use osteon_spec::{DType, Device, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn leaf(values: &[f64]) -> Tensor {
    let t = Tensor::from_slice(values, [values.len()]).unwrap();
    t.requires_grad_(true).unwrap();
    t
}

fn gradient(t: &Tensor) -> Vec<f64> {
    t.grad().unwrap().to_vec().unwrap()
}

/// `(a·b², a + b)`, with a derivative that says what it needs.
struct Pair;

impl Function<2, 2> for Pair {
    fn forward(&self, ctx: &mut ForwardContext, [a, b]: [&Tensor; 2]) -> Result<[Tensor; 2]> {
        ctx.save(a);
        ctx.save(b);
        Ok([a.mul(b)?.mul(b)?, a.add(b)?])
    }

    fn backward(
        &self,
        ctx: &BackwardContext<'_>,
        [first, second]: [Tensor; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let (a, b) = (ctx.saved(0)?, ctx.saved(1)?);
        let of_a = || first.mul(&b)?.mul(&b)?.add(&second);
        let of_b = || first.mul(&a)?.mul(&b)?.mul(2)?.add(&second);
        Ok([
            ctx.needs(0).then(of_a).transpose()?,
            ctx.needs(1).then(of_b).transpose()?,
        ])
    }
}

#[test]
fn a_function_has_the_derivative_that_it_says() -> Result<()> {
    let (a, b) = (leaf(&[2.0, 3.0]), leaf(&[5.0, -1.0]));
    let [product, sum] = Pair.apply([&a, &b])?;
    assert_eq!(product.to_vec::<f64>()?, [50.0, 3.0]);
    product.sum()?.add(&sum.mul(10)?.sum()?)?.backward()?;
    assert_eq!(
        (gradient(&a), gradient(&b)),
        (vec![35.0, 11.0], vec![30.0, 4.0])
    );
    // One result alone, one input alone.
    a.set_grad(None)?;
    let [product, _] = Pair.apply([&a, &b.detach()?])?;
    product.sum()?.backward()?;
    assert_eq!(gradient(&a), [25.0, 1.0]);
    assert!(
        product
            .sum()?
            .backward()
            .unwrap_err()
            .to_string()
            .contains("second time")
    );
    assert!(!no_grad(|| Pair.apply([&a, &b]))?[0].requires_grad());
    Ok(())
}

#[test]
fn what_a_function_saves_has_its_history() -> Result<()> {
    let (a, b) = (leaf(&[2.0]), leaf(&[5.0]));
    let [product, _] = Pair.apply([&a, &b])?;
    let how = Grad {
        create_graph: true,
        ..Grad::default()
    };
    let of_b = grad(&[&product], &[&b], &how)?[0].clone().unwrap(); // 2 a b
    let second = grad(&[&of_b], &[&a, &b], &Grad::default())?;
    let numbers: Vec<f64> = second
        .iter()
        .map(|g| g.as_ref().unwrap().item().unwrap())
        .collect();
    assert_eq!(numbers, [10.0, 4.0]);
    // And is checked.
    let b = leaf(&[5.0]).mul(1)?;
    let [product, _] = Pair.apply([&a, &b])?;
    b.fill_(1.0)?;
    let error = product.backward().unwrap_err().to_string();
    assert!(error.contains("Pair") && error.contains("fill_"), "{error}");
    Ok(())
}

/// What a user might do to their inputs.
enum Odd {
    Same,
    View,
    Write,
    Constant,
}

impl Function<1> for Odd {
    fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
        Ok([match self {
            Odd::Same => x.clone(),
            Odd::View => x.slice(0, 1..)?,
            Odd::Write => {
                x.mul_(2)?;
                x.copy()?
            }
            Odd::Constant => {
                ctx.mark_non_differentiable(0);
                x.sign()?
            }
        }])
    }

    fn backward(
        &self,
        _: &BackwardContext<'_>,
        [grad]: [Tensor; 1],
    ) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(match self {
            Odd::View => {
                let whole = grad.new_zeros([2])?;
                whole.slice(0, 1..)?.copy_(&grad.mul(7)?)?;
                whole
            }
            _ => grad.mul(7)?,
        })])
    }
}

#[test]
fn inputs_and_views_of_them_are_results_too() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let [y] = Odd::Same.apply([&x])?;
    assert!(!y.is(&x) && y.shares_storage(&x));
    y.sum()?.backward()?;
    assert_eq!(gradient(&x), [7.0, 7.0]);
    x.set_grad(None)?;
    let h = x.mul(1)?;
    let [y] = Odd::View.apply([&h])?;
    let error = y.fill_(0.0).unwrap_err().to_string();
    assert!(error.contains("custom function"), "{error}");
    y.sum()?.backward()?;
    assert_eq!(gradient(&x), [0.0, 7.0]);
    let error = Odd::Write.apply([&h]).unwrap_err().to_string();
    assert!(
        error.starts_with("Odd: wrote its input 0 in place"),
        "{error}"
    );
    let [y] = Odd::Constant.apply([&x])?;
    assert!(!y.requires_grad());
    Ok(())
}

/// `x` through 4 layers of `tanh(w x)`, kept or computed again.
fn layers(x: &Tensor, w: &Tensor, again: bool) -> Result<Tensor> {
    let mut x = x.clone();
    for _ in 0..4 {
        let w = w.clone();
        let layer = move |x: &[Tensor]| x[0].mul(&w)?.tanh()?.exp();
        x = if again {
            checkpoint(layer, &[&x])?
        } else {
            layer(&[x])?
        };
    }
    Ok(x)
}

#[test]
fn checkpoints_give_the_same_gradients_for_less_memory() -> Result<()> {
    let n = 1 << 18;
    let run = |again: bool| -> Result<(Vec<f64>, u64, u64)> {
        let x = Tensor::linspace(-1.0, 1.0, n, DType::F64, &Device::cpu())?;
        x.requires_grad_(true)?;
        let w = Tensor::full([n], 0.7, DType::F64, &Device::cpu())?;
        w.requires_grad_(true)?;
        let before = allocated(&Device::cpu());
        let y = layers(&x, &w, again)?.sum()?;
        let kept = allocated(&Device::cpu()) - before;
        y.backward()?;
        drop(y);
        let left = allocated(&Device::cpu()) - before;
        let numbers = [x.grad(), w.grad()].map(|g| g.unwrap().to_vec::<f64>().unwrap());
        Ok((numbers.concat(), kept, left))
    };
    let ((kept_grads, kept, _), (again_grads, again, left)) = (run(false)?, run(true)?);
    assert_eq!(kept_grads, again_grads);
    let tensor = 8 * n as u64;
    // The figures are the process's: other tests of this binary make and free a few KiB meanwhile.
    let others = 1 << 20;
    // Of each layer: the input, tanh's and exp's results, the last of which is the next one's input.
    assert!(kept + others > 8 * tensor, "{kept}");
    assert!(again < 4 * tensor, "{again}");
    assert!(
        left < 2 * tensor + others,
        "only the gradients are left, not {left}"
    );
    Ok(())
}

#[test]
fn checkpoints_are_like_any_part_of_the_graph() -> Result<()> {
    let (x, w) = (leaf(&[0.3, -0.4]), leaf(&[0.5, 0.6]));
    let how = Grad {
        create_graph: true,
        ..Grad::default()
    };
    let second = |again: bool| -> Result<Vec<f64>> {
        let y = layers(&x, &w, again)?.sum()?;
        let first = grad(&[&y], &[&w], &how)?[0].clone().unwrap();
        let second = grad(&[&first.sum()?], &[&x], &Grad::default())?;
        second[0].as_ref().unwrap().to_vec()
    };
    assert_eq!(second(true)?, second(false)?);
    // Inside each other.
    let inner = w.clone();
    let outer = w.clone();
    let nested = checkpoint(
        move |x| {
            let w = inner.clone();
            let y = checkpoint(move |x| x[0].mul(&w)?.exp(), &[&x[0].sin()?])?;
            y.mul(&outer)?.tanh()
        },
        &[&x],
    )?;
    nested.sum()?.backward()?;
    let (a, b) = (gradient(&x), gradient(&w));
    x.set_grad(None)?;
    w.set_grad(None)?;
    x.sin()?
        .mul(&w)?
        .exp()?
        .mul(&w)?
        .tanh()?
        .sum()?
        .backward()?;
    assert_eq!((a, b), (gradient(&x), gradient(&w)));
    Ok(())
}

#[test]
fn checkpoints_draw_the_same_random_numbers() -> Result<()> {
    manual_seed(5);
    let x = Tensor::ones([1000], DType::F64, &Device::cpu())?;
    x.requires_grad_(true)?;
    let y = checkpoint(|x| functional::dropout(&x[0].exp()?, 0.5, true), &[&x])?;
    let next = Tensor::rand([3], DType::F64, &Device::cpu())?;
    y.sum()?.backward()?; // e^x · mask, as y is
    assert!(x.grad().unwrap().allclose(&y.detach()?, 1e-12, 0.0)?);
    let after = Tensor::rand([3], DType::F64, &Device::cpu())?;
    assert!(
        !after.equal(&next)?,
        "the backward pass leaves the stream where it was"
    );
    Ok(())
}

#[test]
fn checkpoints_that_would_be_wrong_are_refused() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let h = x.mul(1)?;
    let y = checkpoint(|x| x[0].exp(), &[&h])?;
    h.fill_(0.0)?;
    let error = y.sum()?.backward().unwrap_err().to_string();
    assert!(
        error.contains("modified by an in-place operation"),
        "{error}"
    );
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let fickle = move |x: &[Tensor]| {
        let times = counted.fetch_add(1, Ordering::Relaxed);
        let y = x[0].exp()?;
        if times == 0 { y.tanh() } else { y.neg() }
    };
    let y = checkpoint(fickle, &[&x])?;
    let error = y.sum()?.backward().unwrap_err().to_string();
    assert!(
        error.contains("saved 2 tensors at first and 1 when it ran again"),
        "{error}"
    );
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    // Where nothing is recorded it is just a call.
    assert!(!no_grad(|| checkpoint(|x| x[0].exp(), &[&x]))?.requires_grad());
    // An error inside leaves the thread as it was.
    assert!(checkpoint(|x| x[0].view([3]), &[&x]).is_err());
    let y = x.exp()?;
    y.sum()?.backward()?;
    assert!(!gradient(&x).is_empty());
    Ok(())
}
