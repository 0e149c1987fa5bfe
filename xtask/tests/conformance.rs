//! The committed programs of views, copies and writes; and proof that the comparison can fail.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};
use xtask::conformance::{Line, Program, Verdict, read};

/// What a program consists of that only makes tensors, looks at them, copies them and writes to them.
const OPS: &str = "arange zeros full ones drop view contiguous slice reshape permute expand clone transpose copy_ select \
    add_ to_dtype unsqueeze unfold fill_ narrow mul_ flatten view_dtype diagonal as_strided to_dtype_copy squeeze_dim \
    clone_contiguous empty_like_fill swapaxes chunk squeeze add_scalar_ unsqueeze_ zero_ mul_scalar_ broadcast_to ravel \
    index_fill_ tensor_split movedim detach unbind alias transpose_ squeeze_ unflatten split_sizes mT \
    contiguous_channels_last split t view_as_complex view_as_real real resize_ index_add_ masked_fill_ square";

/// Programs measure the whole process: they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(|e| e.into_inner())
}

fn run(program: &Program) -> Verdict {
    let _alone = alone();
    program.run(&mut |_| ())
}

#[test]
fn programs_of_views_copies_and_writes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/data.jsonl.gz");
    let known: HashSet<&str> = OPS.split_whitespace().collect();
    let (mut ran, mut wrong) = (0, Vec::new());
    for (id, line) in read(&file).expect("the committed file") {
        let Line::Program(program) = line else {
            panic!("{id} is no program")
        };
        if program.ops().all(|op| known.contains(op)) {
            ran += 1;
            let verdict = run(&program);
            if verdict != Verdict::Passed {
                wrong.push(format!("{id}: {verdict:?}"));
            }
        }
    }
    assert_eq!(ran, 1833);
    assert!(
        wrong.is_empty(),
        "{} of {ran} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Two views of one storage, a write through one, and a call that must fail.
fn recorded() -> Value {
    json!({
        "id": 1, "mode": "data",
        "steps": [
            {"op": "arange", "in": [], "args": {"shape": [2, 3], "dtype": "float32", "start": 0}, "out": ["v0"]},
            {"op": "transpose", "in": ["v0"], "args": {"dim0": 0, "dim1": 1}, "out": ["v1"]},
            {"op": "add_", "in": ["v1", "v1"], "args": {}, "out": []},
            {"op": "view", "in": ["v1"], "args": {"shape": [6]}, "error": "RuntimeError"},
            {"op": "clone", "in": ["v0"], "args": {}, "out": ["v2"]},
            {"op": "drop", "in": ["v0"]}
        ],
        "expect": {
            "v1": {"shape": [3, 2], "stride": [1, 3], "offset": 0, "dtype": "float32", "storage": 0,
                   "storage_nbytes": 24, "contiguous": false, "version": 1, "values": [0, 6, 2, 8, 4, 10]},
            "v2": {"shape": [2, 3], "stride": [3, 1], "offset": 0, "dtype": "float32", "storage": 1,
                   "storage_nbytes": 24, "contiguous": true, "version": 0, "values": [0, 2, 4, 6, 8, 10]}
        },
        "live_storages": 2, "live_bytes": 48
    })
}

fn verdict(program: &Value) -> Verdict {
    match Line::parse(&program.to_string()).expect("a program") {
        Line::Program(program) => run(&program),
        Line::Case(_) => panic!("a program was read as a single operation"),
    }
}

#[test]
fn a_true_record_passes() {
    assert_eq!(verdict(&recorded()), Verdict::Passed);
}

/// Whatever is observed, a record that says otherwise fails, and the report names what differs.
#[test]
fn a_false_record_fails() {
    for (place, value, named) in [
        ("/expect/v1/shape", json!([2, 3]), "shape"),
        ("/expect/v1/stride", json!([2, 1]), "stride"),
        ("/expect/v1/offset", json!(1), "offset"),
        ("/expect/v1/dtype", json!("float64"), "dtype"),
        ("/expect/v2/storage", json!(0), "storage"),
        ("/expect/v1/storage_nbytes", json!(48), "storage_nbytes"),
        ("/expect/v1/contiguous", json!(true), "contiguous"),
        ("/expect/v1/version", json!(0), "version"),
        ("/expect/v1/values/5", json!(10.1), "value 5"),
        ("/expect/v1/values", json!([0, 6, 2, 8, 4]), "values"),
        ("/live_storages", json!(1), "live storages"),
        ("/live_bytes", json!(24), "live bytes"),
        ("/steps/3/op", json!("reshape"), "must fail"),
        ("/steps/5/in/0", json!("v1"), "not bound"),
    ] {
        let mut program = recorded();
        *program.pointer_mut(place).expect(place) = value;
        let Verdict::Failed(_, detail) = verdict(&program) else {
            panic!("{place} passed")
        };
        assert!(detail.contains(named), "{place}: {detail}");
    }
}

#[test]
fn storages_that_must_be_one_are_told_apart() {
    let mut program = recorded();
    program["steps"][4]["op"] = json!("alias");
    program["expect"]["v2"]["version"] = json!(1);
    program["live_storages"] = json!(1);
    program["live_bytes"] = json!(24);
    let Verdict::Failed(op, detail) = verdict(&program) else {
        panic!("an alias passed for a clone")
    };
    assert_eq!(
        (op.as_str(), detail.as_str()),
        ("alias", "v2: shares a storage, and should not")
    );
    program["expect"]["v2"]["storage"] = json!(0);
    assert_eq!(verdict(&program), Verdict::Passed);
}

#[test]
fn an_operation_that_is_missing_is_named() {
    let mut program = recorded();
    program["steps"][2]["op"] = json!("no_such_op");
    assert_eq!(verdict(&program), Verdict::Missing("no_such_op".to_owned()));
}

fn case() -> Value {
    json!({
        "op": "chunk", "dtype": "float64",
        "args": [{"tensor": {"dtype": "float64", "shape": [3], "stride": [2], "offset": 1,
                             "storage": [9.0, 1.0, 9.0, 0.5, 9.0, 2.0]}}, 2],
        "kwargs": {"dim": 0},
        "out": [{"dtype": "float64", "shape": [2], "stride": [2], "offset": 1, "alias_of": 0, "values": [1.0, 0.5]},
                {"dtype": "float64", "shape": [1], "stride": [2], "offset": 5, "alias_of": 0, "values": [2.0]}]
    })
}

fn verdict_of_case(case: &Value) -> Verdict {
    let _alone = alone();
    Line::parse(&case.to_string())
        .expect("a case")
        .run(&mut |_| ())
}

#[test]
fn single_operations_are_compared() {
    assert_eq!(verdict_of_case(&case()), Verdict::Passed);
    for (place, value, named) in [
        ("/out/0/dtype", json!("float32"), "dtype"),
        ("/out/0/shape", json!([1, 2]), "shape"),
        ("/out/0/stride", json!([1]), "stride"),
        ("/out/0/offset", json!(0), "offset"),
        ("/out/0/alias_of", json!(null), "storage"),
        ("/out/1/alias_of", json!(1), "result 1: storage"),
        ("/out/0/values/1", json!(0.50001), "value 1"),
        ("/out/1/values", json!([]), "1 values, want 0"),
        ("/out", json!([]), "2 results, want 0"),
        ("/out", json!({"scalar": 1}), "2 results, want 1"),
        ("/args/1", json!("two"), "cannot be written"),
    ] {
        let mut case = case();
        *case.pointer_mut(place).expect(place) = value;
        let Verdict::Failed(op, detail) = verdict_of_case(&case) else {
            panic!("{place} passed")
        };
        assert!(op == "chunk" && detail.contains(named), "{place}: {detail}");
    }
}

#[test]
fn gradients_are_compared() {
    for (gradient, passes) in [
        (json!([1.0, 1.0, 1.0]), true),
        (json!([1.0, 1.0, 1.001]), false),
        (json!([1.0, 1.0]), false),
        (json!(null), false),
    ] {
        let mut case = case();
        case["grads"] = json!({"0": gradient});
        match verdict_of_case(&case) {
            Verdict::Passed => assert!(passes, "{gradient}"),
            Verdict::Failed(_, detail) => {
                assert!(
                    !passes && detail.starts_with("gradient of tensor 0: "),
                    "{detail}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn calls_that_must_fail_fail_or_cannot_be_written() {
    let failing = |kwargs: Value, first: Value, error: &str| {
        let mut case = case();
        let fields = case.as_object_mut().expect("an object");
        fields.remove("out");
        fields.insert("error".to_owned(), json!(error));
        fields.insert("kwargs".to_owned(), kwargs);
        if !first.is_null() {
            case["args"][0] = first;
        }
        verdict_of_case(&case)
    };
    assert_eq!(
        failing(json!({"dim": 7}), json!(null), "IndexError"),
        Verdict::Passed
    );
    assert!(matches!(
        failing(json!({"dim": 0}), json!(null), "IndexError"),
        Verdict::Failed(..)
    ));
    assert_eq!(
        failing(json!({}), json!(2), "TypeError"),
        Verdict::Unwritable
    );
}

#[test]
fn a_tensor_given_twice_is_one_tensor() {
    let tensor =
        json!({"dtype": "int64", "shape": [2], "stride": [1], "offset": 0, "storage": [1, 2]});
    let case = json!({
        "op": "maximum", "dtype": "int64", "args": [{"tensor": tensor}, {"same": 0}], "kwargs": {},
        "out": {"dtype": "int64", "shape": [2], "stride": [1], "offset": 0, "alias_of": null, "values": [1, 2]}
    });
    assert_eq!(verdict_of_case(&case), Verdict::Passed);
}

#[test]
fn lines_that_make_no_sense_are_refused() {
    for line in [
        "",
        "{}",
        "[]",
        r#"{"steps": 1}"#,
        r#"{"op": "abs", "args": [{"what": 1}], "kwargs": {}, "error": "E"}"#,
    ] {
        assert!(Line::parse(line).is_err(), "{line}");
    }
    assert!(
        read(Path::new("no/such/file"))
            .expect_err("no file")
            .contains("no/such/file")
    );
}
