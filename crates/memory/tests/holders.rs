//! Who holds what, against a naive model: graphs of objects that keep tensors, made up here.

use osteon_memory::{
    Attachment, Graph, HeldBy, Holder, Link, Mode, Role, Site, Step, Storage, Viewer, dominators,
    holders, map, mark, pins, retained, set_graph,
};
use osteon_spec::{DType, Device, Layout};
use proptest::prelude::*;
use serde_json::Value;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// Lists are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    set_graph(&Model);
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// A node of the model: an operation, what it saved, and the nodes before it.
struct Node {
    op: &'static str,
    site: Site,
    saved: Vec<Viewer>,
    before: Vec<Arc<Node>>,
}

/// What the model attaches to a tensor: its node, and its gradient.
struct Meta {
    node: Option<Arc<Node>>,
    gradient: Option<Viewer>,
}

struct Model;

impl Graph for Model {
    fn links(&self, object: &Attachment, link: &mut dyn FnMut(Link<'_>)) {
        if let Some(meta) = object.downcast_ref::<Meta>() {
            if let Some(node) = &meta.node {
                link(Link::Object(node.clone()));
            }
            if let Some(gradient) = &meta.gradient {
                link(Link::Tensor(gradient));
            }
        } else if let Some(node) = object.downcast_ref::<Node>() {
            node.before
                .iter()
                .for_each(|n| link(Link::Object(n.clone())));
            node.saved.iter().for_each(|v| link(Link::Tensor(v)));
        }
    }

    fn place(&self, object: &Attachment) -> Option<(&'static str, Site)> {
        object.downcast_ref::<Node>().map(|n| (n.op, n.site))
    }
}

#[track_caller]
fn make(bytes: usize) -> Storage {
    Storage::allocate(bytes, &Device::cpu(), "zeros", Location::caller()).unwrap()
}

#[track_caller]
fn look(storage: &Storage, n: usize, op: &'static str, role: Role) -> Viewer {
    let layout = Layout::contiguous(&[n]).unwrap();
    Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        op,
        Location::caller(),
        role,
    )
    .unwrap()
}

#[track_caller]
fn tensor(bytes: usize) -> Viewer {
    look(&make(bytes), bytes / 4, "zeros", Role::Tensor)
}

#[track_caller]
fn node(op: &'static str, saved: Vec<Viewer>, before: Vec<Arc<Node>>) -> Arc<Node> {
    let site = Location::caller();
    Arc::new(Node {
        op,
        site,
        saved,
        before,
    })
}

fn attach(tensor: &Viewer, node: Option<Arc<Node>>, gradient: Option<Viewer>) {
    let meta: Attachment = Arc::new(Meta { node, gradient });
    assert!(tensor.attachment().set(meta).is_ok());
}

fn narrow(text: &str) {
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}

const HERE: &str = file!();

