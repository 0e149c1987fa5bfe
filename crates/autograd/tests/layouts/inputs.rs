//! Inputs in every layout, and their elements by index arithmetic alone.

use num_complex::Complex;
use osteon_autograd::Tensor;
use osteon_spec::{DType, Result};

/// How an input lies in its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lay {
    Contiguous,
    Permuted,
    Stepped,
    Expanded,
    Sliced,
    Empty,
    Scalar,
}

/// Those that keep an input's shape.
pub const FULL: [Lay; 5] = [
    Lay::Contiguous,
    Lay::Permuted,
    Lay::Stepped,
    Lay::Expanded,
    Lay::Sliced,
];

/// A dtype, and whether NaN and infinities are among the elements.
pub const DTYPES: [(DType, bool); 10] = [
    (DType::F32, false),
    (DType::F32, true),
    (DType::F64, false),
    (DType::F16, false),
    (DType::BF16, true),
    (DType::I32, false),
    (DType::I64, false),
    (DType::U8, false),
    (DType::Bool, false),
    (DType::C64, false),
];

enum Fill {
    Numbers,
    /// Between 0 and 1.
    Shares,
    /// 0 and 1, int64.
    Indices,
    Mask,
}

/// What an input of a row is, by its name there.
fn named(name: &str) -> (&'static [usize], Fill) {
    match name {
        "x" | "y" | "z" => (&[4, 3, 4], Fill::Numbers),
        "e" | "f" => (&[4, 3, 4], Fill::Shares),
        "i" => (&[4, 3, 4], Fill::Indices),
        "m" => (&[4, 3, 4], Fill::Mask),
        "a" => (&[4, 3], Fill::Numbers),
        "b" => (&[3, 4], Fill::Numbers),
        "s" | "c" => (&[4, 4], Fill::Numbers),
        "p" => (&[2, 4, 3], Fill::Numbers),
        "q" => (&[2, 3, 4], Fill::Numbers),
        "r" => (&[2, 4, 4], Fill::Numbers),
        "v" | "w" => (&[4], Fill::Numbers),
        "h" | "g" => (&[3], Fill::Numbers),
        "o" => (&[3], Fill::Shares),
        "n" => (&[3], Fill::Indices),
        "k" => (&[4], Fill::Indices),
        "image" => (&[2, 4, 6, 5], Fill::Numbers),
        "kernel" => (&[2, 4, 3, 2], Fill::Numbers),
        "line" => (&[2, 4, 6], Fill::Numbers),
        "taps" => (&[2, 4, 3], Fill::Numbers),
        other => panic!("no input is called {other}"),
    }
}

/// A contiguous tensor of numbers that depend on their place and on `seed`.
fn base(
    shape: &[usize],
    fill: &Fill,
    (dtype, special): (DType, bool),
    seed: usize,
) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let places = (0..count).map(|i| (i + 5 * seed) * 37 % 41);
    let (values, dtype): (Vec<f64>, _) = match fill {
        Fill::Indices => (places.map(|p| (p % 2) as f64).collect(), DType::I64),
        Fill::Mask => (places.map(|p| (p % 2) as f64).collect(), DType::Bool),
        Fill::Shares => (places.map(|p| p as f64 / 41.0).collect(), dtype),
        Fill::Numbers if dtype == DType::Bool => {
            (places.map(|p| (p % 3 % 2) as f64).collect(), dtype)
        }
        Fill::Numbers if dtype == DType::U8 => (places.map(|p| (p / 4) as f64).collect(), dtype),
        Fill::Numbers if dtype == DType::C64 => {
            let number = |p| Complex::new(p as f64 / 4.0 - 5.0, (p % 7) as f64 - 3.0);
            return Tensor::from_vec(places.map(number).collect(), shape)?.to(dtype);
        }
        Fill::Numbers => {
            let number = |p: usize| match p {
                3 if special => f64::NAN,
                11 if special => f64::INFINITY,
                23 if special => f64::NEG_INFINITY,
                _ => p as f64 / 4.0 - 5.0,
            };
            (places.map(number).collect(), dtype)
        }
    };
    Tensor::from_vec(values, shape)?.to(dtype)
}

