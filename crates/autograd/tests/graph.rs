//! Histories, gradients and writes under the graph, against derivatives by hand and PyTorch's answers.

use osteon_autograd::{Backward, Grad, Tensor, enable_grad, grad, inference_mode, no_grad};
use osteon_spec::{DType, Device, Result};

fn leaf(values: &[f64]) -> Tensor {
    let t = Tensor::from_slice(values, [values.len()]).unwrap();
    t.requires_grad_(true).unwrap();
    t
}

fn gradient(t: &Tensor) -> Vec<f64> {
    t.grad().unwrap().to_vec().unwrap()
}

#[test]
fn views_send_gradients_to_where_they_look() -> Result<()> {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let x = a.view([2, 3])?;
    x.t()?.slice(0, 1..)?.select(1, 1)?.sum()?.backward()?; // elements 4 and 5
    assert_eq!(gradient(&a), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    a.expand([4, 6])?.sum()?.backward()?;
    assert_eq!(gradient(&a), [4.0, 4.0, 4.0, 4.0, 5.0, 5.0]);
    a.set_grad(None)?;
    a.unfold(0, 3, 2)?.sum()?.backward()?; // 0 1 2, 2 3 4
    assert_eq!(gradient(&a), [1.0, 1.0, 2.0, 1.0, 1.0, 0.0]);
    a.set_grad(None)?;
    a.chunk(3, 0)?[1].sum()?.backward()?;
    assert_eq!(gradient(&a), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn a_write_through_a_view_changes_the_history_of_the_base() -> Result<()> {
    let (w, a) = (leaf(&[5.0, 7.0]), leaf(&[1.0, 2.0, 3.0, 4.0]));
    let base = a.copy()?;
    let (front, back) = (base.slice(0, ..2)?, base.slice(0, 2..)?);
    front.copy_(&w)?;
    assert_eq!(base.to_vec::<f64>()?, [5.0, 7.0, 3.0, 4.0]);
    let again = Backward {
        retain_graph: true,
        ..Backward::default()
    };
    base.sum()?.backward_with(&again)?;
    assert_eq!(
        (gradient(&w), gradient(&a)),
        (vec![1.0, 1.0], vec![0.0, 0.0, 1.0, 1.0])
    );
    back.sum()?.backward()?; // looks into the base anew
    assert_eq!(gradient(&a), [0.0, 0.0, 2.0, 2.0]);
    // A base without gradients begins to require them.
    let base = Tensor::zeros([4], DType::F64, &Device::cpu())?;
    let (front, back) = (base.slice(0, ..2)?, base.slice(0, 2..)?);
    front.copy_(&w)?;
    assert!(base.requires_grad() && back.requires_grad() && !back.is_leaf()?);
    Ok(())
}

#[test]
fn leaves_and_ambiguous_views_are_not_written() -> Result<()> {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0]);
    for refused in [
        a.fill_(0.0),
        a.slice(0, 1..)?.zero_(),
        a.copy()?.chunk(2, 0)?[0].fill_(1.0),
    ] {
        assert!(refused.unwrap_err().is_autograd());
    }
    let base = a.copy()?;
    let frozen = no_grad(|| base.slice(0, 1..))?;
    // As PyTorch has it: the base requires gradients, though none flow through this view.
    assert!(frozen.requires_grad() && frozen.is_leaf()?);
    assert!(frozen.fill_(1.0).unwrap_err().is_autograd());
    assert!(no_grad(|| frozen.fill_(1.0)).is_ok());
    assert_eq!(a.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    no_grad(|| a.fill_(9.0))?;
    assert_eq!(a.version(), 1);
    Ok(())
}

#[test]
fn gradients_of_gradients() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let y = x.view([2, 1])?.expand([2, 3])?;
    let how = Grad {
        create_graph: true,
        ..Grad::default()
    };
    let g = grad(&[&y.sum()?], &[&x], &how)?;
    assert_eq!(g[0].as_ref().unwrap().to_vec::<f64>()?, [3.0, 3.0]);
    Ok(())
}

#[test]
fn modes_nest_and_end_with_panics() -> Result<()> {
    let w = leaf(&[1.0]);
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| no_grad(|| panic!("boom"))));
    assert!(caught.is_err());
    assert!(w.copy()?.requires_grad());
    assert!(!no_grad(|| w.copy())?.requires_grad());
    assert!(no_grad(|| enable_grad(|| w.copy()))?.requires_grad());
    assert!(!inference_mode(|| enable_grad(|| w.copy()))?.requires_grad());
    let x = inference_mode(|| Tensor::new([1f64]))?;
    assert!(x.fill_(1.0).unwrap_err().is_autograd() && inference_mode(|| x.fill_(1.0)).is_ok());
    Ok(())
}

