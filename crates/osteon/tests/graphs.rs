//! Bytes that graphs of derivatives keep, traced to the lines that keep them.

use osteon::memory::{self, HeldBy, Holder, Step};
use osteon::{DType, Device, Result, Tensor};
use std::sync::{Mutex, MutexGuard};

const HERE: &str = file!();

/// Limits and steps are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// A weight of 1 MiB that requires a gradient.
fn weight() -> Result<Tensor> {
    let w = Tensor::ones([512, 512], DType::F32, &Device::cpu())?.named("weight");
    w.requires_grad_(true)?;
    Ok(w)
}

/// The loop that everybody writes once: the sum keeps each step's graph.
#[test]
fn a_summed_loss() -> Result<()> {
    let _alone = alone();
    let w = weight()?;
    let mut total = Tensor::new(0f32)?;
    let (mut forward, mut added) = (0, 0);
    let mut told = String::new();
    for _ in 0..6 {
        forward = line!() + 1;
        let loss = w.exp()?.sum()?; // the result of exp is saved
        added = line!() + 1;
        total = total.add(&loss)?;
        told = memory::step().to_string();
    }
    // The growth leads to the line that makes the bytes, the one that saves them, and the one that keeps them all.
    assert!(told.contains("+1 MiB a step  exp at"), "{told}");
    for line in [
        format!("exp at {HERE}:{forward}"),
        format!("held by the graph: saved for backward by exp at {HERE}:{forward}"),
        format!("in the graph of add at {HERE}:{added}"),
    ] {
        assert!(told.contains(&line), "{line} in\n{told}");
    }
    let map = memory::map();
    let graph = map.graph()?;
    assert_eq!((graph[0].storages, graph[0].bytes), (6, 6 << 20));
    assert!(map.to_string().contains(&format!(
        "     6 MiB  6 storages  saved for backward by exp at {HERE}:{forward}"
    )));
    // The sum holds them all: six results, and numbers.
    assert!((6 << 20..6 << 20 | 4096).contains(&memory::retained(&total)?));
    let first = &memory::dominators()?.entries[0];
    assert_eq!((first.tensor.op, first.tensor.site.line()), ("add", added));
    // Out of memory, the report says the same.
    memory::set_limit(&Device::cpu(), Some(12 << 20));
    let error = Tensor::zeros([6 << 20], DType::U8, &Device::cpu()).unwrap_err();
    memory::set_limit(&Device::cpu(), None);
    let text = error.to_string();
    for line in [
        "\n  verdict      held by graphs: 6 MiB are kept for backward passes alone\n",
        &format!("\n     6 MiB  6 storages  exp at {HERE}:{forward}\n"),
        &format!("            held by the graph: saved for backward by exp at {HERE}:{forward}\n"),
        &format!("            in the graph of add at {HERE}:{added}\n"),
        "\nwhat helps: keep item() or detach() of a result, not the result with its graph",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    // As advised: without its graph, the sum keeps nothing.
    total = total.detach()?;
    assert!(memory::map().graph()?.is_empty());
    assert_eq!(memory::retained(&total)?, 64);
    Ok(())
}

/// What a node saved goes when the sweep has passed it.
#[test]
fn backward_frees_what_was_saved() -> Result<()> {
    let _alone = alone();
    let w = weight()?;
    let loss = w.exp()?.sum()?;
    assert_eq!(memory::map().graph()?.len(), 1);
    loss.backward()?;
    assert!(memory::map().graph()?.is_empty());
    // The gradient is the weight's.
    let grad = w.grad().expect("a gradient");
    let held = memory::holders(&grad)?;
    assert!(held.holders.iter().any(|h| matches!(
        h, Holder::Tensor { tensor, path } if tensor.label.as_deref() == Some("weight") && path.len() == 1
    )), "{held}");
    Ok(())
}

/// The way from a tensor through its graph to what an operation saved.
#[test]
fn the_way_through_the_graph() -> Result<()> {
    let _alone = alone();
    let w = weight()?;
    let line = line!() + 1;
    let y = w.mul(&w)?.sin()?;
    let held = memory::holders(&w)?;
    let ways: Vec<_> = held
        .holders
        .iter()
        .filter_map(|h| match h {
            Holder::Tensor { tensor, path } => Some((tensor.op, path)),
            _ => None,
        })
        .collect();
    assert!(ways[0].0 == "ones" && ways[0].1.is_empty());
    let (op, path) = &ways[1];
    let ops: Vec<_> = path
        .iter()
        .map(|step| match step {
            Step::Node { op, site } => {
                assert_eq!(site.line(), line);
                (*op, false)
            }
            Step::Tensor(t) => (t.op, true),
        })
        .collect();
    assert_eq!(
        (*op, ops),
        ("sin", vec![("sin", false), ("mul", false), ("mul", true)])
    );
    // The product is the graph's alone.
    let product = &memory::map().graph()?[0];
    assert!(matches!(product.held, HeldBy::Graph { op: "sin", site } if site.line() == line));
    drop(y);
    Ok(())
}
