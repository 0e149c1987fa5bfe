//! Pictures that tests draw.

#![allow(dead_code, reason = "each test file uses its part")]

use osteon_memory::picture::{Picture, StorageEntry, TensorEntry};
use osteon_spec::{DType, Device, Layout};

pub fn layout(sizes: &[usize], strides: &[usize], offset: usize) -> Layout {
    Layout::new(sizes.into(), strides.into(), offset).unwrap()
}

/// A tensor as a program shows it: name, op and line.
pub fn tensor(name: &str, op: &str, line: u32, dtype: DType, layout: &Layout) -> TensorEntry {
    TensorEntry {
        name: (!name.is_empty()).then(|| name.into()),
        op: Some(op.into()),
        site: Some(format!("src/train.rs:{line}")),
        view: ["select", "slice", "narrow", "t", "expand", "detach"].contains(&op),
        ..TensorEntry::new(dtype, layout).unwrap()
    }
}

pub fn storage(
    id: u64,
    nbytes: u64,
    label: Option<&str>,
    origin: &str,
    tensors: Vec<TensorEntry>,
) -> StorageEntry {
    StorageEntry {
        label: label.map(Into::into),
        ..StorageEntry::new(id, nbytes, Device::cpu(), origin, tensors).unwrap()
    }
}

/// A training step as people meet it; the numbers that the tests name are worked out by hand.
pub fn training_step() -> Picture {
    use DType::{BF16, Bool, F16, F32};
    let words = layout(&[50_257, 768], &[768, 1], 0);
    let tied = vec![
        tensor("embed.weight", "load", 12, F32, &words),
        tensor("lm_head.weight", "detach", 31, F32, &words),
    ];
    // 10 rows of 65,536, 4,096 bytes each: 40,960 bytes reached of 256 MiB.
    let slice = vec![tensor(
        "first_rows",
        "slice",
        54,
        F32,
        &layout(&[10, 1024], &[1024, 1], 0),
    )];
    let transposed = vec![
        tensor(
            "h.0.mlp.c_fc.weight",
            "load",
            12,
            F32,
            &layout(&[3072, 768], &[768, 1], 0),
        ),
        TensorEntry {
            note: Some("saved for backward by matmul at src/train.rs:63".into()),
            ..tensor("", "t", 63, F32, &layout(&[768, 3072], &[1, 768], 0))
        },
    ];
    // Keys and values of 12 heads, 1,024 positions, 64 numbers, with room for half as much again; and 256
    // positions of each head's keys.
    let (heads, half) = ([65_536, 64, 1], 12 * 65_536);
    let cache = vec![
        tensor(
            "keys",
            "select",
            90,
            F16,
            &layout(&[12, 1024, 64], &heads, 0),
        ),
        tensor(
            "values",
            "select",
            91,
            F16,
            &layout(&[12, 1024, 64], &heads, half),
        ),
        tensor(
            "window",
            "slice",
            97,
            F16,
            &layout(&[12, 256, 64], &heads, 512 * 64),
        ),
    ];
    let mask = vec![
        tensor("", "ones", 71, Bool, &layout(&[1], &[1], 0)),
        tensor(
            "causal_mask",
            "expand",
            72,
            Bool,
            &layout(&[1024, 1024], &[0, 0], 0),
        ),
    ];
    let pair = vec![
        tensor(
            "warmup",
            "narrow",
            77,
            F32,
            &layout(&[6000, 256], &[256, 1], 0),
        ),
        tensor(
            "recent",
            "narrow",
            78,
            F32,
            &layout(&[3500, 256], &[256, 1], 4500 * 256),
        ),
    ];
    // A fused projection of which only q and v are kept: 4,096 rows each, finer than a screen.
    let fused = vec![
        tensor("q", "slice", 85, BF16, &layout(&[4096, 768], &[2304, 1], 0)),
        tensor(
            "v",
            "slice",
            86,
            BF16,
            &layout(&[4096, 768], &[2304, 1], 1536),
        ),
    ];
    let file = "mapped file gpt2.safetensors";
    let storages = vec![
        storage(3, 50_257 * 768 * 4, None, file, tied),
        storage(17, 256 << 20, None, "zeros at src/data.rs:18", slice),
        storage(5, 3072 * 768 * 4, None, file, transposed),
        storage(
            23,
            6 * half as u64,
            Some("kv_cache"),
            "empty at src/model.rs:88",
            cache,
        ),
        storage(29, 1, None, "ones at src/model.rs:71", mask),
        storage(
            31,
            10_000 * 256 * 4,
            Some("replay"),
            "empty at src/buffer.rs:9",
            pair,
        ),
        storage(37, 4096 * 2304 * 2, None, "addmm at src/model.rs:84", fused),
    ];
    let mut picture =
        Picture::new("Memory map", "examples/train.rs, after step 120", storages).unwrap();
    // The two mapped storages are no blocks of the allocator; the mask's byte takes one of 512.
    picture.totals.allocated = Some(picture.totals.requested - (50_257 + 3072) * 768 * 4 + 511);
    picture.totals.reserved = Some(320 << 20);
    picture
}

