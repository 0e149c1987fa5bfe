//! Modules: names, ties, states in files, modes, scopes and labels, initial values.

use osteon::nn::{
    self, BatchNorm1d, Dropout, Embedding, Layer, Linear, Module, Parts, ReLU, Sequential, init,
};
use osteon::{DType, Device, Result, Tensor, memory};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

nn::module! {
    /// A residual block.
    struct Block(width: usize) {
        norm: BatchNorm1d = BatchNorm1d::new(width)?,
        linear: Linear = Linear::new(width, width)?,
        drop: Dropout = Dropout::new(0.5),
        gain: Tensor = {
            let (dtype, device) = nn::defaults();
            nn::parameter(Tensor::ones([1], dtype, &device)?)?
        },
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.linear.forward(&self.norm.forward(x)?)?;
        x.add(&self.drop.forward(&y)?.mul(&self.gain)?)
    }

    /// Something else that the module can do.
    pub(crate) fn pair(&self, x: &Tensor, times: usize) -> Result<(Tensor, usize)> {
        Ok((self.forward(x)?, times))
    }
}

nn::module! {
    /// Words in, words out, with one matrix for both.
    struct Tied(words: usize, width: usize, depth: usize) {
        embed: Embedding = Embedding::new(words, width)?,
        blocks: Vec<Block> = (0..depth).map(|_| Block::new(width)).collect::<Result<_>>()?,
        head: Linear = {
            let mut head = Linear::new(width, words)?.without_bias();
            head.weight = embed.weight.clone();
            head
        },
        depth: usize = depth,
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.embed.forward(x)?;
        let x = self.blocks.iter().try_fold(x, |x, block| block.forward(&x))?;
        self.head.forward(&x)
    }
}

fn names(list: &[(String, Tensor)]) -> Vec<&str> {
    list.iter().map(|(name, _)| &**name).collect()
}

/// Random numbers are the process's: one test at a time draws them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn names_go_by_parts_and_ties_count_once() -> Result<()> {
    let _alone = alone();
    let model = Tied::new(7, 4, 2)?;
    let parameters = model.named_parameters();
    assert_eq!(
        names(&parameters),
        [
            "embed.weight",
            "blocks.0.norm.weight",
            "blocks.0.norm.bias",
            "blocks.0.linear.weight",
            "blocks.0.linear.bias",
            "blocks.0.gain",
            "blocks.1.norm.weight",
            "blocks.1.norm.bias",
            "blocks.1.linear.weight",
            "blocks.1.linear.bias",
            "blocks.1.gain",
        ]
    );
    assert_eq!(
        names(&model.named_buffers())[..2],
        ["blocks.0.norm.running_mean", "blocks.0.norm.running_var"]
    );
    assert_eq!(model.num_parameters(), 7 * 4 + 2 * (2 * 4 + 4 * 4 + 4 + 1));
    assert_eq!((model.state_dict().len(), model.depth), (12 + 2 * 3, 2));
    // Labels, by themselves.
    assert_eq!(
        model.blocks[1].linear.weight.name().as_deref(),
        Some("blocks.1.linear.weight")
    );
    assert_eq!(model.head.weight.name().as_deref(), Some("embed.weight"));
    let summary = model.summary();
    assert!(
        summary.starts_with("Tied (86 parameters)\n  embed: Embedding, weight [7, 4]\n"),
        "{summary}"
    );
    assert!(
        summary.contains(
            "\n    0: Block\n      norm: BatchNorm, weight [4], bias [4], running_mean [4]"
        ),
        "{summary}"
    );
    assert!(summary.contains("\n      gain [1]\n"), "{summary}");
    Ok(())
}

#[test]
fn names_from_outside_win_and_those_given_by_hand_stay() -> Result<()> {
    let _alone = alone();
    let mine = nn::parameter(Tensor::new([1f32])?.named("mine"))?;
    struct Holder(Tensor, Sequential);
    impl Module for Holder {
        fn visit(&self, parts: &mut Parts<'_>) {
            parts.add("first", &self.0);
            parts.add("rest", &self.1);
        }
    }
    let holder = Holder(mine, Sequential::new().then(Linear::new(2, 2)?).then(ReLU));
    assert_eq!(
        names(&holder.named_parameters()),
        ["first", "rest.0.weight", "rest.0.bias"]
    );
    assert_eq!(holder.0.name().as_deref(), Some("mine"));
    assert_eq!(
        holder.parameters()[1].name().as_deref(),
        Some("rest.0.weight")
    );
    holder.1.parameters(); // asked from inside: the outer names stay
    assert_eq!(
        holder.parameters()[1].name().as_deref(),
        Some("rest.0.weight")
    );
    Ok(())
}

