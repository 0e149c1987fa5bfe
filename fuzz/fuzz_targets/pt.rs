//! Any bytes as a PyTorch file, zip, legacy, tar or plain pickle: as for safetensors.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(catalog) = osteon_io::catalog_bytes("x.pt", bytes.to_vec()) {
        for t in &catalog.tensors {
            let needs = t.layout.required_len() as u64 * t.dtype.size() as u64;
            assert!(needs <= catalog.storages[t.storage].nbytes, "{t:?}");
        }
        for s in &catalog.storages {
            assert!(s.data.offset + s.data.length <= catalog.file_bytes, "{s:?}");
        }
    }
});
