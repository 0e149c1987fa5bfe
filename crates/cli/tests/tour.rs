//! `osteon tour`, as users run it.

mod common;

use common::{command, osteon, ran};

/// The result that stands after this code, on its line or the next.
fn result<'a>(tour: &'a str, code: &str) -> &'a str {
    let start = tour
        .find(&format!("     {code}"))
        .unwrap_or_else(|| panic!("{code} is not shown"))
        + 5
        + code.len();
    let line = tour[start..]
        .split('\n')
        .map(|l| l.trim_matches([' ', '·']))
        .find(|l| !l.is_empty());
    line.unwrap()
}

#[test]
fn facts_that_can_be_computed_by_hand() {
    for lang in ["en", "zh"] {
        let ran = osteon(&["tour", "--lang", lang]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let result = |code| result(&ran.out, code);
        for (code, value) in [
            ("x.storage().nbytes()", "48"),
            (
                "(x.shape(), x.stride(), x.storage_offset(), x.dtype())",
                "([2, 3], [3, 1], 0, I64)",
            ),
            (
                "x.nbytes() + views.iter().map(Tensor::nbytes).sum::<usize>()",
                "220",
            ),
            ("memory::map().requested() - before.requested()", "40"),
            ("b.data_ptr().addr() - a.data_ptr().addr()", "8"),
            ("c.storage().id() == id", "false"),
            ("first.storage().nbytes()", "1048576"),
            ("b.contiguous()?.is(&b)", "true"),
            ("b.contiguous()?.storage().nbytes()", "32"),
            ("b.copy()?.storage().nbytes()", "16"),
            ("b.compact()?.storage().nbytes()", "16"),
            (
                "[&a, &b, &c, &d, &e, &f, &g, &h].iter().all(|v| v.shares_storage(&x))",
                "true",
            ),
            ("(h.numel(), h.storage().nbytes())", "(60, 96)"),
            ("x.t()?.reshape([6])?.shares_storage(&x)", "false"),
            (
                "(one.storage().nbytes(), two.storage().nbytes())",
                "(16384, 16384)",
            ),
            ("ten.compact()?.storage().nbytes()", "40"),
            (
                "(&a + &b.t()?)?.to_vec::<i64>()?",
                "[0, 4, 8, 12, 5, 9, 13, 17, 10, 14, 18, 22]",
            ),
            ("copies::since(&mark).bytes()", "4194304"),
            ("c.to_vec::<i64>()?", "[6, 7, 10, 11]"),
        ] {
            assert_eq!(result(code), value, "{code}");
        }
        for told in [
            "copies::forbid() is in force",
            "+3 KiB  +3 storages  \"loss\"  arange at crates/cli/src/tour/memory.rs:",
            // Of 12 elements, B has the 7th, 8th, 11th and 12th.
            "▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓██████▓▓▓▓▓▓██████",
            "99.6 %",
        ] {
            assert!(ran.out.contains(told), "{told}");
        }
        for number in 1..=17 {
            assert!(ran.out.contains(&format!("\n{number:>2}  ")), "{number}");
        }
    }
}

/// Lines of code and results, without what differs between runs.
fn code(tour: &str) -> Vec<String> {
    let lines = tour
        .lines()
        .filter(|l| l.starts_with("     ") && !l.contains("best_of_5"));
    lines
        .map(|l| l.split(['·', ' ']).filter(|w| !w.contains("0x")).collect())
        .collect()
}

#[test]
fn both_languages_show_the_same() {
    let (en, zh) = (
        osteon(&["tour", "--lang", "en"]).out,
        osteon(&["tour", "--lang", "zh"]).out,
    );
    assert_eq!(code(&en), code(&zh));
    assert!(code(&en).len() > 100);
    assert!(en.contains("WRONG") && zh.contains("错误") && !en.contains("张量"));
}

#[test]
fn lines_fit() {
    // 96 columns, where no terminal says otherwise.
    for lang in ["en", "zh"] {
        for line in osteon(&["tour", "--lang", lang]).out.lines() {
            let columns: usize = line
                .chars()
                .map(|c| {
                    if ('\u{2e80}'..'\u{ff61}').contains(&c) {
                        2
                    } else {
                        1
                    }
                })
                .sum();
            assert!(columns <= 96, "{columns} columns: {line}");
        }
    }
}

#[test]
fn the_environment_chooses_the_language() {
    let with = |vars: &[(&str, &str)], args: &[&str]| {
        ran(command(args).envs(vars.iter().copied()).output().unwrap()).out
    };
    let en = "a lesson in 17 points";
    let zh = "十七个要点";
    assert!(with(&[], &[]).contains(en));
    assert!(with(&[("LANG", "zh_CN.UTF-8")], &[]).contains(zh));
    assert!(with(&[("LC_ALL", "C"), ("LANG", "zh_CN.UTF-8")], &[]).contains(en));
    assert!(with(&[("LC_ALL", ""), ("LC_MESSAGES", "zh_TW")], &["tour"]).contains(zh));
    assert!(with(&[("LC_ALL", "zh_CN")], &["--lang", "en"]).contains(en));
}

#[test]
fn the_picture() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("tour.html");
    let ran = osteon(&["tour", "--html", html.to_str().unwrap(), "--lang", "zh"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("<html lang=\"zh\">") && page.contains("first_row"));
}
