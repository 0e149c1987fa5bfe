//! Trains a small transformer on sonnets, letter by letter, and lets it write:
//! `cargo run --release -p osteon --example char_transformer`

mod common;

use common::{Picture, Progress};
use osteon::nn::functional::{Classes, cross_entropy};
use osteon::nn::{
    self, Embedding, EncoderOptions, Layer, LayerNorm, Linear, Masks, Module,
    TransformerEncoderLayer,
};
use osteon::optim::{AdamW, OneCycleLR, Optimizer, Scheduler, clip_grad_norm_};
use osteon::{DType, Device, Result, Tensor, no_grad, s};

nn::module! {
    /// For each place of a text, what letter comes next.
    pub struct CharTransformer(vocabulary: usize, context: usize, width: usize, heads: usize, layers: usize) {
        tokens: Embedding = Embedding::new(vocabulary, width)?,
        places: Embedding = Embedding::new(context, width)?,
        blocks: Vec<TransformerEncoderLayer> = {
            let how = EncoderOptions {
                dim_feedforward: 4 * width,
                dropout: 0.0,
                activation: Tensor::gelu,
                norm_first: true,
                batch_first: true,
                ..EncoderOptions::default()
            };
            let block = |_| TransformerEncoderLayer::new(width, heads, &how);
            (0..layers).map(block).collect::<Result<_>>()?
        },
        norm: LayerNorm = LayerNorm::new([width])?,
        head: Linear = Linear::new(width, vocabulary)?,
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let places = Tensor::arange(0, x.size(-1)? as i64, 1)?;
        let x = self.tokens.forward(x)?.add(&self.places.forward(&places)?)?;
        let masks = Masks { is_causal: true, ..Masks::default() };
        let x = self.blocks.iter().try_fold(x, |x, block| block.forward_masked(&x, &masks))?;
        self.head.forward(&self.norm.forward(&x)?)
    }
}

/// A text as numbers of letters.
#[derive(Debug)]
pub struct Text {
    pub letters: Vec<char>,
    pub codes: Tensor,
}

/// The sonnets.
pub fn text() -> Result<Text> {
    let text = include_str!("data/sonnets.txt");
    let letters: Vec<char> = text
        .chars()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let codes: Vec<i64> = text
        .chars()
        .filter_map(|c| letters.binary_search(&c).ok())
        .map(|i| i as i64)
        .collect();
    let n = codes.len();
    let codes = Tensor::from_vec(codes, [n])?;
    Ok(Text { letters, codes })
}

/// Pieces of `context` letters from these places, and the letters one further on.
pub fn batch(codes: &Tensor, starts: &[i64], context: usize) -> Result<(Tensor, Tensor)> {
    let starts = Tensor::from_slice(starts, [starts.len(), 1])?;
    let at = starts.add(&Tensor::arange(0, context as i64, 1)?)?;
    Ok((codes.take(&at)?, codes.take(&at.add(1)?)?))
}

/// Goes on with a text, letter by letter, each drawn by its probability.
fn write(
    model: &CharTransformer,
    text: &Text,
    begin: &str,
    length: usize,
    context: usize,
) -> Result<String> {
    let codes = begin
        .chars()
        .filter_map(|c| text.letters.binary_search(&c).ok());
    let mut codes: Vec<i64> = codes.map(|i| i as i64).collect();
    for _ in 0..length {
        let seen = &codes[codes.len().saturating_sub(context)..];
        let x = Tensor::from_slice(seen, [1, seen.len()])?;
        let scores = no_grad(|| model.forward(&x))?.i(s![0, -1])?.div(0.7)?;
        // Gumbel's way: the largest score with such noise is each one with its softmax's probability.
        let noise = scores.rand_like()?.log()?.neg()?.log()?.neg()?;
        codes.push(scores.add(&noise)?.argmax()?.item()?);
    }
    Ok(codes
        .iter()
        .filter_map(|&c| text.letters.get(c as usize))
        .collect())
}

#[allow(dead_code)] // the tests train the model by themselves
fn main() -> Result<()> {
    const CONTEXT: usize = 64;
    const BATCH: usize = 16;
    const STEPS: u64 = 1500;
    osteon::manual_seed(0);
    let text = text()?;
    let model = CharTransformer::new(text.letters.len(), CONTEXT, 64, 4, 2)?;
    println!(
        "{} letters of {} kinds; {} parameters",
        text.codes.numel(),
        text.letters.len(),
        model.num_parameters()
    );
    let parameters = model.parameters();
    let mut optimizer = Optimizer::new(
        &parameters,
        AdamW {
            weight_decay: 0.1,
            ..AdamW::default()
        },
    )?;
    let cycle = OneCycleLR {
        max_lr: 3e-3,
        total_steps: STEPS,
        ..OneCycleLR::default()
    };
    let mut schedule = Scheduler::new(&mut optimizer, cycle)?;
    let progress = Progress::new(STEPS);
    let mut picture = None;
    let last = (text.codes.numel() - CONTEXT) as i64;
    for _ in 0..STEPS {
        let starts =
            Tensor::randint(0, last, [BATCH], DType::I64, &Device::cpu())?.to_vec::<i64>()?;
        let (x, y) = batch(&text.codes, &starts, CONTEXT)?;
        let loss = cross_entropy(
            &model.forward(&x)?.flatten(0, 1)?,
            &y.flatten(0, -1)?,
            &Classes::default(),
        )?;
        picture.get_or_insert_with(Picture::take);
        optimizer.zero_grad()?;
        loss.backward()?;
        clip_grad_norm_(&parameters, 1.0, 2.0)?;
        optimizer.step()?;
        schedule.step(&mut optimizer)?;
        progress.step(loss.item()?);
    }
    progress.finish();

    println!("\n{}\n", write(&model, &text, "Shall I ", 400, CONTEXT)?);
    picture.map_or(Ok(()), |picture| {
        picture.report("char-transformer-memory.html")
    })
}