/// 20,000 tensors: 5,000 losses, a checkpoint of 3,000 weights, one storage cut into 12,000 rows.
pub fn huge() -> Picture {
    let losses = (0..5000).map(|i| {
        let loss = tensor("", "mul", 40, DType::F32, &layout(&[], &[], 0));
        storage(i, 4, None, "mul at src/train.rs:40", vec![loss])
    });
    let parts = ["q_proj", "k_proj", "v_proj", "o_proj", "norm"];
    let weights = (0..3000).map(|i| {
        let (layer, part) = (i / parts.len(), parts[i % parts.len()]);
        let n: usize = if part == "norm" { 4096 } else { 4096 * 4096 };
        let kept = if i % 97 == 0 { n / 2 } else { n };
        let name = format!("model.layers.{layer}.{part}.weight");
        let weight = tensor(&name, "load", 9, DType::BF16, &layout(&[kept], &[1], 0));
        storage(
            10_000 + i as u64,
            2 * n as u64,
            None,
            "mapped file model.safetensors",
            vec![weight],
        )
    });
    let rows = (0..12_000).map(|i| {
        tensor(
            &format!("row.{i}"),
            "select",
            21,
            DType::F32,
            &layout(&[64], &[1], i * 65),
        )
    });
    let cut = storage(
        99_999,
        12_000 * 260,
        Some("dataset"),
        "empty at src/data.rs:20",
        rows.collect(),
    );
    Picture::new(
        "Memory map",
        "20,000 tensors",
        losses.chain(weights).chain([cut]).collect(),
    )
    .unwrap()
}

pub const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>&amp;\u{2028}\u{2029}\0\u{202e}gnp.exe\n\"'`${1}";

/// Names that try to leave the script element, turn the text around or flood the page.
pub fn hostile() -> Picture {
    let long = "𝕃ong̈ ".repeat(2000);
    let names = [
        HOSTILE,
        "שלום.weight",
        "مرحبا (1, 2)",
        &long,
        "",
        "__proto__",
        "constructor",
        " \t ",
    ];
    // Two runs, at the start and 4 KiB further on.
    let two = layout(&[1, 1, 2, 1, 64], &[7, 7, 512, 1, 1], 0);
    let storages = (names.iter().enumerate())
        .map(|(i, name)| {
            let note = Some(name.to_string());
            let t = TensorEntry {
                note,
                ..tensor(name, name, 1, DType::F64, &two)
            };
            storage(i as u64, 1 << 30, Some(name), name, vec![t.clone(), t])
        })
        .chain([
            storage(77, 0, None, "empty", vec![]),
            storage(78, 1 << 40, None, "empty", vec![]),
        ])
        .collect();
    Picture::new(HOSTILE, HOSTILE, storages).unwrap()
}
