//! The READMEs show what the command prints, and the same in both languages.

mod common;

use common::osteon;

fn code_blocks(text: &str) -> Vec<&str> {
    text.split("```").skip(1).step_by(2).collect()
}

#[test]
fn the_readmes_agree_with_each_other_and_the_command() {
    let (en, zh) = (
        include_str!("../../../README.md"),
        include_str!("../../../README.zh-CN.md"),
    );
    assert_eq!(code_blocks(en), code_blocks(zh));
    let shown = code_blocks(en)
        .into_iter()
        .find_map(|b| b.strip_prefix("text\n"))
        .unwrap();
    let map = osteon(&["map"]).out;
    assert!(map.contains(shown), "{map}");
}