/// `total = total + loss`: each step's activation is kept through the graph of the sum.
#[test]
fn a_graph_kept_by_a_sum() {
    let _alone = alone();
    let mut total: Option<Viewer> = None;
    let mut sum: Option<Arc<Node>> = None;
    let before = mark();
    let (mut made, mut saved, mut added) = (0, 0, 0);
    for _ in 0..3 {
        made = line!() + 1;
        let activation = tensor(40_000);
        saved = line!() + 1;
        let kept = look(activation.storage(), 10_000, "mul", Role::Saved);
        let mul = node("mul", vec![kept], vec![]);
        added = line!() + 1;
        let next = tensor(4);
        let add = node("add", vec![], sum.take().into_iter().chain([mul]).collect());
        attach(&next, Some(add.clone()), None);
        (total, sum) = (Some(next), Some(add));
    }
    drop(sum);
    let total = total.unwrap();
    total.set_label("total");
    let grown = osteon_memory::diff(&before);
    let largest = &grown.entries[0];
    assert_eq!((largest.storages, largest.bytes), (3, 120_000));
    assert!(matches!(largest.held, HeldBy::Graph { op: "mul", .. }));
    let root = largest.root.as_ref().unwrap();
    assert_eq!(
        (root.label.as_deref(), root.site.line()),
        (Some("total"), added)
    );
    assert_eq!(
        grown.to_string().split("+4 B").next().unwrap(),
        format!(
            "+117 KiB  +3 storages  zeros at {HERE}:{made}\n            \
             held by the graph: saved for backward by mul at {HERE}:{saved}\n            \
             in the graph of \"total\" zeros at {HERE}:{added}\n"
        )
    );
    // The map tells the graph's bytes, by who saved them.
    let now = map();
    let graph = now.graph().unwrap();
    assert_eq!(
        (graph.len(), graph[0].bytes, graph[0].storages),
        (1, 120_000, 3)
    );
    let text = now.to_string();
    narrow(&text);
    assert!(
        text.contains("kept by the graph of derivatives alone: 117 KiB\n"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&now.to_json().unwrap()).unwrap();
    assert_eq!(json["totals"]["graph"], 120_000);
    assert_eq!(
        (&json["graph"][0]["op"], &json["graph"][0]["bytes"]),
        (&"mul".into(), &120_000.into())
    );
    let picture = now.picture().unwrap();
    assert_eq!(
        (picture.graph[0].op.as_str(), picture.graph[0].bytes),
        ("mul", 120_000)
    );
    // The total alone holds them: 3 blocks of 40,960 bytes and its own of 64.
    assert_eq!(retained(&total).unwrap(), 3 * 40_960 + 64);
    let list = dominators().unwrap();
    assert_eq!(
        (list.entries[0].retained, list.entries[0].storages),
        (3 * 40_960 + 64, 4)
    );
    assert_eq!(list.entries[0].tensor.label.as_deref(), Some("total"));
    narrow(&list.to_string());
    assert!(
        list.to_string()
            .contains("   120 KiB  4 storages  \"total\" zeros at "),
        "{list}"
    );
    let json: Value = serde_json::from_str(&list.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["kind"], &json["entries"][0]["retained"]),
        (&"dominators".into(), &122_944.into())
    );
    // The first activation, three additions away.
    let first = now.storages.iter().find(|s| s.nbytes == 40_000).unwrap();
    let handle_free = || {
        let meta = total
            .attachment()
            .get()
            .unwrap()
            .downcast_ref::<Meta>()
            .unwrap();
        let mut node = meta.node.clone().unwrap();
        while let Some(before) = node.before.first().filter(|n| n.op == "add") {
            node = before.clone();
        }
        node.before[0].saved[0].storage().clone()
    };
    let storage = handle_free();
    assert_eq!(storage.id(), first.id);
    let held = holders(&storage).unwrap();
    let [Holder::Tensor { tensor, path }, Holder::Handles(1)] = &held.holders[..] else {
        panic!("{held}");
    };
    assert_eq!(tensor.label.as_deref(), Some("total"));
    let ops: Vec<_> = path
        .iter()
        .map(|s| match s {
            Step::Node { op, .. } => *op,
            Step::Tensor(t) => {
                assert_eq!(t.role, Role::Saved);
                t.op
            }
        })
        .collect();
    assert_eq!(ops, ["add", "add", "add", "mul", "mul"]);
    let text = held.to_string();
    narrow(&text);
    assert!(
        text.contains("\n  \"total\" zeros at ") && text.contains("\n    -> graph: mul at "),
        "{text}"
    );
    assert!(text.ends_with("\n  1 handle to the storage\n"), "{text}");
    let json: Value = serde_json::from_str(&held.to_json().unwrap()).unwrap();
    assert_eq!(json["holders"][0]["path"][3]["node"]["op"], "mul");
    assert_eq!(json["holders"][0]["path"][4]["tensor"]["saved"], true);
    assert_eq!(
        json["holders"][1],
        serde_json::json!({"holder": "handles", "handles": 1})
    );
    drop((storage, total));
    assert!(map().graph().unwrap().is_empty());
}

/// A gradient is held through its tensor, unless somebody has it in hand too.
#[test]
fn gradients_and_guards() {
    let _alone = alone();
    let weight = tensor(400);
    weight.set_label("weight");
    let gradient = tensor(400);
    let in_hand = gradient.clone();
    attach(&weight, None, Some(gradient));
    let bytes = in_hand.storage().clone();
    let of = |held: &osteon_memory::Holders| held.holders.len();
    // The tensor in hand, the weight whose gradient it is, and our handle.
    assert_eq!(of(&holders(&bytes).unwrap()), 3);
    assert_eq!(retained(&weight).unwrap(), 448);
    drop(in_hand);
    let held = holders(&bytes).unwrap();
    let Holder::Tensor { tensor, path } = &held.holders[0] else {
        panic!("{held}")
    };
    assert_eq!(
        (of(&held), tensor.label.as_deref(), path.len()),
        (2, Some("weight"), 1)
    );
    let guard = bytes.guard(Mode::Read, Location::caller()).unwrap();
    drop(bytes);
    let held = holders(guard.storage()).unwrap();
    assert!(
        matches!(held.holders[1], Holder::Guard(g) if g.mode == Mode::Read),
        "{held}"
    );
    // While the guard is there, the weight does not hold the gradient alone.
    assert_eq!(retained(&weight).unwrap(), 448);
    drop(guard);
    assert_eq!(retained(&weight).unwrap(), 896);
}

