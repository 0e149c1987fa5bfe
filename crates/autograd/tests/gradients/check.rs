//! Gradients against differences: first ones, and those of the gradients themselves.

use osteon_autograd::{Grad, Tensor, grad};
use osteon_spec::{DType, Device, Result};

const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 2e-6;

/// Checks the derivative of `f` at `inputs`, tensors of float64 or complex128 with any strides, and the derivative of
/// that derivative, against central differences.
#[track_caller]
pub fn check(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    checked(inputs, &f, true).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// The same of the first derivative alone: where the second is not defined.
#[track_caller]
pub fn check_first(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    checked(inputs, &f, false).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Numbers that repeat for each call: not near zero, and no two alike.
pub fn numbers<const N: usize>(shape: [usize; N]) -> Tensor {
    let n: usize = shape.iter().product();
    let number = |i: usize| {
        let x = 0.3 + (i as f64 * 0.7390851 + shape.len() as f64 * 0.31).fract();
        if i % 3 == 1 { -x } else { x }
    };
    Tensor::from_vec((0..n).map(number).collect::<Vec<f64>>(), shape).expect("memory")
}

/// [`numbers`], complex ones.
pub fn complex<const N: usize>(shape: [usize; N]) -> Tensor {
    let n: usize = shape.iter().product();
    let parts = numbers([2 * n]).to_vec::<f64>().expect("numbers");
    of_parts(&parts, &shape, DType::C128).expect("memory")
}

/// The same numbers in several layouts: row-major, transposed, with gaps, expanded along dim 0.
pub fn layouts(t: &Tensor) -> Vec<Tensor> {
    let lay = || -> Result<Vec<Tensor>> {
        let mut list = vec![t.clone()];
        if t.dim() >= 2 {
            list.push(
                t.transpose(0, -1)?
                    .copy_in(osteon_spec::MemoryFormat::Contiguous)?
                    .transpose(0, -1)?,
            );
        }
        if t.dim() >= 1 && t.numel() > 0 {
            let wide: Vec<usize> = t.shape().iter().map(|n| 2 * n + 1).collect();
            let mut gaps = t.new_zeros(wide)?;
            for d in 0..t.dim() {
                gaps = gaps.slice_step(d as isize, 1.., 2)?;
            }
            gaps.copy_(t)?;
            list.push(gaps);
            list.push(
                t.narrow(0, 0, 1)?
                    .expand(t.shape().iter().map(|&n| n as isize).collect::<Vec<_>>())?,
            );
        }
        Ok(list)
    };
    lay().expect("memory")
}

/// Two tensors in several pairs of their [`layouts`], each layout at least once.
pub fn pairs(a: &Tensor, b: &Tensor, f: impl Fn(&str, &[Tensor; 2])) {
    let (a, b) = (layouts(a), layouts(b));
    for k in 0..a.len().max(b.len()) {
        let (i, j) = (k % a.len(), (2 * k) % b.len());
        f(&format!("{i} and {j}"), &[a[i].clone(), b[j].clone()]);
        let (i, j) = ((k + 1) % a.len(), k % b.len());
        f(&format!("{i} and {j}"), &[a[i].clone(), b[j].clone()]);
    }
}

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

fn checked(inputs: &[Tensor], f: Function<'_>, twice: bool) -> std::result::Result<(), String> {
    let said = |e: osteon_spec::Error| e.to_string();
    let leaves = leaves(inputs).map_err(said)?;
    let out = f(&leaves).map_err(said)?;
    let weights = weights(&out, 1).map_err(said)?;
    let first = gradients(&[out], &[weights], &leaves, twice).map_err(said)?;
    let loss = |xs: &[Tensor]| -> Result<f64> {
        let out = f(xs)?;
        Ok(dot(&parts(&out)?, &parts(&self::weights(&out, 1)?)?))
    };
    compare(inputs, &first, loss, "gradient")?;
    if !twice {
        return Ok(());
    }
    let second_weights: Vec<Tensor> = first
        .iter()
        .map(|g| self::weights(g, 2))
        .collect::<Result<_>>()
        .map_err(said)?;
    let (mut outs, mut of_outs) = (Vec::new(), Vec::new());
    for (g, w) in first.iter().zip(&second_weights) {
        if g.requires_grad() {
            outs.push(g.clone());
            of_outs.push(w.clone());
        }
    }
    let second = gradients(&outs, &of_outs, &leaves, false).map_err(said)?;
    let slope = |xs: &[Tensor]| -> Result<f64> {
        let leaves = self::leaves(xs)?;
        let out = f(&leaves)?;
        let w = self::weights(&out, 1)?;
        let first = gradients(&[out], &[w], &leaves, false)?;
        let terms = first.iter().zip(&second_weights);
        terms.map(|(g, w)| Ok(dot(&parts(g)?, &parts(w)?))).sum()
    };
    compare(inputs, &second, slope, "second gradient")
}

/// Tensors over the same memory that require gradients.
fn leaves(of: &[Tensor]) -> Result<Vec<Tensor>> {
    let leaf = |t: &Tensor| {
        let leaf = t.detach()?;
        leaf.requires_grad_(true)?;
        Ok(leaf)
    };
    of.iter().map(leaf).collect()
}

/// The gradients of all inputs; zeros for one that has none.
fn gradients(
    outs: &[Tensor],
    weights: &[Tensor],
    inputs: &[Tensor],
    create_graph: bool,
) -> Result<Vec<Tensor>> {
    let how = Grad {
        gradients: Some(&weights.iter().collect::<Vec<_>>()),
        create_graph,
        allow_unused: true,
        ..Grad::default()
    };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let outs: Vec<&Tensor> = outs.iter().filter(|t| t.requires_grad()).collect();
    let found = if outs.is_empty() {
        vec![None; inputs.len()]
    } else {
        grad(&outs, &inputs, &how)?
    };
    let or_zeros = |(g, x): (Option<Tensor>, &&Tensor)| match g {
        Some(g) => Ok(g),
        None => x.zeros_like(None),
    };
    found.into_iter().zip(&inputs).map(or_zeros).collect()
}

/// Every number of every input, a little larger and a little smaller, against the gradients.
fn compare(
    inputs: &[Tensor],
    gradients: &[Tensor],
    f: impl Fn(&[Tensor]) -> Result<f64>,
    what: &str,
) -> std::result::Result<(), String> {
    let said = |e: osteon_spec::Error| e.to_string();
    let mut values = inputs
        .iter()
        .map(parts)
        .collect::<Result<Vec<_>>>()
        .map_err(said)?;
    for (i, gradient) in gradients.iter().enumerate() {
        if gradient.shape() != inputs[i].shape() || gradient.dtype() != inputs[i].dtype() {
            let (got, want) = (gradient.shape(), inputs[i].shape());
            return Err(format!("{what} {i} has shape {got:?}, want {want:?}"));
        }
        for (k, got) in parts(gradient).map_err(said)?.into_iter().enumerate() {
            let mut at = |value: f64| -> Result<f64> {
                values[i][k] = value;
                let of = |(x, v): (&Tensor, &Vec<f64>)| of_parts(v, x.shape(), x.dtype());
                f(&inputs
                    .iter()
                    .zip(&values)
                    .map(of)
                    .collect::<Result<Vec<_>>>()?)
            };
            let x = parts(&inputs[i]).map_err(said)?[k];
            let (above, below) = (at(x + STEP).map_err(said)?, at(x - STEP).map_err(said)?);
            values[i][k] = x;
            let want = (above - below) / (2.0 * STEP);
            // Not so for NaN.
            let close = (got - want).abs() <= TOLERANCE * (1.0 + want.abs());
            if !close {
                let shape = inputs[i].shape();
                return Err(format!(
                    "{what} of input {i} (shape {shape:?}, strides {:?}), number {k}: {got}, by differences {want}",
                    inputs[i].stride()
                ));
            }
        }
    }
    Ok(())
}

/// All real numbers in a tensor, in row-major order: two for each complex one.
fn parts(t: &Tensor) -> Result<Vec<f64>> {
    let t = t.detach()?;
    let real = if t.dtype().is_complex() {
        t.view_as_real()?
    } else {
        t
    };
    real.to_vec()
}

fn of_parts(parts: &[f64], shape: &[usize], dtype: DType) -> Result<Tensor> {
    let mut shape = shape.to_vec();
    if dtype.is_complex() {
        shape.push(2);
        return Tensor::from_slice(parts, shape)?.view_as_complex();
    }
    Tensor::from_slice(parts, shape)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A weight for each number of a tensor, so that no two errors cancel out.
fn weights(of: &Tensor, seed: usize) -> Result<Tensor> {
    let n = of.numel() * if of.dtype().is_complex() { 2 } else { 1 };
    let weight = |i: usize| 0.5 + (i as f64 * 0.618034 + seed as f64 * 0.271).fract();
    of_parts(
        &(0..n).map(weight).collect::<Vec<_>>(),
        of.shape(),
        of.dtype(),
    )
}

/// A check that cannot fail would be none.
#[test]
#[should_panic(expected = "by differences")]
fn a_wrong_gradient_is_found() {
    check("detached", &[numbers([3])], |x| {
        x[0].detach()?.sum()?.add(&x[0].sum()?.mul(0.5)?)
    });
}

#[test]
fn empty_tensors_and_numbers_are_fine() {
    let nothing = Tensor::zeros([0, 2], DType::F64, &Device::cpu()).expect("memory");
    check("sum of nothing", &[nothing], |x| x[0].sum_dims([0], false));
    check("sum of one", &[numbers([])], |x| x[0].sum());
}
