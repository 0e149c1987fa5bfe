//! Recorded answers as tensors.

#![allow(dead_code)] // each test uses some

use osteon::{DType, Device, Result, Tensor};
use serde_json::Value;
use std::path::Path;

/// A file of recorded answers.
pub fn recorded(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    let number = |x: &Value| match x {
        Value::Bool(b) => f64::from(u8::from(*b)),
        x => x.as_f64().unwrap(),
    };
    value.as_array().unwrap().iter().map(number).collect()
}

/// A recorded tensor in the dtype of its values: `bool`, `int64`, `float64`.
pub fn tensor(value: &Value) -> Result<Tensor> {
    let shape: Vec<usize> = numbers(&value["shape"])
        .into_iter()
        .map(|n| n as usize)
        .collect();
    let values = value["values"].as_array().unwrap();
    let dtype = match values.first() {
        Some(Value::Bool(_)) => DType::Bool,
        Some(x) if x.is_i64() => DType::I64,
        _ => DType::F64,
    };
    Tensor::from_vec(numbers(&value["values"]), shape)?.to(dtype)
}

/// Asserts that a tensor has the recorded shape and values.
#[track_caller]
pub fn assert_close(what: &str, ours: &Tensor, recorded: &Value, tolerance: f64) {
    let theirs = tensor(recorded).unwrap();
    assert_eq!(ours.shape(), theirs.shape(), "{what}");
    let ours = ours.to(DType::F64).unwrap();
    let theirs = theirs.to(DType::F64).unwrap();
    let close = ours.allclose(&theirs, tolerance, tolerance).unwrap();
    assert!(close, "{what}: {ours} instead of {theirs}");
}

pub fn cpu() -> Device {
    Device::cpu()
}
