//! `osteon compact`, as users run it.

mod common;

use common::{data, osteon};
use serde_json::Value;

#[test]
fn the_waste_goes_and_the_tensors_stay() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pt");
    let out = out.to_str().unwrap();
    assert_eq!(
        osteon(&["map", "--max-waste", "0%", &data("transposed.pt")]).code,
        3
    );
    let ran = osteon(&["compact", &data("transposed.pt"), out]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("7,228 bytes before"), "{}", ran.out);
    let ran = osteon(&["map", "--json", "--max-waste", "0%", out]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let map: Value = serde_json::from_str(&ran.out).unwrap();
    // Of 2,400 + 2,400 + 320 bytes, the 2,400 + 320 + 80 that tensors reach.
    let storages = map["files"][0]["storages"].as_object().unwrap();
    let mut sizes: Vec<_> = storages
        .values()
        .map(|s| s["nbytes"].as_u64().unwrap())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [80, 320, 2400]);
    let tensors = &map["files"][0]["tensors"];
    assert_eq!(tensors["cols"]["shape"], serde_json::json!([20, 4]));
    assert_eq!(tensors["wt"]["stride"], serde_json::json!([1, 20]));
}

#[test]
fn nothing_is_lost_when_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tied.pt");
    std::fs::copy(data("tied.pt"), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    let same = dir.path().join("./tied.pt");
    let (file, same) = (file.to_str().unwrap(), same.to_str().unwrap());
    for (args, told) in [
        (["compact", file, same], "would be overwritten"),
        (["compact", &data("nowhere.pt"), file], "nowhere.pt"),
        (["compact", &data("bad/truncated.pt"), file], "truncated.pt"),
        (["compact", file, "/nowhere/out.pt"], "/nowhere/out.pt"),
    ] {
        let ran = osteon(&args);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
        assert!(
            ran.err.contains(told) && ran.err.lines().count() == 1,
            "{}",
            ran.err
        );
        assert_eq!(std::fs::read(file).unwrap(), before);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