#[test]
fn pins_are_told_by_what_compacting_would_free() {
    let _alone = alone();
    let giant = make(1 << 20);
    let line = line!() + 1;
    let four = look(&giant, 4, "slice", Role::View);
    let shared = tensor(1 << 21);
    let part = look(shared.storage(), 10, "narrow", Role::View);
    drop(giant);
    let list = pins().unwrap();
    let seen: Vec<_> = list
        .entries
        .iter()
        .map(|p| (p.storage, p.beyond(), p.reached, p.frees))
        .collect();
    assert_eq!(
        seen,
        [
            (four.storage().id(), (1 << 20) - 16, 16, (1 << 20) - 16),
            (part.storage().id(), (1 << 21) - 40, 40, 0),
        ]
    );
    let text = list.to_string();
    narrow(&text);
    assert!(
        text.contains(&format!(
            "  1.00 MiB  1 tensor  slice at {HERE}:{line}  reaching 16 B  of 1 storage\n"
        )),
        "{text}"
    );
    assert!(
        text.contains("compact() would free 1.00 MiB\n")
            && text.ends_with("which others need too\n"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&list.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["schema"], &json["kind"]),
        (&1.into(), &"pins".into())
    );
    assert_eq!(json["entries"][0]["frees"], (1 << 20) - 16);
    assert_eq!(json["lines"][0]["beyond"], (1 << 20) - 16);
    // Ten rows of one line on four storages: each storage is freed once.
    let batches: Vec<_> = (0..4).map(|_| make(40_960)).collect();
    let rows: Vec<_> = (0..10)
        .map(|i| look(&batches[i % 4], 4, "row", Role::View))
        .collect();
    drop(batches);
    let list = pins().unwrap();
    let line = list.lines.iter().find(|l| l.op == "row").unwrap();
    assert_eq!((line.tensors, line.storages, line.reached), (10, 4, 160));
    assert_eq!(
        (line.beyond, line.frees),
        (10 * (40_960 - 16), 4 * 40_960 - 160)
    );
    drop(rows);
    drop((four, shared, part));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What a tensor retains is what cannot be reached from the others' hands, by a walk without it.
    #[test]
    fn retained_is_what_only_it_reaches(
        storages in 1usize..6,
        nodes in prop::collection::vec((any::<u16>(), any::<u16>()), 0..10),
        tensors in prop::collection::vec((any::<usize>(), any::<Option<usize>>(), any::<bool>()), 1..6),
        handle in any::<Option<usize>>(),
    ) {
        let _alone = alone();
        let bytes: Vec<usize> = (0..storages).map(|i| 4096 << i).collect();
        let stores: Vec<_> = bytes.iter().map(|&b| make(b)).collect();
        // Node i keeps nodes before it, and saves storages, as the bits say.
        let mut graph: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let mut made: Vec<Arc<Node>> = Vec::new();
        for (i, &(before, saves)) in nodes.iter().enumerate() {
            let before: Vec<_> = (0..i).filter(|j| before >> j & 1 == 1).collect();
            let saves: Vec<_> = (0..storages).filter(|j| saves >> j & 1 == 1).collect();
            made.push(node(
                "op",
                saves.iter().map(|&s| look(&stores[s], 1, "op", Role::Saved)).collect(),
                before.iter().map(|&n| made[n].clone()).collect(),
            ));
            graph.push((before, saves));
        }
        let hands: Vec<_> = tensors
            .iter()
            .map(|&(storage, of, twice)| {
                let storage = storage % storages;
                let of = of.filter(|_| !graph.is_empty()).map(|n| n % graph.len());
                let tensor = look(&stores[storage], 1, "tensor", Role::Tensor);
                attach(&tensor, of.map(|n| made[n].clone()), None);
                let second = twice.then(|| tensor.clone());
                (tensor, second, storage, of)
            })
            .collect();
        drop(made);
        let handle = handle.map(|h| h % storages);
        let held = handle.map(|h| stores[h].clone());
        let reach = |without: Option<usize>| {
            let mut reached = vec![false; storages];
            reached.iter_mut().enumerate().for_each(|(s, r)| *r = handle == Some(s));
            let mut stack = Vec::new();
            for (i, (_, _, storage, of)) in hands.iter().enumerate() {
                if Some(i) != without {
                    reached[*storage] = true;
                    stack.extend(*of);
                }
            }
            while let Some(n) = stack.pop() {
                graph[n].1.iter().for_each(|&s| reached[s] = true);
                stack.extend(&graph[n].0);
            }
            reached
        };
        drop(stores);
        let all = reach(None);
        for (i, (tensor, ..)) in hands.iter().enumerate() {
            let without = reach(Some(i));
            let expected: usize = (0..storages).filter(|&s| all[s] && !without[s]).map(|s| bytes[s]).sum();
            prop_assert_eq!(retained(tensor).unwrap(), expected as u64);
            let held = holders(tensor.storage()).unwrap();
            let direct = held.holders.iter().filter(|h| matches!(h, Holder::Tensor { path, .. } if path.is_empty()));
            let on_it = hands.iter().filter(|(t, ..)| t.storage() == tensor.storage());
            prop_assert_eq!(direct.count(), on_it.count());
        }
        drop((hands, held));
    }
}
