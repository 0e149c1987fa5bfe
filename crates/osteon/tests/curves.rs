//! The examples' models, trained from the weights and batches that PyTorch's recorded curves had.

#![allow(clippy::duplicate_mod)] // what the examples share is a module of each

mod common;

#[allow(dead_code)]
#[path = "../examples/char_transformer.rs"]
mod char_transformer;
#[allow(dead_code)]
#[path = "../examples/digits.rs"]
mod digits;

use common::{numbers, recorded};
use osteon::nn::functional::{Classes, cross_entropy};
use osteon::nn::{Layer, Module};
use osteon::optim::{AdamW, OneCycleLR, Optimizer, Scheduler, clip_grad_norm_};
use osteon::{DType, Result, Tensor, memory, no_grad};

/// Weights that need no file: waves, by the number of the parameter and of the element.
fn formula(model: &impl Module) -> Result<()> {
    for (k, (name, p)) in model.named_parameters().into_iter().enumerate() {
        let wave = |i: usize| (0.7 * i as f64 + k as f64).sin();
        let value = |i: usize| match p.shape() {
            [_, last] => wave(i) / (*last as f64).sqrt(),
            _ if name.ends_with("weight") => 0.1 * wave(i) + 1.0,
            _ => 0.1 * wave(i),
        };
        let values: Vec<f64> = (0..p.numel()).map(value).collect();
        no_grad(|| p.copy_(&Tensor::from_slice(&values, p.shape())?))?;
    }
    Ok(())
}

#[track_caller]
fn assert_curve(what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len());
    for (step, (a, b)) in ours.iter().zip(theirs).enumerate() {
        let close = (a - b).abs() <= tolerance * b.abs();
        assert!(close, "{what} of step {step}: {a} instead of {b}\n{ours:?}");
    }
}

#[test]
fn the_digits_losses_are_pytorchs() -> Result<()> {
    let (images, labels) = digits::digits()?;
    assert_eq!(
        (images.shape(), labels.shape()),
        (&[1797, 64][..], &[1797][..])
    );
    let model = digits::Mlp::new(64, 64, 10)?;
    formula(&model)?;
    let mut optimizer = Optimizer::new(
        model.parameters(),
        AdamW {
            lr: 0.01,
            ..AdamW::default()
        },
    )?;
    let mut losses = Vec::new();
    let pairs = images.split(64, 0)?.into_iter().zip(labels.split(64, 0)?);
    for (x, y) in pairs.take(28) {
        let loss = cross_entropy(&model.forward(&x)?, &y, &Classes::default())?;
        optimizer.zero_grad()?;
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f64>()?);
    }
    assert_curve(
        "loss",
        &losses,
        &numbers(&recorded("curves.json")["digits"]),
        2e-4,
    );
    Ok(())
}

#[test]
fn the_transformers_losses_are_pytorchs() -> Result<()> {
    let text = char_transformer::text()?;
    let model = char_transformer::CharTransformer::new(text.letters.len(), 16, 32, 4, 2)?;
    formula(&model)?;
    let parameters = model.parameters();
    let how = AdamW {
        lr: 3e-3,
        weight_decay: 0.1,
        ..AdamW::default()
    };
    let mut optimizer = Optimizer::new(&parameters, how)?;
    let cycle = OneCycleLR {
        max_lr: 3e-3,
        total_steps: 20,
        ..OneCycleLR::default()
    };
    let mut schedule = Scheduler::new(&mut optimizer, cycle)?;
    let (mut losses, mut norms) = (Vec::new(), Vec::new());
    let last = text.codes.numel() as i64 - 17;
    for step in 0..20 {
        let starts: Vec<i64> = (0..8).map(|row| (step * 97 + row * 331) % last).collect();
        let (x, y) = char_transformer::batch(&text.codes, &starts, 16)?;
        let scores = model.forward(&x)?.flatten(0, 1)?;
        let loss = cross_entropy(&scores, &y.flatten(0, -1)?, &Classes::default())?;
        optimizer.zero_grad()?;
        loss.backward()?;
        norms.push(clip_grad_norm_(&parameters, 1.0, 2.0)?.item::<f64>()?);
        optimizer.step()?;
        schedule.step(&mut optimizer)?;
        losses.push(loss.item::<f64>()?);
    }
    let curves = recorded("curves.json");
    assert_curve("loss", &losses, &numbers(&curves["text"]["loss"]), 2e-4);
    assert_curve(
        "gradients' norm",
        &norms,
        &numbers(&curves["text"]["norm"]),
        2e-3,
    );
    Ok(())
}

#[test]
fn a_graph_is_told_apart_by_module() -> Result<()> {
    let text = char_transformer::text()?;
    let model = char_transformer::CharTransformer::new(text.letters.len(), 16, 32, 4, 2)?;
    let (x, _) = char_transformer::batch(&text.codes, &[0, 7], 16)?;
    let scores = model.forward(&x)?;
    let map = memory::map();
    let inside = |path: &str| {
        let storages = map.storages.iter().filter(|s| s.scope.path() == path);
        storages.map(|s| s.nbytes).sum::<usize>()
    };
    // Kept for the backward pass: what linear1 made of 2 · 16 letters, 4 · 32 wide, and their queries, keys and values.
    assert!(inside("blocks.1.linear1") >= 2 * 16 * 128 * 4);
    assert!(inside("blocks.0.self_attn") >= 2 * 16 * 3 * 32 * 4);
    assert_eq!(scores.dtype(), DType::F32);
    Ok(())
}
