//! Layers against PyTorch's recorded results, gradients and buffers.

mod common;

use common::{assert_close, recorded, tensor};
use osteon::nn::functional::{Conv, Padding};
use osteon::nn::{
    BatchNorm, Conv1d, Conv2d, Embedding, EncoderOptions, Layer, LayerNorm, Linear, Masks, Module,
    MultiheadAttention, RMSNorm, StateDict, TransformerEncoderLayer, build_in,
};
use osteon::{DType, Device, Result, Tensor};
use serde_json::Value;

fn state(case: &Value, key: &str) -> Result<StateDict> {
    let entries = case[key].as_object().unwrap().iter();
    entries
        .map(|(name, value)| Ok((name.clone(), tensor(value)?)))
        .collect()
}

fn conv<const N: usize>(o: &Value) -> Conv<N> {
    let all = |name: &str| [o[name].as_i64().unwrap() as isize; N];
    Conv {
        stride: all("stride"),
        padding: Padding::Zeros(all("padding")),
        dilation: all("dilation"),
        groups: o["groups"].as_i64().unwrap() as isize,
    }
}

/// Loads the recorded state, runs the recorded steps, and compares results, gradients and the state after.
fn check<M: Module>(
    case: &Value,
    module: M,
    forward: impl Fn(&M, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<()> {
    let what = format!("{} {}", case["kind"], case["options"]);
    module.load_state_dict(&state(case, "state")?)?;
    if case["evaluate"] == true {
        module.eval();
    }
    let inputs: Vec<Tensor> = case["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(tensor)
        .collect::<Result<_>>()?;
    for x in inputs.iter().filter(|x| x.dtype().is_float()) {
        x.requires_grad_(true)?;
    }
    let mut outputs = Vec::new();
    for _ in 0..case["steps"].as_u64().unwrap() {
        outputs = forward(&module, &inputs)?;
    }
    for (ours, theirs) in outputs.iter().zip(case["outputs"].as_array().unwrap()) {
        assert_close(&what, ours, theirs, 1e-10);
    }
    outputs[0]
        .mul(&tensor(&case["weight"])?)?
        .sum()?
        .backward()?;
    for (x, g) in inputs
        .iter()
        .zip(case["input_gradients"].as_array().unwrap())
    {
        if !g.is_null() {
            assert_close(
                &format!("{what}: gradient of the input"),
                &x.grad().unwrap(),
                g,
                1e-9,
            );
        }
    }
    let gradients = case["gradients"].as_object().unwrap();
    let parameters = module.named_parameters();
    assert_eq!(parameters.len(), gradients.len(), "{what}");
    for (name, parameter) in parameters {
        assert_close(
            &format!("{what}: gradient of {name}"),
            &parameter.grad().unwrap(),
            &gradients[&name],
            1e-9,
        );
    }
    let after = case["after"].as_object().unwrap();
    for (name, tensor) in module.state_dict() {
        assert_close(
            &format!("{what}: {name} after"),
            &tensor.detach()?,
            &after[&name],
            1e-10,
        );
    }
    Ok(())
}

fn layer<L: Layer>(case: &Value, layer: L) -> Result<()> {
    check(case, layer, |layer, inputs| {
        Ok(vec![layer.forward(&inputs[0])?])
    })
}

fn run(case: &Value) -> Result<()> {
    let o = &case["options"];
    match case["kind"].as_str().unwrap() {
        "Linear" if o["bias"] == false => layer(case, Linear::new(3, 4)?.without_bias()),
        "Linear" => layer(case, Linear::new(3, 4)?),
        "Embedding" => layer(case, Embedding::new(6, 3)?),
        "LayerNorm" => layer(case, LayerNorm::new([2, 3])?),
        "RMSNorm" => layer(case, RMSNorm::new([3])?),
        "BatchNorm1d" => {
            let mut norm = BatchNorm::<1>::new(3)?;
            if o.get("momentum").is_some() {
                norm.momentum = None;
            }
            layer(case, norm)
        }
        "BatchNorm2d" => layer(case, BatchNorm::<2>::new(3)?),
        "Conv1d" => layer(case, Conv1d::new(4, 6, [3], conv(o))?),
        "Conv2d" if o["groups"] == 1 => layer(case, Conv2d::new(2, 3, [3, 3], conv(o))?),
        "Conv2d" => layer(case, Conv2d::new(4, 4, [3, 3], conv(o))?),
        "MultiheadAttention" => attention(case),
        _ => encoder(case),
    }
}

fn causal() -> Result<Tensor> {
    Tensor::ones([5, 5], DType::Bool, &Device::cpu())?.triu(1)
}

fn attention(case: &Value) -> Result<()> {
    let o = &case["options"];
    let kind = o["masks"].as_str().unwrap();
    let mut module = MultiheadAttention::new(8, if kind == "causal" { 4 } else { 2 })?;
    module.batch_first = o["batch_first"] == true;
    let attn_mask = match kind {
        "causal" => Some(causal()?),
        "added" => Some(tensor(&o["added"])?),
        _ => None,
    };
    let f = false;
    let padding = Tensor::new([[f; 5], [f, f, f, true, true], [f, f, f, f, true]])?;
    let masks = Masks {
        attn_mask: attn_mask.as_ref(),
        key_padding_mask: (kind == "padding").then_some(&padding),
        is_causal: false,
    };
    check(case, module, |module, x| {
        let (k, v) = if x.len() == 3 {
            (&x[1], &x[2])
        } else {
            (&x[0], &x[0])
        };
        let (again, weights) = module.forward_with_weights(&x[0], k, v, &masks)?;
        let out = module.forward(&x[0], k, v, &masks)?;
        assert!(again.allclose(&out, 1e-12, 1e-12)?);
        if kind == "causal" {
            let by_itself = Masks {
                is_causal: true,
                ..Masks::default()
            };
            let twice = Masks {
                is_causal: true,
                ..masks
            };
            for masks in [by_itself, twice] {
                let same = module.forward(&x[0], k, v, &masks)?;
                assert!(same.allclose(&out, 1e-12, 1e-12)?);
            }
        }
        Ok(vec![out, weights])
    })
}

fn encoder(case: &Value) -> Result<()> {
    let o = &case["options"];
    let how = EncoderOptions {
        dim_feedforward: 12,
        dropout: 0.0,
        activation: if o["activation"] == "gelu" {
            Tensor::gelu
        } else {
            Tensor::relu
        },
        norm_first: o["norm_first"] == true,
        batch_first: o["batch_first"] == true,
        ..EncoderOptions::default()
    };
    let mask = causal()?;
    let masks = Masks {
        attn_mask: (o["causal"] == true).then_some(&mask),
        ..Masks::default()
    };
    check(
        case,
        TransformerEncoderLayer::new(8, 2, &how)?,
        |layer, x| Ok(vec![layer.forward_masked(&x[0], &masks)?]),
    )
}

#[test]
fn layers_are_pytorchs() {
    let file = recorded("modules.json");
    let cases = file.as_array().unwrap();
    assert_eq!(cases.len(), 18);
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let result = build_in(DType::F64, &Device::cpu(), || run(case));
            result
                .err()
                .map(|e| format!("{} {}: {e}", case["kind"], case["options"]))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