#[test]
fn a_deep_graph_runs_and_drops_with_little_stack() {
    let run = || {
        let w = leaf(&[1.0]);
        let mut x = w.clone();
        for _ in 0..1_000_000 {
            x = x.alias()?;
        }
        x.sum()?.backward()?;
        assert_eq!(gradient(&w), [1.0]);
        drop(x);
        let mut x = w.clone();
        for _ in 0..1_000_000 {
            x = x.expand([1])?;
        }
        drop(x); // never run
        Ok::<(), osteon_spec::Error>(())
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap()
        .unwrap();
}

#[test]
fn hooks_see_and_change_gradients() -> Result<()> {
    let a = leaf(&[1.0, 2.0]);
    let y = a.copy()?;
    y.retain_grad()?;
    y.register_hook(|g| {
        g.expand([2])
            .and_then(|g| g.sum_dims([0], false)?.expand([2]))
            .map(Some)
    })?;
    y.slice(0, 1..)?.sum()?.backward()?;
    assert_eq!(
        (gradient(&a), gradient(&y)),
        (vec![1.0, 1.0], vec![1.0, 1.0])
    );
    Ok(())
}

#[test]
fn what_cannot_be_differentiated_says_why() -> Result<()> {
    let (a, x) = (leaf(&[1.0, 2.0]), Tensor::new([1f64, 2.0])?);
    assert!(
        a.backward()
            .unwrap_err()
            .to_string()
            .contains("one element")
    );
    assert!(
        x.sum()?
            .backward()
            .unwrap_err()
            .to_string()
            .contains("requires_grad_")
    );
    let g = Tensor::new([1f64])?;
    let how = Backward {
        gradient: Some(&g),
        ..Backward::default()
    };
    assert!(a.copy()?.backward_with(&how).unwrap_err().is_autograd());
    assert!(
        grad(&[&a.sum()?], &[&leaf(&[1.0])], &Grad::default())
            .unwrap_err()
            .is_autograd()
    );
    assert!(a.copy()?.requires_grad_(false).is_err() && a.slice(0, 1..)?.detach_().is_err());
    assert!(
        Tensor::new([1i64])?
            .requires_grad_(true)
            .unwrap_err()
            .is_autograd()
    );
    Ok(())
}

#[test]
fn a_leaf_of_many_uses_gets_one_gradient_and_its_hooks_one_call() -> Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let x = leaf(&[1.0, 2.0]);
    x.register_hook(|g| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        assert_eq!(g.to_vec::<f64>()?, [3.0, 3.0]);
        Ok(None)
    })?;
    x.register_post_accumulate_grad_hook(|x| {
        CALLS.fetch_add(10, Ordering::Relaxed);
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0, 3.0]);
        Ok(())
    })?;
    let all = [x.copy()?, x.alias()?, x.view([1, 2])?.view([2])?];
    let all: Vec<&Tensor> = all.iter().collect();
    Tensor::cat(&all, 0)?.sum()?.backward()?;
    assert_eq!(
        (gradient(&x), CALLS.load(Ordering::Relaxed)),
        (vec![3.0, 3.0], 11)
    );
    Ok(())
}

#[test]
fn backward_may_name_its_inputs_also_results() -> Result<()> {
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let y = a.copy()?;
    let total = Tensor::cat(&[&y, &b], 0)?.sum()?;
    total.backward_with(&Backward {
        inputs: Some(&[&y]),
        retain_graph: true,
        ..Backward::default()
    })?;
    assert_eq!(gradient(&y), [1.0, 1.0]);
    assert!(a.grad().is_none() && b.grad().is_none());
    total.backward_with(&Backward {
        inputs: Some(&[&b]),
        ..Backward::default()
    })?;
    assert_eq!(gradient(&b), [1.0, 1.0]);
    assert!(a.grad().is_none());
    Ok(())
}

#[test]
fn passes_on_several_threads_add_up() -> Result<()> {
    let x = leaf(&[1.0; 100]);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..100).for_each(|_| x.copy().unwrap().sum().unwrap().backward().unwrap()));
        }
    });
    assert_eq!(gradient(&x), [400.0; 100]);
    Ok(())
}

