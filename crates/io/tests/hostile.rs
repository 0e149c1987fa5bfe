//! Files that lie: every one is an error or a catalog that holds, never a panic.

use osteon_io::{
    Catalog, Encoding, LoadOptions, WarningKind, catalog, catalog_bytes, compact, load,
};
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// What every catalog promises.
fn sound(c: &Catalog) {
    let mut names = HashSet::new();
    for t in &c.tensors {
        assert!(names.insert(&t.name), "{:?} twice", t.name);
        let needs = t.layout.required_len() as u64 * t.dtype.size() as u64;
        assert!(needs <= c.storages[t.storage].nbytes, "{t:?}");
    }
    for s in &c.storages {
        assert!(s.data.offset + s.data.length <= c.file_bytes, "{s:?}");
        match s.data.encoding {
            Encoding::Stored => assert_eq!(s.data.length, s.nbytes),
            Encoding::Deflated { skip, inflated, .. } => {
                assert_eq!(skip + s.nbytes, inflated);
                assert!(inflated <= 1032 * s.data.length);
            }
        }
    }
}

fn try_bytes(name: &str, bytes: Vec<u8>) {
    match catalog_bytes(name, bytes) {
        Ok(c) => sound(&c),
        Err(e) => {
            let text = e.to_string();
            assert!(
                e.is_format() && text.starts_with(name) && !text.contains('\n'),
                "{text}"
            );
        }
    }
}

/// The small files of every format.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let dir = data();
    [
        "clean.pt",
        "param.pt",
        "small_legacy.pt",
        "old.tar.pt",
        "small.safetensors",
        "arrays.npz",
        "arrays_z.npz",
        "one.npy",
    ]
    .into_iter()
    .map(|name| (name.to_owned(), std::fs::read(dir.join(name)).unwrap()))
    .collect()
}

#[test]
fn cut_anywhere() {
    for (name, bytes) in seeds() {
        assert!(catalog_bytes(&name, bytes.clone()).is_ok(), "{name}");
        for n in 0..bytes.len() {
            // A tar archive ends with blocks of zeros; of those, one will do.
            match catalog_bytes(&name, bytes[..n].to_vec()) {
                Ok(c) => {
                    assert!(bytes[n..].iter().all(|&b| b == 0), "{name} of {n} bytes");
                    sound(&c);
                }
                Err(e) => assert!(e.is_format(), "{e}"),
            }
        }
    }
}

#[test]
fn grown_at_the_end() {
    for (name, bytes) in seeds() {
        if name == "old.tar.pt" {
            continue;
        }
        let e = catalog_bytes(&name, [&*bytes, b"more"].concat()).expect_err(&name);
        assert!(e.is_format(), "{e}");
    }
}

#[test]
fn any_byte_changed() {
    for (name, bytes) in seeds() {
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                try_bytes(&name, bytes);
            }
        }
    }
}