/// The input of this name in a layout, its last dim so many times as long.
pub fn input(
    name: &str,
    dtype: (DType, bool),
    lay: Lay,
    seed: usize,
    times: usize,
) -> Result<Tensor> {
    let (shape, fill) = named(name);
    let mut shape = shape.to_vec();
    let rank = shape.len();
    shape[rank - 1] *= times;
    match lay {
        Lay::Contiguous => base(&shape, &fill, dtype, seed),
        Lay::Permuted => {
            shape.reverse();
            let order: Vec<isize> = (0..rank as isize).rev().collect();
            base(&shape, &fill, dtype, seed)?.permute(order)
        }
        Lay::Stepped => {
            shape[rank - 1] *= 2;
            base(&shape, &fill, dtype, seed)?.slice_step(-1, 1.., 2)
        }
        Lay::Expanded => {
            let sizes: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
            shape[0] = 1;
            base(&shape, &fill, dtype, seed)?.expand(sizes)
        }
        Lay::Sliced => {
            let last = shape[rank - 1] as isize;
            shape[0] += 2;
            shape[rank - 1] += 1;
            let x = base(&shape, &fill, dtype, seed)?;
            let x = x.slice(0, 2..)?.slice(-1, 1..)?;
            // A vector grew by both.
            x.slice(-1, ..last)
        }
        Lay::Empty => base(&shape, &fill, dtype, seed)?.slice(0, 1..1),
        Lay::Scalar => base(&[5], &fill, dtype, seed)?.select(0, 3),
    }
}

/// A tensor's elements in row-major order.
#[derive(Debug)]
pub enum Elements {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Complex(Vec<Complex<f64>>),
}

/// The elements found by plain index enumeration in the storage read as one vector.
pub fn walk(x: &Tensor) -> Result<Elements> {
    let mut places = vec![x.storage_offset()];
    for (&size, &stride) in x.shape().iter().zip(x.stride()) {
        places = places
            .iter()
            .flat_map(|p| (0..size).map(move |i| p + i * stride))
            .collect();
    }
    let span = places.iter().max().map_or(0, |p| p + 1);
    let storage = x.as_strided([span as isize], [1], Some(0))?;
    fn pick<T: Copy>(all: &[T], places: &[usize]) -> Vec<T> {
        places.iter().map(|&p| all[p]).collect()
    }
    Ok(if x.dtype().is_complex() {
        Elements::Complex(pick(&storage.to(DType::C128)?.to_vec()?, &places))
    } else if x.dtype().is_float() {
        Elements::Real(pick(&storage.to(DType::F64)?.to_vec()?, &places))
    } else {
        Elements::Whole(pick(&storage.to(DType::I64)?.to_vec()?, &places))
    })
}

/// A contiguous twin of a tensor, made of its elements.
pub fn twin(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    match walk(x)? {
        Elements::Whole(all) => Tensor::from_vec(all, shape),
        Elements::Real(all) => Tensor::from_vec(all, shape),
        Elements::Complex(all) => Tensor::from_vec(all, shape),
    }?
    .to(x.dtype())
}

fn same_float(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * a.abs().max(1.0)
}

/// Whether the elements are the same: NaN is NaN, and numbers may differ by `tolerance`, relative above 1.
pub fn same(a: &Elements, b: &Elements, tolerance: f64) -> bool {
    let near = |a: &f64, b: &f64| same_float(*a, *b, tolerance);
    match (a, b) {
        (Elements::Whole(a), Elements::Whole(b)) => a == b,
        (Elements::Real(a), Elements::Real(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b))
        }
        (Elements::Complex(a), Elements::Complex(b)) => {
            let close =
                |(a, b): (&Complex<f64>, &Complex<f64>)| near(&a.re, &b.re) && near(&a.im, &b.im);
            a.len() == b.len() && a.iter().zip(b).all(close)
        }
        _ => false,
    }
}