#[test]
fn gradients_are_of_the_line_whose_operation_they_belong_to() -> Result<()> {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let (part, line) = (x.slice(0, 1..)?, line!());
    part.sum()?.backward()?;
    let site = x.grad().unwrap().as_view().site();
    assert_eq!(
        (site.file().ends_with("graph.rs"), site.line()),
        (true, line)
    );
    Ok(())
}

#[test]
fn an_overwritten_value_names_who_saved_it_and_who_wrote_it() -> Result<()> {
    let w = leaf(&[1.0, 2.0]);
    let x = Tensor::new([3.0f64, 4.0])?;
    let (total, saved) = (w.mul(&x)?.sum()?, line!());
    let written = line!() + 1;
    x.slice(0, 1..)?.add_(1)?;
    let error = total.backward().unwrap_err();
    let said = error.to_string();
    for part in [
        "mul at ",
        &format!("graph.rs:{saved}"),
        "version 0",
        "version 1",
        "add_ at ",
        &format!("graph.rs:{written}"),
    ] {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
    assert!(error.is_autograd() && w.grad().is_none());
    // Through an alias that `set_` made, where PyTorch's gradients are silently wrong.
    let total = w.mul(&x)?.sum()?;
    let mut alias = Tensor::new([0.0f64])?;
    alias.set_(&x)?;
    alias.fill_(9.0)?;
    assert!(total.backward().unwrap_err().is_autograd());
    // Beside what was saved: an error by the version, none by the bytes.
    let part = x.slice(0, ..1)?;
    let w = leaf(&[1.0]);
    let by_version = w.mul(&part)?;
    let by_bytes = osteon_autograd::check_saved_bytes(|| w.mul(&part))?;
    x.slice(0, 1..)?.zero_()?;
    assert!(by_version.sum()?.backward().is_err());
    by_bytes.sum()?.backward()?;
    assert_eq!(gradient(&w), [9.0]);
    Ok(())
}

#[test]
fn a_second_pass_is_an_error_where_something_was_saved() -> Result<()> {
    let w = leaf(&[1.0, 2.0]);
    let twice = |y: Tensor| {
        y.backward()?;
        y.backward()
    };
    twice(w.add(&w)?.sum()?)?;
    for y in [
        w.mul(&w)?.sum()?,
        w.div(2.0)?.sum()?,
        w.exp()?.sum()?,
        w.relu()?.sum()?,
    ] {
        assert!(twice(y).unwrap_err().to_string().contains("second time"));
    }
    let y = w.mul(&w)?.sum()?;
    w.set_grad(None)?;
    y.backward_with(&Backward {
        retain_graph: true,
        ..Backward::default()
    })?;
    y.backward()?;
    assert_eq!(gradient(&w), [4.0, 8.0]);
    Ok(())
}

#[test]
fn saved_bytes_are_in_the_registry_and_go_with_the_pass() -> Result<()> {
    let x = leaf(&[0.5; 1000]);
    let y = x.exp()?;
    let id = y.storage().id();
    let line = line!() - 2;
    let total = y.sum()?;
    drop(y);
    let kept = osteon_memory::map();
    let storage = kept
        .storage(id)
        .expect("the result is kept for the derivative of exp");
    let saved = &storage.tensors[0];
    assert_eq!(
        (saved.role, saved.op, saved.site.line()),
        (osteon_memory::Role::Saved, "exp", line)
    );
    total.backward()?;
    assert!(osteon_memory::map().storage(id).is_none());
    Ok(())
}

#[test]
fn derivatives_of_derivatives_reach_saved_inputs_and_outputs() -> Result<()> {
    let x = leaf(&[0.5, 2.0]);
    let how = Grad {
        create_graph: true,
        ..Grad::default()
    };
    let first = |y: Tensor| {
        Ok::<_, osteon_spec::Error>(grad(&[&y.sum()?], &[&x], &how)?.remove(0).unwrap())
    };
    let cubed = first(x.mul(&x)?.mul(&x)?)?; // 3 x²
    assert_eq!(first(cubed)?.to_vec::<f64>()?, [3.0, 12.0]); // 6 x
    let e = first(first(x.exp()?)?)?;
    assert!(e.allclose(&x.exp()?, 1e-12, 0.0)?);
    Ok(())
}