/// A PyTorch file around a pickle, with one storage of 256 bytes.
fn around(pickle: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [
        ("x/data.pkl", pickle),
        ("x/data/0", &[7; 256]),
        ("x/version", b"3\n"),
    ] {
        zip.start_file(name, stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn pickle_of(name: &str) -> Vec<u8> {
    let mut zip = zip::ZipArchive::new(std::fs::File::open(data().join(name)).unwrap()).unwrap();
    let record = name.replace(".pt", "/data.pkl");
    let mut bytes = Vec::new();
    std::io::copy(&mut zip.by_name(&record).unwrap(), &mut bytes).unwrap();
    bytes
}

#[test]
fn any_byte_of_a_pickle_changed_under_a_fresh_checksum() {
    for name in ["clean.pt", "param.pt", "module.pt"] {
        let pickle = pickle_of(name);
        for at in 0..pickle.len() {
            for change in [0x01, 0x02, 0x10, 0x80, 0xff] {
                let mut pickle = pickle.clone();
                pickle[at] ^= change;
                try_bytes("x.pt", around(&pickle));
            }
        }
    }
}

/// `{NAME: tensor}` for every pair, where a tensor is given by what follows its storage.
fn checkpoint(tensors: &[(&str, &[u8])]) -> Vec<u8> {
    let mut p = b"\x80\x02}(".to_vec();
    for (name, rest) in tensors {
        p.push(b'X');
        p.extend((name.len() as u32).to_le_bytes());
        p.extend(name.as_bytes());
        p.extend(b"ctorch._utils\n_rebuild_tensor\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQ");
        p.extend(*rest);
        p.extend(b"tR");
    }
    p.extend(b"u.");
    around(&p)
}

#[test]
fn tensors_that_leave_their_storage() {
    // offset, sizes, strides in opcodes; the storage has 64 elements.
    let within: [&[u8]; 4] = [
        b"K\x00K@\x85K\x01\x85",
        b"K?K\x01\x85K\x01\x85",
        b"K\x00))",
        b"K@K\x00\x85K\x01\x85",
    ];
    for rest in within {
        assert_eq!(
            catalog_bytes("x.pt", checkpoint(&[("w", rest)]))
                .unwrap()
                .tensors
                .len(),
            1
        );
    }
    let beyond: [&[u8]; 9] = [
        b"K\x01K@\x85K\x01\x85",
        b"K@))",
        b"K\x00K@\x85K\x02\x85",
        b"J\xff\xff\xff\xffK\x01\x85K\x01\x85",
        b"K\x00K\x02\x85J\xff\xff\xff\xff\x85",
        b"K\x00J\xff\xff\xff\x7f\x85\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85",
        b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x01\x85K\x01\x85",
        b"K\x00K\x02\x85)",
        b"NK\x02\x85K\x01\x85",
    ];
    for rest in beyond {
        let e = catalog_bytes("x.pt", checkpoint(&[("layer.w", rest)])).unwrap_err();
        assert!(
            e.is_format() && e.to_string().contains("\"layer.w\""),
            "{e}"
        );
    }
}

#[test]
fn names_are_unique_and_bounded() {
    let one: &[u8] = b"K\x00K@\x85K\x01\x85";
    let c = catalog_bytes(
        "x.pt",
        checkpoint(&[("a", one), ("a", one), ("b", one), ("a", one)]),
    )
    .unwrap();
    let names: Vec<_> = c.tensors.iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["a", "a#2", "b", "a#3"]);
    assert_eq!(c.warnings.len(), 2);

    // A tensor below lists of ten times each other: 10^30 names.
    let tensor = b"ctorch._utils\n_rebuild_tensor\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQK\x00))tRq\x00";
    let mut p = b"\x80\x02".to_vec();
    p.extend(tensor);
    for level in 0..30u8 {
        p.extend(b"](");
        p.extend([b'h', level].repeat(10));
        p.extend([b'e', b'q', level + 1]);
    }
    p.push(b'.');
    let e = catalog_bytes("x.pt", around(&p)).unwrap_err();
    assert!(e.to_string().contains("share each other"), "{e}");

    // The same bomb without a tensor inside is nothing to see.
    let plain = [b"\x80\x02Nq\x00", &p[2 + tensor.len()..]].concat();
    assert_eq!(
        catalog_bytes("x.pt", around(&plain)).unwrap().tensors.len(),
        0
    );

    // Nested deeper than Python itself could.
    let mut deep = b"\x80\x02".to_vec();
    deep.extend(tensor);
    deep.extend([0x85].repeat(100_000));
    deep.push(b'.');
    assert!(catalog_bytes("x.pt", around(&deep)).is_err());

    // A dict that holds itself.
    let cycle = [
        b"\x80\x02}q\x01(X\x02\x00\x00\x00meh\x01X\x01\x00\x00\x00w",
        &tensor[..],
        b"u.",
    ]
    .concat();
    let c = catalog_bytes("x.pt", around(&cycle)).unwrap();
    assert_eq!(
        c.tensors.iter().map(|t| &*t.name).collect::<Vec<_>>(),
        ["w"]
    );
    assert!(
        c.warnings[0].to_string().contains("\"me\""),
        "{}",
        c.warnings[0]
    );
}

#[test]
fn a_storage_of_two_sizes_and_a_record_of_none() {
    let named = |numel: u8, key: u8| {
        let mut p = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00".to_vec();
        p.extend([key]);
        p.extend(b"X\x03\x00\x00\x00cpuK");
        p.extend([numel]);
        p.extend(b"tQ");
        p
    };
    let pickle =
        |storages: &[Vec<u8>]| around(&[b"\x80\x02](", &*storages.concat(), b"e."].concat());
    assert_eq!(
        catalog_bytes("x", pickle(&[named(64, b'0'), named(64, b'0')]))
            .unwrap()
            .storages
            .len(),
        1
    );
    assert!(catalog_bytes("x", pickle(&[named(64, b'0'), named(32, b'0')])).is_err());
    assert!(
        catalog_bytes("x", pickle(&[named(64, b'1')]))
            .unwrap_err()
            .to_string()
            .contains("x/data/1")
    );
    let unused = catalog_bytes("x", pickle(&[])).unwrap();
    assert!(unused.warnings[0].to_string().contains("x/data/0"));
}

#[test]
fn an_index_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let shard = "model-00001-of-00002.safetensors";
    std::fs::copy(data().join(shard), dir.path().join(shard)).unwrap();
    let index = dir.path().join("m.index.json");
    let try_index = |text: &str| {
        std::fs::write(&index, text).unwrap();
        catalog(&index)
    };
    let c = try_index(&format!(
        r#"{{"weight_map": {{"layer.0.w": "{shard}"}}, "metadata": {{"total_size": 7}}}}"#
    ))
    .unwrap();
    assert!(c[0].warnings[0].to_string().contains("total_size 7"));
    let lost = try_index(&format!(r#"{{"weight_map": {{"lost": "{shard}"}}}}"#)).unwrap_err();
    assert!(lost.to_string().contains("\"lost\""), "{lost}");
    for outside in ["../x.safetensors", "/etc/passwd", "a/../../x", "", ".."] {
        let e = try_index(&format!(r#"{{"weight_map": {{"w": {outside:?}}}}}"#)).unwrap_err();
        assert!(e.is_format() && e.to_string().contains("folder"), "{e}");
    }
    assert!(
        try_index(r#"{"weight_map": {"w": "none.safetensors"}}"#)
            .unwrap_err()
            .is_io()
    );
    assert!(try_index("[]").unwrap_err().is_format());
    assert!(try_index("{}").unwrap_err().is_format());
}

#[test]
fn object_and_structured_arrays_are_refused_clearly() {
    for (descr, says) in [
        ("'|O'", "Python objects"),
        ("[('a', '<f4')]", "structured"),
        ("'<M8[ns]'", "<M8[ns]"),
    ] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (0,), }}\n");
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend((header.len() as u16).to_le_bytes());
        npy.extend(header.as_bytes());
        let e = catalog_bytes("x.npy", npy).unwrap_err();
        assert!(e.to_string().contains(says), "{e}");
    }
}

#[test]
fn a_header_cannot_make_memory_be_asked_for() {
    // 80 bytes that claim 32 GiB, and one that claims more than can be.
    for shape in ["(4294967296,)", "(4294967296, 4294967296, 4294967296)"] {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend((header.len() as u16).to_le_bytes());
        npy.extend(header.as_bytes());
        assert!(catalog_bytes("x.npy", npy).unwrap_err().is_format());
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    assert!(catalog_bytes("x.npy", long).unwrap_err().is_format());
}

/// Opcodes with arguments that fit, so that random pickles get somewhere.
fn opcode() -> impl Strategy<Value = Vec<u8>> {
    let fixed: Vec<Vec<u8>> = [
        &b"("[..], b"N", b"]", b"}", b")", b"t", b"l", b"d", b"a", b"e", b"s", b"u", b"0", b"1", b"2", b"R", b"b", b"Q", b"o", b"\x81",
        b"\x85", b"\x86", b"\x87", b"\x88", b"\x8f", b"\x90", b"\x91", b"\x92", b"\x93", b"\x94", b"K\x00", b"K\x40", b"h\x00", b"h\x01",
        b"q\x00", b"q\x01", b"X\x07\x00\x00\x00storage", b"X\x01\x00\x00\x000", b"X\x03\x00\x00\x00cpu", b"ctorch\nFloatStorage\n",
        b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n", b"ccollections\nOrderedDict\n",
        b"X\x0b\x00\x00\x00_parameters", b"X\x08\x00\x00\x00_modules",
        // A storage, and a tensor on it, whole.
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQ",
        b"ctorch._utils\n_rebuild_tensor\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQK\x00K\x08\x85K\x01\x85tR",
    ]
    .into_iter()
    .map(<[u8]>::to_vec)
    .collect();
    proptest::sample::select(fixed)
}

#[test]
fn a_storage_that_something_else_uses_is_kept_whole() {
    let storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQ";
    let tensor = [
        b"ctorch._utils\n_rebuild_tensor\n(",
        &storage[..],
        b"K\x04K\x02\x85K\x01\x85tq\x00R",
    ]
    .concat();
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.pt"), dir.path().join("y.pt"));
    let lone: &[u8] = b"N";
    // The storage itself, and the call's arguments given to something unknown.
    let seen: [(&[u8], u64); 3] = [(lone, 8), (storage, 256), (b"cm\nf\nh\x00R", 256)];
    for (other, nbytes) in seen {
        std::fs::write(
            &from,
            around(&[b"\x80\x02(", &*tensor, other, b"l."].concat()),
        )
        .unwrap();
        let report = compact(&from, &to).unwrap();
        assert_eq!(catalog(&to).unwrap()[0].storages[0].nbytes, nbytes);
        let kept: Vec<u64> = report.kept.iter().map(|k| k.bytes).collect();
        assert_eq!(kept, if nbytes == 8 { vec![] } else { vec![256] });
    }
}

/// A pickle that the machine accepts, steered by random bytes: a list of tensors, some of them wrapped,
/// storages, containers, calls of unknown functions, and memo entries of all of these used again.
fn valid_pickle(choices: &[u8]) -> Vec<u8> {
    #[derive(Clone, Copy, PartialEq)]
    enum Is {
        List,
        Dict,
        Other,
    }
    const STORAGE: &[u8] =
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK@tQ";
    const HOOKS: &[u8] = b"ccollections\nOrderedDict\n)R";
    let mut p = b"\x80\x02(".to_vec();
    // What lies on the stack since the first mark, the heights of the other marks, and the memo.
    let mut stack: Vec<Is> = Vec::new();
    let mut marks: Vec<usize> = Vec::new();
    let mut memo: Vec<Is> = Vec::new();
    let mut bytes = choices.iter().copied();
    while let (Some(choice), Some(n)) = (bytes.next(), bytes.next()) {
        let above = stack.len() - marks.last().copied().unwrap_or(0);
        match choice % 16 {
            0..=3 => {
                // offset n, two sizes and strides within 64 elements
                let (offset, sizes) = (n % 16, [n % 3 + 1, n / 64 + 1]);
                let strides = [[12, 1], [1, 8], [0, 5], [9, 2]][(n / 4 % 4) as usize];
                p.extend(b"ctorch._utils\n");
                let wrapped = choice == 3;
                if wrapped {
                    p.extend(b"_rebuild_parameter\nctorch._utils\n");
                }
                p.extend(b"_rebuild_tensor_v2\n(");
                p.extend(STORAGE);
                p.extend([b'K', offset, b'K', sizes[0], b'K', sizes[1], 0x86]);
                p.extend([b'K', strides[0], b'K', strides[1], 0x86, 0x89]);
                p.extend(HOOKS);
                p.extend(b"t");
                if n % 8 == 0 {
                    // The arguments are noted, so that something else may use them.
                    p.extend([b'q', memo.len() as u8]);
                    memo.push(Is::Other);
                }
                p.extend(b"R");
                if wrapped {
                    p.extend(b"\x88");
                    p.extend(HOOKS);
                    p.extend(b"\x87R");
                }
                stack.push(Is::Other);
            }
            4 if n < 32 => {
                p.extend(STORAGE);
                stack.push(Is::Other);
            }
            5 => {
                p.extend(b"]");
                stack.push(Is::List);
            }
            6 => {
                p.extend(b"}");
                stack.push(Is::Dict);
            }
            7 if above > 0 && memo.len() < 250 => {
                p.extend([b'q', memo.len() as u8]);
                memo.push(stack[stack.len() - 1]);
            }
            8 | 9 if !memo.is_empty() => {
                let at = n as usize % memo.len();
                p.extend([b'h', at as u8]);
                stack.push(memo[at]);
            }
            10 if !memo.is_empty() => {
                // A call of something unknown with what is noted.
                p.extend(
                    [
                        b"cm\nf\n",
                        &[b'h', (n as usize % memo.len()) as u8][..],
                        b"\x85R",
                    ]
                    .concat(),
                );
                stack.push(Is::Other);
            }
            11 | 12 if above > 1 && stack[stack.len() - 2] == Is::List => {
                p.extend(b"a");
                stack.pop();
            }
            11 | 12 if above > 2 && stack[stack.len() - 3] == Is::Dict => {
                p.extend(b"s");
                stack.truncate(stack.len() - 2);
            }
            13 => {
                p.extend(b"(");
                marks.push(stack.len());
            }
            14 => {
                if let Some(mark) = marks.pop() {
                    p.extend(b"t");
                    stack.truncate(mark);
                    stack.push(Is::Other);
                }
            }
            _ => {
                p.extend([b"X\x01\x00\x00\x00", &[b'a' + n % 26][..]].concat());
                stack.push(Is::Other);
            }
        }
    }
    p.extend(b"t".repeat(marks.len()));
    p.extend(b"l.");
    p
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn random_pickles(ops in proptest::collection::vec(opcode(), 0..60)) {
        let mut pickle = b"\x80\x02".to_vec();
        pickle.extend(ops.concat());
        pickle.push(b'.');
        try_bytes("x.pt", around(&pickle));
    }

    #[test]
    fn random_pickles_loaded_and_compacted(choices in proptest::collection::vec(any::<u8>(), 0..120)) {
        let bytes = around(&valid_pickle(&choices));
        let before = match catalog_bytes("x.pt", bytes.clone()) {
            Ok(c) => c,
            // Shared containers may multiply names beyond the bound.
            Err(e) => {
                prop_assert!(e.to_string().contains("share each other"), "{}", e);
                return Ok(());
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("x.pt"), dir.path().join("y.pt"));
        std::fs::write(&from, bytes).unwrap();
        let values = |path: &Path| {
            let tensors = load(path, &LoadOptions::new()).unwrap();
            tensors.iter().map(|(name, view)| (name.clone(), view.to_vec::<f32>().unwrap())).collect::<Vec<_>>()
        };
        compact(&from, &to).unwrap();
        let after = catalog(&to).unwrap().remove(0);
        sound(&after);
        let told = |c: &Catalog| c.tensors.iter().map(|t| (t.name.clone(), t.requires_grad)).collect::<Vec<_>>();
        prop_assert_eq!(told(&before), told(&after));
        prop_assert_eq!(values(&from), values(&to));
        let code = |c: &Catalog| c.warnings.iter().filter(|w| w.kind == WarningKind::Code).cloned().collect::<Vec<_>>();
        // What the root does not reach is gone, and with it what it would have done.
        prop_assert!(code(&after).iter().all(|w| code(&before).contains(w)));
    }

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), start in 0usize..6) {
        let starts: [&[u8]; 6] = [b"", b"\x80\x02", b"PK\x03\x04", b"\x93NUMPY\x01\x00\x40\x00", b"\x40\x00\x00\x00\x00\x00\x00\x00{", b"\x80\x04"];
        try_bytes("x.pt", [starts[start], &bytes].concat());
    }

    #[test]
    fn spliced_files(a in 0usize..8, b in 0usize..8, cut in 0.0..1.0f64, from in 0.0..1.0f64) {
        let seeds = seeds();
        let (name, x) = &seeds[a];
        let (_, y) = &seeds[b];
        let (i, j) = ((x.len() as f64 * cut) as usize, (y.len() as f64 * from) as usize);
        try_bytes(name, [&x[..i], &y[j..]].concat());
    }
}