#[test]
fn states_go_through_files_and_ties_stay() -> Result<()> {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for extension in ["pt", "safetensors"] {
        let path = dir.path().join(format!("model.{extension}"));
        let (from, to) = (Tied::new(7, 4, 1)?, Tied::new(7, 4, 1)?);
        from.forward(&Tensor::new([1i64, 2, 3])?)?; // statistics of batch norm
        from.save(&path)?;
        let held = osteon::load(&path)?;
        // The shared tensor once, unless the format can say that it is shared.
        assert_eq!(held.len(), 9 + usize::from(extension == "pt"));
        if extension == "pt" {
            assert!(held["head.weight"].shares_storage(&held["embed.weight"]));
        }
        to.load(&path)?;
        for ((name, a), (_, b)) in from.state_dict().into_iter().zip(to.state_dict()) {
            assert!(a.detach()?.equal(&b.detach()?)?, "{name}");
        }
        assert!(to.head.weight.is(&to.embed.weight) && to.embed.weight.requires_grad());
        // The model has memory of its own: the file may go.
        std::fs::remove_file(&path).unwrap();
        osteon::no_grad(|| to.embed.weight.fill_(1.0))?;
    }
    Ok(())
}

#[test]
fn states_that_do_not_fit_are_told_whole_and_change_nothing() -> Result<()> {
    let _alone = alone();
    let model = Tied::new(7, 4, 1)?;
    let mut state = model.state_dict();
    state.retain(|_, t| !t.is(&model.embed.weight));
    state.remove("blocks.0.gain");
    state.insert("tail.weight".into(), Tensor::new([1f32])?);
    state.insert(
        "blocks.0.linear.bias".into(),
        Tensor::zeros([5], DType::F32, &Device::cpu())?,
    );
    state.insert(
        "blocks.0.norm.bias".into(),
        Tensor::full([4], 7.0, DType::F32, &Device::cpu())?,
    );
    let error = model.load_state_dict(&state).unwrap_err().to_string();
    for part in [
        "missing: embed.weight, blocks.0.gain, head.weight",
        "unexpected: tail.weight",
        "blocks.0.linear.bias has shape [4] here and [5] there",
        "Tied",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(
        model.blocks[0]
            .norm
            .bias
            .as_ref()
            .unwrap()
            .detach()?
            .sum()?
            .item::<f32>()?,
        0.0
    );
    state.remove("blocks.0.linear.bias");
    let unmatched = model.load_matching(&state)?;
    assert_eq!(unmatched.unexpected, ["tail.weight"]);
    assert_eq!(
        unmatched.missing,
        [
            "embed.weight",
            "blocks.0.linear.bias",
            "blocks.0.gain",
            "head.weight"
        ]
    );
    assert_eq!(
        model.blocks[0]
            .norm
            .bias
            .as_ref()
            .unwrap()
            .detach()?
            .sum()?
            .item::<f32>()?,
        28.0
    );
    // Two values for one tensor.
    let mut state = model.state_dict();
    state.insert("head.weight".into(), model.head.weight.detach()?.add(1.0)?);
    let error = model.load_state_dict(&state).unwrap_err().to_string();
    assert!(
        error.contains("embed.weight and head.weight are one tensor here"),
        "{error}"
    );
    // One name of a tied tensor is enough, and dtypes are cast.
    let mut state = model.state_dict();
    state.remove("embed.weight");
    state.insert(
        "head.weight".into(),
        Tensor::full([7, 4], 0.5, DType::F64, &Device::cpu())?,
    );
    model.load_state_dict(&state)?;
    assert_eq!(model.embed.weight.detach()?.sum()?.item::<f32>()?, 14.0);
    Ok(())
}

#[test]
fn modes_reach_every_part() -> Result<()> {
    let _alone = alone();
    let model = Tied::new(7, 4, 2)?;
    let x = Tensor::new([1i64, 2, 3])?;
    model.eval();
    let mean = model.blocks[1].norm.running_mean.copy()?;
    assert!(
        model.forward(&x)?.equal(&model.forward(&x)?)?,
        "nothing is dropped"
    );
    assert!(
        model.blocks[1].norm.running_mean.equal(&mean)?,
        "nothing is gathered"
    );
    model.train();
    assert!(!model.forward(&x)?.equal(&model.forward(&x)?)?);
    assert_eq!(model.blocks[0].norm.num_batches_tracked.item::<i64>()?, 2);
    assert_eq!(
        model.blocks[0]
            .pair(&Tensor::zeros([2, 4], DType::F32, &Device::cpu())?, 3)?
            .1,
        3
    );
    Ok(())
}

#[test]
fn what_a_module_makes_is_in_its_scope() -> Result<()> {
    let _alone = alone();
    let model = Tied::new(7, 4, 2)?;
    let scope = |t: &Tensor| {
        let map = memory::map();
        map.storage(t.storage().id())
            .unwrap()
            .scope
            .path()
            .to_string()
    };
    let x = Tensor::zeros([2, 4], DType::F32, &Device::cpu())?;
    let block = &model.blocks[1];
    assert_eq!(scope(&block.forward(&x)?), "blocks.1");
    assert_eq!(scope(&block.linear.forward(&x)?), "blocks.1.linear");
    let _step = memory::scope("step 3");
    assert_eq!(scope(&block.forward(&x)?), "step 3.blocks.1");
    assert_eq!(scope(&x.add(1.0)?), "step 3");
    // An error ends the scope like anything else.
    assert!(block.forward(&Tensor::new([1f32])?).is_err());
    assert_eq!(scope(&x.add(1.0)?), "step 3");
    Ok(())
}

#[test]
fn modules_are_shared_between_threads_and_behind_pointers() -> Result<()> {
    let _alone = alone();
    let block: Arc<dyn Layer> = Arc::new(Sequential::new().then(Linear::new(4, 4)?).then(ReLU));
    block.eval();
    let x = Tensor::zeros([2, 4], DType::F32, &Device::cpu())?;
    let there = {
        let (block, x) = (block.clone(), x.clone());
        std::thread::spawn(move || block.forward(&x))
            .join()
            .unwrap()?
    };
    assert!(there.equal(&block.forward(&x)?)?);
    assert_eq!(block.kind(), "Sequential");
    Ok(())
}

#[test]
fn frozen_parameters_stay() -> Result<()> {
    let _alone = alone();
    let layer = Linear::new(2, 2)?;
    layer.requires_grad_(false)?;
    assert!(!layer.forward(&Tensor::new([[1f32, 2.0]])?)?.requires_grad());
    layer.requires_grad_(true)?;
    assert!(layer.parameters().iter().all(Tensor::requires_grad));
    Ok(())
}

/// Mean, deviation, least and largest element.
fn moments(t: &Tensor) -> Result<[f64; 4]> {
    let t = t.detach()?.to(DType::F64)?;
    let of = |t: Tensor| t.item::<f64>();
    Ok([
        of(t.mean()?)?,
        of(t.std([], 1.0, false)?)?,
        of(t.min()?)?,
        of(t.max()?)?,
    ])
}

#[test]
fn initial_values_have_pytorchs_distributions() -> Result<()> {
    let _alone = alone();
    osteon::manual_seed(1);
    let close = |what: &str, x: f64, y: f64, tolerance: f64| {
        assert!((x - y).abs() <= tolerance, "{what}: {x} instead of {y}");
    };
    // The bounds by hand: 1/√400 for Linear(400, 300), the same for its bias.
    let layer = Linear::new(400, 300)?;
    let [mean, std, min, max] = moments(&layer.weight)?;
    close("mean", mean, 0.0, 1e-3);
    close("deviation", std, 0.05 / 3f64.sqrt(), 2e-4);
    assert!(min >= -0.05 && max <= 0.05 && max > 0.0499);
    let [_, _, min, max] = moments(layer.bias.as_ref().unwrap())?;
    assert!(min >= -0.05 && max <= 0.05 && max > 0.045);
    let w = Tensor::empty([200, 100, 3], DType::F64, &Device::cpu())?;
    type Init = fn(&Tensor) -> Result<()>;
    let cases: [(&str, Init, f64, f64, f64); 7] = [
        (
            "kaiming_uniform",
            |w| init::kaiming_uniform_(w, 0.0),
            0.0,
            (2f64 / 300.0).sqrt(),
            (6f64 / 300.0).sqrt(),
        ),
        (
            "kaiming_normal",
            |w| init::kaiming_normal_with_(w, init::Gain::Relu, init::Fan::Out),
            0.0,
            (2f64 / 600.0).sqrt(),
            0.4,
        ),
        (
            "xavier_uniform",
            |w| init::xavier_uniform_(w, init::Gain::Linear),
            0.0,
            (2f64 / 900.0).sqrt(),
            (6f64 / 900.0).sqrt(),
        ),
        (
            "xavier_normal",
            |w| init::xavier_normal_(w, init::Gain::Tanh),
            0.0,
            5.0 / 3.0 * (2f64 / 900.0).sqrt(),
            0.5,
        ),
        ("normal", |w| init::normal_(w, 1.0, 2.0), 1.0, 2.0, 12.0),
        (
            "uniform",
            |w| init::uniform_(w, -1.0, 3.0),
            1.0,
            4.0 / 12f64.sqrt(),
            3.0,
        ),
        // Deviation of the standard normal distribution between ±1: √(1 - 2·φ(1)/(2·Φ(1) - 1)).
        (
            "trunc_normal",
            |w| init::trunc_normal_(w, 0.0, 1.0, -1.0, 1.0),
            0.0,
            0.539_56,
            1.0,
        ),
    ];
    for (name, f, mean, std, bound) in cases {
        f(&w)?;
        let got = moments(&w)?;
        close(name, got[0], mean, 0.02 * std.max(0.05));
        close(name, got[1], std, 0.02 * std);
        assert!(
            got[3] <= bound && got[2] >= 2.0 * mean - bound,
            "{name}: {got:?}"
        );
    }
    let embedding = moments(&Embedding::new(300, 100)?.weight)?;
    close("embedding", embedding[1], 1.0, 0.02);
    // The stream is manual_seed's.
    let draw = || {
        osteon::manual_seed(7);
        Linear::new(3, 3)?.weight.to_vec::<f32>()
    };
    assert_eq!(draw()?, draw()?);
    for shape in [[4, 9], [9, 4]] {
        let w = Tensor::empty(shape, DType::F32, &Device::cpu())?;
        init::orthogonal_(&w, init::Gain::Relu)?;
        let product = if shape[0] < shape[1] {
            w.matmul(&w.t()?)?
        } else {
            w.t()?.matmul(&w)?
        };
        let expected = Tensor::eye(4, DType::F32, &Device::cpu())?.mul(2.0)?;
        assert!(product.allclose(&expected, 0.0, 1e-5)?, "{shape:?}");
    }
    assert!(
        init::xavier_normal_(&Tensor::new([1f32])?, init::Gain::Linear)
            .unwrap_err()
            .to_string()
            .contains("[1]")
    );
    Ok(())
}

#[test]
fn a_model_without_memory_has_shapes() -> Result<()> {
    let _alone = alone();
    let before = memory::allocated(&Device::cpu());
    let model = nn::build_in(DType::BF16, &Device::meta(), || {
        Tied::new(1 << 20, 1 << 12, 1)
    })?;
    assert_eq!(model.embed.weight.nbytes(), 8 << 30);
    let y = model.forward(&Tensor::zeros([2], DType::I64, &Device::meta())?)?;
    assert_eq!(y.shape(), [2, 1 << 20]);
    assert!(memory::allocated(&Device::cpu()) < before + (1 << 20));
    Ok(())
}

#[test]
fn masks_of_attention_join() -> Result<()> {
    let _alone = alone();
    osteon::manual_seed(2);
    let cpu = Device::cpu();
    let attention = nn::MultiheadAttention::new(4, 2)?;
    let x = Tensor::randn([3, 2, 4], DType::F32, &cpu)?; // three places, two in the batch
    let f = false;
    // By hand: behind its own place, the second key in the first text, and 1 → 0 for the first head alone.
    let causal = [[f, true, true], [f, f, true], [f, f, f]];
    let padding = [[f, true, f], [f, f, f]];
    let mut heads = vec![vec![vec![f; 3]; 3]; 4]; // (batch · heads, queries, keys)
    heads[0][1][0] = true;
    let mut all = heads.clone();
    for (n, head) in all.iter_mut().enumerate() {
        for (q, row) in head.iter_mut().enumerate() {
            for (k, hidden) in row.iter_mut().enumerate() {
                *hidden |= causal[q][k] || padding[n / 2][k];
            }
        }
    }
    let (heads, all) = (Tensor::new(heads)?, Tensor::new(all)?);
    let padding = Tensor::new(padding)?;
    let expected = nn::Masks {
        attn_mask: Some(&all),
        ..nn::Masks::default()
    };
    // The second query of the first head may see nothing, and gets zeros.
    let expected = attention.forward(&x, &x, &x, &expected)?;
    let float = heads
        .to(DType::F32)?
        .masked_fill(&heads, f64::NEG_INFINITY)?;
    for mask in [&heads, &float] {
        let masks = nn::Masks {
            attn_mask: Some(mask),
            key_padding_mask: Some(&padding),
            is_causal: true,
        };
        let got = attention.forward(&x, &x, &x, &masks)?;
        assert!(got.isfinite()?.all()?.item::<bool>()?);
        assert!(
            got.allclose(&expected, 1e-5, 1e-6)?,
            "{got} instead of {expected}"
        );
    }
    Ok(())
}
