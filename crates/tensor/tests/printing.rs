//! The text of tensors, against texts recorded from PyTorch 2.15.

use osteon_spec::{DType, Scalar};
use osteon_tensor::format::{PrintOptions, Printed, get_printoptions, set_printoptions};
use serde_json::Value;
use std::cell::Cell;

/// One case a line: `values`, repeated as often as `sizes` need, printed under `options`.
const CASES: &str = include_str!("data/printing.jsonl");

fn scalar(text: &str, dtype: DType) -> Scalar {
    let float = |text: &str| text.parse::<f64>().unwrap();
    if dtype == DType::Bool {
        Scalar::Bool(text == "True")
    } else if dtype.is_complex() {
        let (re, im) = text.split_once(',').unwrap();
        Scalar::Complex(float(re), float(im))
    } else if dtype.is_float() {
        Scalar::Float(float(text))
    } else if dtype.is_signed() {
        Scalar::Int(text.parse().unwrap())
    } else {
        Scalar::UInt(text.parse().unwrap())
    }
}

fn options(case: &Value) -> PrintOptions {
    let mut options = match case["profile"].as_str() {
        None | Some("default") => PrintOptions::default(),
        Some("short") => PrintOptions::short(),
        Some("full") => PrintOptions::full(),
        Some(other) => panic!("unknown profile {other}"),
    };
    let number = |name: &str| case[name].as_u64().map(|n| n as usize);
    if let Some(n) = number("precision") {
        options.precision = u8::try_from(n).unwrap();
    }
    if let Some(n) = number("threshold") {
        options.threshold = n;
    }
    if let Some(n) = number("edgeitems") {
        options.edgeitems = n;
    }
    if let Some(n) = number("linewidth") {
        options.linewidth = n;
    }
    options.sci_mode = case["sci_mode"].as_bool();
    options
}

/// Our text and PyTorch's for one recorded case, if they differ.
fn mismatch(line: &str) -> Option<(String, String)> {
    let case: Value = serde_json::from_str(line).unwrap();
    let dtype = DType::from_name(case["dtype"].as_str().unwrap()).unwrap();
    let sizes: Vec<usize> = serde_json::from_value(case["sizes"].clone()).unwrap();
    let values: Vec<Scalar> = case["values"]
        .as_str()
        .unwrap()
        .split_whitespace()
        .map(|text| scalar(text, dtype))
        .collect();
    let get = |index: &[usize]| {
        let position = index.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i);
        values[position % values.len()]
    };
    let printed = Printed {
        sizes: &sizes,
        dtype,
        get: &get,
        requires_grad: case["requires_grad"].as_bool().unwrap_or(false),
        grad_fn: case["grad_fn"].as_str(),
        device_suffix: case["device"].as_str(),
    };
    let mut text = String::new();
    printed
        .write(&mut text, &options(&case["options"]))
        .unwrap();
    let want = case["text"].as_str().unwrap();
    (text != want).then(|| (text, want.to_owned()))
}

#[test]
fn every_text_is_pytorchs() {
    let mut cases = 0;
    for line in CASES.lines() {
        cases += 1;
        if let Some((text, want)) = mismatch(line) {
            panic!("{line}\nprinted:\n{text}\nPyTorch:\n{want}");
        }
    }
    assert!(cases >= 600, "only {cases} cases");
}

#[test]
fn a_summary_fetches_only_what_it_shows() {
    let fetched = Cell::new(0);
    let huge = Printed {
        sizes: &[1 << 20, 1 << 20, 1 << 20],
        dtype: DType::I64,
        get: &|_| {
            fetched.set(fetched.get() + 1);
            Scalar::Int(7)
        },
        requires_grad: false,
        grad_fn: None,
        device_suffix: None,
    };
    let mut text = String::new();
    huge.write(&mut text, &PrintOptions::default()).unwrap();
    assert!(text.starts_with("tensor([[[7, 7, 7,  ..., 7, 7, 7],\n"));
    assert!(fetched.get() <= 3 * 6 * 6 * 6, "{} fetched", fetched.get());
}

#[test]
fn options_beyond_reason_do_no_harm() {
    let tensor = Printed {
        sizes: &[3],
        dtype: DType::F32,
        get: &|index| Scalar::Float(index[0] as f64 + 0.5),
        requires_grad: false,
        grad_fn: None,
        device_suffix: None,
    };
    for sci_mode in [None, Some(true)] {
        let options = PrintOptions {
            precision: u8::MAX,
            threshold: 0,
            edgeitems: usize::MAX,
            linewidth: usize::MAX,
            sci_mode,
        };
        let mut text = String::new();
        tensor.write(&mut text, &options).unwrap();
        assert!(text.len() > 3 * usize::from(u8::MAX));
    }
}

/// The one test that prints with the options of the process.
#[test]
fn display_follows_set_printoptions() {
    let third = Printed {
        sizes: &[],
        dtype: DType::F64,
        get: &|_| Scalar::Float(1.0 / 3.0),
        requires_grad: false,
        grad_fn: None,
        device_suffix: None,
    };
    assert_eq!(third.to_string(), "tensor(0.3333, dtype=torch.float64)");
    set_printoptions(PrintOptions::short());
    assert_eq!(get_printoptions(), PrintOptions::short());
    assert_eq!(third.to_string(), "tensor(0.33, dtype=torch.float64)");
    assert_eq!(format!("{third:?}"), third.to_string());
    set_printoptions(PrintOptions::default());
    assert_eq!(third.to_string(), "tensor(0.3333, dtype=torch.float64)");
}
