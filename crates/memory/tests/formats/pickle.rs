//! A pickle of protocol 2 to 4 as PyTorch's viewer reads it, into JSON. What that viewer does not know is refused.

use serde_json::{Map, Value};

#[derive(Clone, Debug)]
enum Item {
    Mark,
    Value(Value),
}

pub fn read(bytes: &[u8]) -> Value {
    assert_eq!(bytes[0], 0x80);
    assert!((2..=4).contains(&bytes[1]));
    let (mut at, mut stack, mut memo) = (2, Vec::new(), Vec::new());
    let mut take = |n: usize| {
        at += n;
        &bytes[at - n..at]
    };
    let number = |b: &[u8]| b.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    loop {
        let op = take(1)[0];
        match op {
            b'.' => break,
            b'(' => stack.push(Item::Mark),
            b'}' => stack.push(Item::Value(Value::Object(Map::new()))),
            b']' => stack.push(Item::Value(Value::Array(vec![]))),
            b'K' => stack.push(Item::Value(take(1)[0].into())),
            b'J' => {
                let n = i32::from_le_bytes(take(4).try_into().unwrap());
                stack.push(Item::Value(n.into()));
            }
            0x8a => {
                let len = take(1)[0] as usize;
                assert!((1..=8).contains(&len), "the viewer's numbers have 8 bytes");
                let n = number(take(len));
                assert!(n < 1 << 53, "the viewer's numbers are exact to 2^53");
                stack.push(Item::Value(n.into()));
            }
            0x88 | 0x89 => stack.push(Item::Value((op == 0x88).into())),
            b'X' => {
                let len = number(take(4)) as usize;
                let text = std::str::from_utf8(take(len)).unwrap().to_owned();
                stack.push(Item::Value(text.into()));
            }
            // A list or dict must be whole when it is remembered: values here are copied.
            b'r' => {
                assert_eq!(number(take(4)) as usize, memo.len());
                memo.push(stack.last().unwrap().clone());
            }
            b'j' => stack.push(memo[number(take(4)) as usize].clone()),
            0x86 => {
                let b = value(stack.pop());
                let a = value(stack.pop());
                stack.push(Item::Value(vec![a, b].into()));
            }
            b'e' | b'u' => {
                let mark = stack.iter().rposition(|i| matches!(i, Item::Mark)).unwrap();
                let items: Vec<Value> = stack
                    .drain(mark..)
                    .skip(1)
                    .map(|i| value(Some(i)))
                    .collect();
                assert!(
                    items.len() <= 1000,
                    "a batch is one call of the viewer's script"
                );
                let Some(Item::Value(target)) = stack.last_mut() else {
                    panic!("nothing to fill")
                };
                match target {
                    Value::Array(list) => list.extend(items),
                    Value::Object(map) => {
                        for pair in items.chunks(2) {
                            let new =
                                map.insert(pair[0].as_str().unwrap().to_owned(), pair[1].clone());
                            assert!(new.is_none(), "{} twice", pair[0]);
                        }
                    }
                    other => panic!("{other} is no container"),
                }
            }
            other => panic!("the viewer does not know the opcode {other:#x}"),
        }
    }
    assert_eq!((at, stack.len()), (bytes.len(), 1));
    value(stack.pop())
}

fn value(item: Option<Item>) -> Value {
    match item {
        Some(Item::Value(value)) => value,
        other => panic!("{other:?} is no value"),
    }
}
