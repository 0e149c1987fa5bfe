//! Pickles that Python wrote, and pickles that it never would.

use super::*;
use crate::source::{Cursor, Source};
use osteon_spec::Result;

fn read(bytes: &[u8]) -> Result<(Graph, Id)> {
    let source = Source::from_bytes(bytes.to_vec());
    run(&mut Cursor::new(&source, 0, source.len()))
}

/// Plain data as Python's `ascii` shows it.
fn ascii(g: &Graph, id: Id, bytes: &[u8]) -> String {
    let list = |ids: &[Id]| {
        ids.iter()
            .map(|&i| ascii(g, i, bytes))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let span = |s: &Span| &bytes[s.offset as usize..(s.offset + s.len) as usize];
    match g.node(id) {
        Node::None => "None".into(),
        Node::Bool(b) => if *b { "True" } else { "False" }.into(),
        Node::Int(n) => n.to_string(),
        Node::Long(b) => {
            let sign = if b.last().unwrap() & 0x80 != 0 {
                0xff
            } else {
                0
            };
            let mut full = [sign; 16];
            full[..b.len()].copy_from_slice(b);
            i128::from_le_bytes(full).to_string()
        }
        Node::Float(x) => format!("{x:?}"),
        Node::Str(s) | Node::Str2(s) => quoted(std::str::from_utf8(s).unwrap()),
        Node::Bytes(s) => format!("b'{}'", String::from_utf8_lossy(span(s))),
        Node::ByteArray(s) => format!("bytearray(b'{}')", String::from_utf8_lossy(span(s))),
        Node::Tuple(v) if v.len() == 1 => format!("({},)", list(v)),
        Node::Tuple(v) => format!("({})", list(v)),
        Node::List(v) => format!("[{}]", list(v)),
        Node::Set(v) if v.is_empty() => "set()".into(),
        Node::Set(v) => format!("{{{}}}", list(v)),
        Node::FrozenSet(v) => format!("frozenset({{{}}})", list(v)),
        Node::Dict(v) => {
            let show = |&(k, v)| format!("{}: {}", ascii(g, k, bytes), ascii(g, v, bytes));
            format!("{{{}}}", v.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        other => panic!("{other:?} is not plain data"),
    }
}

fn quoted(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in s.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\\' => out.push_str("\\\\"),
            c if c.is_ascii() => out.push(c),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push(quote);
    out
}

/// Pickles of every protocol with what Python's `ascii` says of the object.
fn recorded() -> Vec<(Vec<u8>, &'static str)> {
    let lines = include_str!("../../tests/data/pickles.tsv").lines();
    lines
        .map(|line| {
            let (hex, text) = line.split_once('\t').unwrap();
            let (bytes, _) = hex.as_bytes().as_chunks::<2>();
            let byte =
                |d: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
            (bytes.iter().map(byte).collect(), text)
        })
        .collect()
}

#[test]
fn what_python_pickled_is_read() {
    let recorded = recorded();
    assert!(recorded.len() > 200);
    for (bytes, text) in recorded {
        let (graph, root) = read(&bytes).unwrap();
        assert_eq!(ascii(&graph, root, &bytes), text, "{bytes:02x?}");
    }
}

/// Whether two graphs say the same with the same sharing: a walk in step that pairs nodes one to one.
fn same(a: (&Graph, Id, &[u8]), b: (&Graph, Id, &[u8])) -> bool {
    let (mut pairs, mut back) = (vec![None; a.0.len()], vec![None; b.0.len()]);
    let mut todo = vec![(a.1, b.1)];
    while let Some((x, y)) = todo.pop() {
        match (pairs[x as usize].replace(y), back[y as usize].replace(x)) {
            (None, None) => {}
            (Some(old_y), Some(old_x)) if old_y == y && old_x == x => continue,
            _ => return false,
        }
        let bytes =
            |s: &Span, of: &[u8]| of[s.offset as usize..(s.offset + s.len) as usize].to_vec();
        let alike = match (a.0.node(x), b.0.node(y)) {
            (Node::Bytes(s), Node::Bytes(t)) | (Node::ByteArray(s), Node::ByteArray(t)) => {
                bytes(s, a.2) == bytes(t, b.2)
            }
            (Node::Object(o), Node::Object(p)) => {
                let kinds = |o: &Object| {
                    o.edits
                        .iter()
                        .map(std::mem::discriminant)
                        .collect::<Vec<_>>()
                };
                std::mem::discriminant(&o.make) == std::mem::discriminant(&p.make)
                    && kinds(o) == kinds(p)
            }
            (m, n) => {
                let mut leaf = true;
                a.0.children(x, |_| leaf = false);
                std::mem::discriminant(m) == std::mem::discriminant(n) && (!leaf || m == n)
            }
        };
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        a.0.children(x, |c| xs.push(c));
        b.0.children(y, |c| ys.push(c));
        if !alike || xs.len() != ys.len() {
            return false;
        }
        todo.extend(xs.into_iter().zip(ys));
    }
    true
}

fn round_trip(bytes: &[u8]) -> Vec<u8> {
    let (graph, root) = read(bytes).unwrap();
    let mut out = Vec::new();
    emit(&graph, root, &Source::from_bytes(bytes.to_vec()), &mut out).unwrap();
    let (again, root_again) = read(&out).unwrap_or_else(|e| panic!("{e}: {out:02x?}"));
    assert!(
        same((&graph, root, bytes), (&again, root_again, &out)),
        "{bytes:02x?} became {out:02x?}"
    );
    out
}

#[test]
fn what_is_read_is_written_again() {
    for (bytes, text) in recorded() {
        let out = round_trip(&bytes);
        let (graph, root) = read(&out).unwrap();
        assert_eq!(ascii(&graph, root, &out), text);
    }
}

#[test]
fn sharing_and_cycles_survive() {
    // l = []; l.append(l)
    round_trip(b"\x80\x02]q\x00h\x00a.");
    // t = ([],); t[0].append(t): Python writes the tuple twice and drops one.
    round_trip(b"\x80\x02]q\x00h\x00\x85q\x01a0h\x01.");
    // The same with a tuple of five and with an object.
    round_trip(b"\x80\x02(]q\x00(h\x00NNNNtq\x01a1h\x01.");
    round_trip(b"\x80\x02cm\nf\nq\x00]q\x01h\x00h\x01\x85Rq\x02a0h\x02.");
    // Objects with all kinds of edits, among them two states.
    round_trip(b"\x80\x02cm\nC\n)\x81q\x00K\x01a(K\x02K\x03eK\x04K\x05s}bNb(h\x00Nu.");
    // A persistent id that is used twice, a set of objects, keyword arguments.
    round_trip(b"\x80\x02(K\x01Qq\x00h\x00t.");
    round_trip(b"\x80\x04\x8fq\x00(cm\nC\n)}\x92K\x01\x90(K\x02K\x03\x91\x86.");
}

#[test]
fn batches_are_as_python_makes_them() {
    for n in [1usize, 2, 999, 1000, 1001, 2000, 2500] {
        let list = [b"\x80\x02](", &*b"N".repeat(n), b"e."].concat();
        let dict = [b"\x80\x02}(", &*b"NN".repeat(n), b"u."].concat();
        let (list, dict) = (round_trip(&list), round_trip(&dict));
        // A lone item at the end has an opcode of its own.
        let many = n.div_ceil(1000) - usize::from(n % 1000 == 1);
        assert_eq!(list.iter().filter(|&&b| b == b'e').count(), many, "{n}");
        assert_eq!(dict.iter().filter(|&&b| b == b'u').count(), many, "{n}");
    }
}

#[test]
fn a_name_with_a_line_feed_does_not_become_opcodes() {
    // STACK_GLOBAL of 'm' and "f\ncposix\nsystem\n": written as GLOBAL, it would import posix.system.
    let mut pickle = b"\x80\x02X\x01\x00\x00\x00mX\x10\x00\x00\x00".to_vec();
    pickle.extend(b"f\ncposix\nsystem\n\x93.");
    let out = round_trip(&pickle);
    assert!(!out.contains(&b'c') || out.contains(&0x93));
    let (graph, root) = read(&out).unwrap();
    assert_eq!(graph.global(root), Some(("m", "f\ncposix\nsystem\n")));
}

#[test]
fn pickles_that_cannot_be_are_errors() {
    let broken: [&[u8]; 24] = [
        b"",
        b".",
        b"\x80\x06N.",
        b"\xff",
        b"N",
        b"(.",
        b"0.",
        b"t.",
        b"K",
        b"\x85.",
        b"(N\x86.",
        b"h\x00.",
        b"Nh\x00.",
        b"q\x00.",
        b"NNa.",
        b"]NNs.",
        b"}(Nu.",
        b"]Nb.",
        b"NN\x93.",
        b"X\xff\xff\xff\xffabc.",
        b"\x8b\xff\xff\xff\xff.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffx.",
        b"I12345678901234567890123456789012345678901234567890\n.",
        b"\x82\x01.",
    ];
    for bytes in broken {
        let e = read(bytes).expect_err(&format!("{bytes:02x?}"));
        assert!(
            e.is_format() && e.to_string().contains("byte"),
            "{bytes:02x?}: {e}"
        );
    }
}

#[test]
fn bombs_cost_no_more_than_their_bytes() {
    // A list of ten times the list before it, thirty deep: a graph of thirty nodes.
    let mut bomb = b"\x80\x02]q\x00".to_vec();
    for level in 0..30u8 {
        bomb.extend(b"](");
        bomb.extend([b'h', level].repeat(10));
        bomb.extend([b'e', b'q', level + 1]);
    }
    bomb.push(b'.');
    let (graph, _) = read(&bomb).unwrap();
    assert_eq!(graph.len(), 31);
    round_trip(&bomb);
    // Nesting a million deep neither recurses in reading nor in writing nor in dropping.
    let mut deep = b"N".to_vec();
    deep.extend([0x85].repeat(1_000_000));
    deep.push(b'.');
    let (graph, root) = read(&deep).unwrap();
    let mut out = Vec::new();
    emit(&graph, root, &Source::from_bytes(Vec::new()), &mut out).unwrap();
    assert_eq!(out.len(), deep.len() + 2);
    // Memo keys are names, not sizes.
    let (graph, _) = read(b"Nr\xff\xff\xff\xff.").unwrap();
    assert_eq!(graph.len(), 1);
}
