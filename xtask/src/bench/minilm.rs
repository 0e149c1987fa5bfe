//! Group H: a sentence encoder of six layers: its weights opened, and run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use osteon::functional::{Attention, embedding, linear, scaled_dot_product_attention};
use osteon::{DType, Device, Result, Tensor};

use super::sink::{Sink, case};

const WIDTH: usize = 384;
const HEADS: usize = 12;
const LAYERS: usize = 6;
const EPS: f64 = 1e-12;

pub fn run(sink: &mut Sink) -> Result<()> {
    let Some(folder) = std::env::var_os("MINILM").map(PathBuf::from) else {
        println!("H skipped: MINILM does not name the folder of the model");
        return Ok(());
    };
    let path = folder.join("model.safetensors");
    let at = |name| case(name, "minilm", 0.0, 0.0);
    sink.run(at("safetensors load_file (mmap)"), || {
        osteon::load(&path).map(drop)
    });
    sink.run(at("safetensors load_file + touch"), || {
        osteon::load(&path)?
            .values()
            .try_for_each(|t| t.to(DType::F32)?.sum().map(drop))
    });
    let model = Model {
        weights: osteon::load(&path)?,
    };
    for (batch, length) in [(8usize, 128usize), (1, 16)] {
        let ids = Tensor::arange(0, (batch * length) as i64, 1)?
            .mul(7)?
            .remainder(20_000)?
            .add(1000)?;
        let ids = ids.view([batch as isize, length as isize])?;
        let flops = {
            let (b, s) = (batch as f64, length as f64);
            6.0 * 2.0 * b * s * (4.0 * 384.0 * 384.0 + 2.0 * 384.0 * 1536.0)
                + 6.0 * 4.0 * b * s * s * 384.0
        };
        let params = format!("b{batch} s{length}");
        sink.run(case("bert fwd", &params, 0.0, flops), || {
            osteon::inference_mode(|| model.forward(&ids, false)).map(drop)
        });
        sink.run(case("bert fwd sdpa", &params, 0.0, flops), || {
            osteon::inference_mode(|| model.forward(&ids, true)).map(drop)
        });
    }
    Ok(())
}

struct Model {
    weights: BTreeMap<String, Tensor>,
}

impl Model {
    fn get(&self, name: &str) -> Result<&Tensor> {
        self.weights.get(name).ok_or_else(|| {
            osteon::Error::new(
                osteon::Kind::Value,
                format!("the model has no weight {name}"),
            )
        })
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        linear(
            x,
            self.get(&format!("{name}.weight"))?,
            Some(self.get(&format!("{name}.bias"))?),
        )
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let (weight, bias) = (
            self.get(&format!("{name}.weight"))?,
            self.get(&format!("{name}.bias"))?,
        );
        x.layer_norm([WIDTH], Some(weight), Some(bias), EPS)
    }

    fn forward(&self, ids: &Tensor, fused: bool) -> Result<Tensor> {
        let (batch, length) = (ids.shape()[0] as isize, ids.shape()[1] as isize);
        let embed = "embeddings.word_embeddings.weight";
        let x = embedding(ids, self.get(embed)?)?;
        let positions = self
            .get("embeddings.position_embeddings.weight")?
            .slice(0, ..length)?;
        let kind = self
            .get("embeddings.token_type_embeddings.weight")?
            .select(0, 0)?;
        let mut x = self.norm(&x.add(&positions)?.add(&kind)?, "embeddings.LayerNorm")?;
        // Nothing is masked, but the mask is added, as in the peers' program.
        let mask = Tensor::zeros(
            [batch as usize, 1, 1, length as usize],
            DType::F32,
            &Device::cpu(),
        )?;
        let scale = 1.0 / ((WIDTH / HEADS) as f64).sqrt();
        for layer in 0..LAYERS {
            let at = |name: &str| format!("encoder.layer.{layer}.{name}");
            let heads = |name: &str| {
                let shape = [batch, length, HEADS as isize, -1];
                self.linear(&x, &at(&format!("attention.self.{name}")))?
                    .view(shape)?
                    .transpose(1, 2)
            };
            let (q, k, v) = (heads("query")?, heads("key")?, heads("value")?);
            let mixed = if fused {
                let how = Attention {
                    mask: Some(&mask),
                    ..Attention::default()
                };
                scaled_dot_product_attention(&q, &k, &v, &how)?
            } else {
                let scores = q.matmul(&k.transpose(-1, -2)?)?.mul(scale)?.add(&mask)?;
                scores.softmax(-1)?.matmul(&v)?
            };
            let mixed = mixed
                .transpose(1, 2)?
                .reshape([batch, length, WIDTH as isize])?;
            let attended = self.linear(&mixed, &at("attention.output.dense"))?;
            x = self.norm(&x.add(&attended)?, &at("attention.output.LayerNorm"))?;
            let wide = self.linear(&x, &at("intermediate.dense"))?.gelu()?;
            let narrow = self.linear(&wide, &at("output.dense"))?;
            x = self.norm(&x.add(&narrow)?, &at("output.LayerNorm"))?;
        }
        Ok(x)
    }
}
