//! The machine: reads opcodes, builds the graph.

use super::opcodes::*;
use super::text::{decimal, memo_key, raw_unicode_escape, string_literal};
use super::value::{Edit, Graph, Id, Make, Node, Object, Span, grow};
use crate::error::{bad, out_of_memory};
use crate::source::Cursor;
use osteon_spec::Result;
use std::collections::HashMap;

/// The most opcodes that are read; each takes a byte, so a smaller pickle is bounded by its own size.
const MAX_OPCODES: u64 = 1 << 26;

/// Reads one pickle, up to its `STOP`: the graph and its root. The cursor is left behind the `STOP`.
///
/// # Errors
/// The first opcode that cannot be, with its byte.
pub(crate) fn run(cursor: &mut Cursor<'_>) -> Result<(Graph, Id)> {
    let mut machine = Machine {
        graph: Graph::default(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    for _ in 0..MAX_OPCODES {
        let at = cursor.pos();
        match machine.step(cursor) {
            Ok(Some(root)) => return Ok((machine.graph, root)),
            Ok(None) => {}
            Err(e) => return Err(e.context(format_args!("pickle opcode at byte {at}"))),
        }
    }
    Err(bad(format!(
        "the pickle has more than {MAX_OPCODES} opcodes"
    )))
}

struct Machine {
    graph: Graph,
    stack: Vec<Id>,
    /// Heights of the stack at each open `MARK`.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl Machine {
    fn step(&mut self, c: &mut Cursor<'_>) -> Result<Option<Id>> {
        match c.byte()? {
            STOP => return self.pop().map(Some),
            PROTO => match c.byte()? {
                p @ 0..=5 => self.graph.protocol = p,
                p => return Err(bad(format!("protocol {p} is not known"))),
            },
            FRAME => {
                let n = u64::from_le_bytes(c.array()?);
                if n > c.remaining() {
                    return Err(bad(format!(
                        "a frame of {n} bytes, but {} are left",
                        c.remaining()
                    )));
                }
            }

            MARK => {
                grow(&mut self.marks, 1)?;
                self.marks.push(self.stack.len());
            }
            // On a mark, POP takes the mark.
            POP if self.marks.last() == Some(&self.stack.len()) => drop(self.marks.pop()),
            POP => drop(self.pop()?),
            POP_MARK => drop(self.pop_mark()?),
            DUP => {
                let top = self.top()?;
                self.push_id(top)?;
            }

            NONE => self.push(Node::None)?,
            NEWTRUE => self.push(Node::Bool(true))?,
            NEWFALSE => self.push(Node::Bool(false))?,
            BININT1 => {
                let n = c.byte()?;
                self.push(Node::Int(n.into()))?;
            }
            BININT2 => {
                let n = u16::from_le_bytes(c.array()?);
                self.push(Node::Int(n.into()))?;
            }
            BININT => {
                let n = i32::from_le_bytes(c.array()?);
                self.push(Node::Int(n.into()))?;
            }
            LONG1 => {
                let n = c.byte()?;
                self.push(long(c.take(n.into())?))?;
            }
            LONG4 => {
                let n = i32::from_le_bytes(c.array()?);
                let n = u64::try_from(n).map_err(|_| bad(format!("an integer of {n} bytes")))?;
                self.push(long(c.take(n)?))?;
            }
            INT => {
                let node = match &*c.line()? {
                    b"00" => Node::Bool(false),
                    b"01" => Node::Bool(true),
                    text => decimal(text)?,
                };
                self.push(node)?;
            }
            LONG => {
                let line = c.line()?;
                self.push(decimal(line.strip_suffix(b"L").unwrap_or(&line))?)?;
            }
            BINFLOAT => {
                let x = f64::from_be_bytes(c.array()?);
                self.push(Node::Float(x))?;
            }
            FLOAT => {
                let line = c.line()?;
                let x = std::str::from_utf8(&line).ok().and_then(|t| t.parse().ok());
                self.push(Node::Float(
                    x.ok_or_else(|| bad("a number that is not one"))?,
                ))?;
            }

            SHORT_BINUNICODE => {
                let n = c.byte()?;
                self.push(Node::Str(c.take(n.into())?))?;
            }
            BINUNICODE => {
                let n = u32::from_le_bytes(c.array()?);
                self.push(Node::Str(c.take(n.into())?))?;
            }
            BINUNICODE8 => {
                let n = u64::from_le_bytes(c.array()?);
                self.push(Node::Str(c.take(n)?))?;
            }
            UNICODE => {
                let line = c.line()?;
                self.push(Node::Str(raw_unicode_escape(&line)?))?;
            }
            SHORT_BINSTRING => {
                let n = c.byte()?;
                self.push(Node::Str2(c.take(n.into())?))?;
            }
            BINSTRING => {
                let n = i32::from_le_bytes(c.array()?);
                let n = u64::try_from(n).map_err(|_| bad(format!("a string of {n} bytes")))?;
                self.push(Node::Str2(c.take(n)?))?;
            }
            STRING => {
                let line = c.line()?;
                self.push(Node::Str2(string_literal(&line)?))?;
            }
            SHORT_BINBYTES => {
                let len = u64::from(c.byte()?);
                self.push(Node::Bytes(Span {
                    offset: c.skip(len)?,
                    len,
                }))?;
            }
            BINBYTES => {
                let len = u64::from(u32::from_le_bytes(c.array()?));
                self.push(Node::Bytes(Span {
                    offset: c.skip(len)?,
                    len,
                }))?;
            }
            BINBYTES8 => {
                let len = u64::from_le_bytes(c.array()?);
                self.push(Node::Bytes(Span {
                    offset: c.skip(len)?,
                    len,
                }))?;
            }
            BYTEARRAY8 => {
                let len = u64::from_le_bytes(c.array()?);
                self.push(Node::ByteArray(Span {
                    offset: c.skip(len)?,
                    len,
                }))?;
            }

            EMPTY_TUPLE => self.push(Node::Tuple(Box::default()))?,
            TUPLE1 => self.tuple(1)?,
            TUPLE2 => self.tuple(2)?,
            TUPLE3 => self.tuple(3)?,
            TUPLE => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items.into()))?;
            }
            EMPTY_LIST => self.push(Node::List(Vec::new()))?,
            LIST => {
                let items = self.pop_mark()?;
                self.push(Node::List(items))?;
            }
            EMPTY_DICT => self.push(Node::Dict(Vec::new()))?,
            DICT => {
                let items = pairs(&self.pop_mark()?)?;
                self.push(Node::Dict(items))?;
            }
            EMPTY_SET => self.push(Node::Set(Vec::new()))?,
            FROZENSET => {
                let items = self.pop_mark()?;
                self.push(Node::FrozenSet(items.into()))?;
            }
            APPEND => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            APPENDS => {
                let items = self.pop_mark()?;
                self.append(&items)?;
            }
            SETITEM => {
                let (v, k) = (self.pop()?, self.pop()?);
                self.set_items(&[(k, v)])?;
            }
            SETITEMS => {
                let items = pairs(&self.pop_mark()?)?;
                self.set_items(&items)?;
            }
            ADDITEMS => {
                let items = self.pop_mark()?;
                self.add_items(&items)?;
            }

            GLOBAL => {
                let (module, name) = (text_line(c)?, text_line(c)?);
                self.push(Node::Global { module, name })?;
            }
            STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Some(name), Some(module)) = (self.graph.str(name), self.graph.str(module))
                else {
                    return Err(bad("a global whose name is not a string"));
                };
                self.push(Node::Global {
                    module: module.into(),
                    name: name.into(),
                })?;
            }
            REDUCE => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.object(Make::Reduce, callable, args)?;
            }
            NEWOBJ => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.object(Make::New, callable, args)?;
            }
            NEWOBJ_EX => {
                let (kwargs, args, callable) = (self.pop()?, self.pop()?, self.pop()?);
                self.object(Make::NewEx(kwargs), callable, args)?;
            }
            INST => {
                let (module, name) = (text_line(c)?, text_line(c)?);
                let args = self.pop_mark()?;
                let class = self.graph.push(Node::Global { module, name })?;
                self.instance(class, &args)?;
            }
            OBJ => {
                let items = self.pop_mark()?;
                let (&class, args) = items.split_first().ok_or_else(|| bad("no class to make"))?;
                self.instance(class, args)?;
            }
            BUILD => {
                let state = self.pop()?;
                match self.target()? {
                    Node::Object(o) => {
                        grow(&mut o.edits, 1)?;
                        o.edits.push(Edit::State(state));
                    }
                    _ => return Err(bad("sets the state of a value that has none")),
                }
            }
            BINPERSID => {
                let id = self.pop()?;
                self.push(Node::Persistent(id))?;
            }
            PERSID => {
                let id = self.graph.push(Node::Str(c.line()?.into()))?;
                self.push(Node::Persistent(id))?;
            }
            EXT1 | EXT2 | EXT4 => return Err(bad("an entry of Python's extension registry")),
            NEXT_BUFFER | READONLY_BUFFER => return Err(bad("a buffer kept outside the pickle")),

            GET => {
                let key = memo_key(&c.line()?)?;
                self.recall(key)?;
            }
            BINGET => {
                let key = c.byte()?;
                self.recall(key.into())?;
            }
            LONG_BINGET => {
                let key = u32::from_le_bytes(c.array()?);
                self.recall(key.into())?;
            }
            PUT => {
                let key = memo_key(&c.line()?)?;
                self.remember(key)?;
            }
            BINPUT => {
                let key = c.byte()?;
                self.remember(key.into())?;
            }
            LONG_BINPUT => {
                let key = u32::from_le_bytes(c.array()?);
                self.remember(key.into())?;
            }
            MEMOIZE => self.remember(self.memo.len() as u64)?,
            op => return Err(bad(format!("{op:#04x} is not an opcode"))),
        }
        Ok(None)
    }

    fn push(&mut self, node: Node) -> Result<()> {
        let id = self.graph.push(node)?;
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<()> {
        grow(&mut self.stack, 1)?;
        self.stack.push(id);
        Ok(())
    }

    /// The height below which the last open mark forbids to reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Id> {
        self.stack[self.floor()..]
            .last()
            .copied()
            .ok_or_else(|| bad("the stack is empty"))
    }

    fn pop(&mut self) -> Result<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>> {
        let mark = self
            .marks
            .pop()
            .ok_or_else(|| bad("there is no mark on the stack"))?;
        let mut items = Vec::new();
        grow(&mut items, self.stack.len() - mark)?;
        items.extend(self.stack.drain(mark..));
        Ok(items)
    }

    fn tuple(&mut self, n: usize) -> Result<()> {
        let start = self
            .stack
            .len()
            .checked_sub(n)
            .filter(|&s| s >= self.floor());
        let start = start.ok_or_else(|| bad("the stack is empty"))?;
        let items = self.stack.drain(start..).collect();
        self.push(Node::Tuple(items))
    }

    /// The value that an opcode changes: the top of the stack.
    fn target(&mut self) -> Result<&mut Node> {
        let top = self.top()?;
        Ok(self.graph.node_mut(top))
    }

    fn append(&mut self, items: &[Id]) -> Result<()> {
        match self.target()? {
            Node::List(v) => {
                grow(v, items.len())?;
                v.extend(items);
            }
            Node::Object(o) => edit(o, items.iter().map(|&v| Edit::Append(v)))?,
            _ => return Err(bad("appends to a value that is not a list")),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[(Id, Id)]) -> Result<()> {
        match self.target()? {
            Node::Dict(v) => {
                grow(v, items.len())?;
                v.extend(items);
            }
            Node::Object(o) => edit(o, items.iter().map(|&(k, v)| Edit::Item(k, v)))?,
            _ => return Err(bad("sets items of a value that is not a dict")),
        }
        Ok(())
    }

    fn add_items(&mut self, items: &[Id]) -> Result<()> {
        match self.target()? {
            Node::Set(v) => {
                grow(v, items.len())?;
                v.extend(items);
            }
            Node::Object(o) => edit(o, items.iter().map(|&v| Edit::Add(v)))?,
            _ => return Err(bad("adds to a value that is not a set")),
        }
        Ok(())
    }

    fn object(&mut self, make: Make, callable: Id, args: Id) -> Result<()> {
        self.push(Node::Object(Box::new(Object {
            make,
            callable,
            args,
            edits: Vec::new(),
        })))
    }

    /// Protocol 0's instances: without arguments, `__init__` is not called.
    fn instance(&mut self, class: Id, args: &[Id]) -> Result<()> {
        let make = if args.is_empty() {
            Make::New
        } else {
            Make::Reduce
        };
        let args = self.graph.push(Node::Tuple(args.into()))?;
        self.object(make, class, args)
    }

    fn remember(&mut self, key: u64) -> Result<()> {
        let top = self.top()?;
        self.memo.try_reserve(1).map_err(|_| out_of_memory(16))?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<()> {
        match self.memo.get(&key) {
            Some(&id) => self.push_id(id),
            None => Err(bad(format!("memo entry {key} is not there"))),
        }
    }
}

fn edit(o: &mut Object, edits: impl ExactSizeIterator<Item = Edit>) -> Result<()> {
    grow(&mut o.edits, edits.len())?;
    o.edits.extend(edits);
    Ok(())
}

fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>> {
    match items.as_chunks() {
        (pairs, []) => {
            let mut out = Vec::new();
            grow(&mut out, pairs.len())?;
            out.extend(pairs.iter().map(|&[k, v]| (k, v)));
            Ok(out)
        }
        _ => Err(bad("a key without a value")),
    }
}

/// A two's complement integer, lowest byte first.
fn long(bytes: Box<[u8]>) -> Node {
    let sign = if bytes.last().is_some_and(|b| b & 0x80 != 0) {
        0xff
    } else {
        0
    };
    if bytes.len() > 8 {
        return Node::Long(bytes);
    }
    let mut full = [sign; 8];
    full[..bytes.len()].copy_from_slice(&bytes);
    Node::Int(i64::from_le_bytes(full))
}

fn text_line(c: &mut Cursor<'_>) -> Result<Box<str>> {
    let line = String::from_utf8(c.line()?).map_err(|_| bad("a name that is not UTF-8"))?;
    Ok(line.into())
}
