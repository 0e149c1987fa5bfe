//! Writes a graph as a pickle again.

use super::opcodes::*;
use super::value::{Edit, Graph, Id, Make, Node, Span, grow};
use crate::error::bad;
use crate::source::{Source, copy};
use osteon_spec::Result;
use std::io::Write;

/// Items to a batch, as Python writes them.
const BATCH: usize = 1000;

/// Writes the pickle of `root`: the same values, shared where they were shared. Its protocol is the
/// graph's own, at least 2: `torch.load(weights_only=True)` reads what it reads of the original. Byte
/// strings are copied from `source`, which the graph was read from.
pub(crate) fn emit(graph: &Graph, root: Id, source: &Source, out: &mut impl Write) -> Result<()> {
    let (shared, edges) = shared(graph, root)?;
    let mut emitter = Emitter {
        graph,
        source,
        out,
        shared,
        memo: vec![None; graph.len()],
        next: 0,
        work: Vec::new(),
        // An unfinished tuple can be met again inside a list that it holds; Python then writes it twice
        // and drops one. Hostile graphs could do that over and over.
        budget: 16 * (graph.len() as u64 + edges) + 1024,
    };
    emitter.write(&[PROTO, graph.protocol.max(2)])?;
    emitter.work.push(Work::Visit(root));
    while let Some(work) = emitter.work.pop() {
        emitter.step(work)?;
    }
    emitter.write(&[STOP])
}

/// Which nodes are met more than once on the way from the root; also the number of ways between nodes.
fn shared(graph: &Graph, root: Id) -> Result<(Vec<bool>, u64)> {
    let mut met = vec![false; graph.len()];
    let mut shared = vec![false; graph.len()];
    let mut todo = vec![root];
    let mut edges = 0;
    while let Some(id) = todo.pop() {
        edges += 1;
        if std::mem::replace(&mut met[id as usize], true) {
            shared[id as usize] = true;
            continue;
        }
        graph.children(id, |c| todo.push(c));
    }
    Ok((shared, edges))
}

/// What is still to be written, the next at the end.
#[derive(Clone, Copy)]
enum Work {
    Visit(Id),
    /// The children of a value that is made of them lie on the stack.
    Close(Id),
    Op(u8),
    /// The edits of an object from this one on, or the items of a container.
    Fill(Id, usize),
}

struct Emitter<'a, W> {
    graph: &'a Graph,
    source: &'a Source,
    out: &'a mut W,
    shared: Vec<bool>,
    memo: Vec<Option<u32>>,
    next: u32,
    work: Vec<Work>,
    budget: u64,
}

impl<W: Write> Emitter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(|e| osteon_spec::Error::io("cannot write", e))
    }

    fn step(&mut self, work: Work) -> Result<()> {
        self.budget = self.budget.checked_sub(1).ok_or_else(|| {
            bad("the pickle's values contain each other in too many ways to be rewritten")
        })?;
        match work {
            Work::Visit(id) => self.visit(id),
            Work::Close(id) => self.close(id),
            Work::Op(op) => self.write(&[op]),
            Work::Fill(id, from) => self.fill(id, from),
        }
    }

    /// Puts work in front of what is there, the first of it first.
    fn push(
        &mut self,
        work: impl IntoIterator<Item = Work, IntoIter: DoubleEndedIterator + ExactSizeIterator>,
    ) -> Result<()> {
        let work = work.into_iter();
        grow(&mut self.work, work.len())?;
        self.work.extend(work.rev());
        Ok(())
    }

    fn visit(&mut self, id: Id) -> Result<()> {
        if let Some(key) = self.memo[id as usize] {
            return self.recall(key);
        }
        match self.graph.node(id) {
            Node::None => return self.write(&[NONE]),
            Node::Bool(b) => return self.write(&[if *b { NEWTRUE } else { NEWFALSE }]),
            Node::Int(n) => return self.int(*n),
            Node::Float(x) => {
                self.write(&[BINFLOAT])?;
                return self.write(&x.to_be_bytes());
            }
            Node::Tuple(items) if items.is_empty() => return self.write(&[EMPTY_TUPLE]),
            Node::Long(bytes) => self.long(bytes)?,
            Node::Str(s) => self.sized(s, (SHORT_BINUNICODE, 4), BINUNICODE, BINUNICODE8)?,
            Node::Str2(s) => self.sized(s, (SHORT_BINSTRING, 2), BINSTRING, BINSTRING)?,
            Node::Bytes(span) => self.span(*span, (SHORT_BINBYTES, BINBYTES, BINBYTES8))?,
            Node::ByteArray(span) => self.span(*span, (BYTEARRAY8, BYTEARRAY8, BYTEARRAY8))?,
            Node::Global { module, name } => self.global(module, name)?,
            Node::Tuple(items) | Node::FrozenSet(items) => {
                if items.len() > 3 || matches!(self.graph.node(id), Node::FrozenSet(_)) {
                    self.write(&[MARK])?;
                }
                self.work.push(Work::Close(id));
                return self.push(items.iter().map(|&i| Work::Visit(i)));
            }
            Node::Object(o) => {
                self.work.push(Work::Close(id));
                if let Make::NewEx(kwargs) = o.make {
                    self.work.push(Work::Visit(kwargs));
                }
                return self.push([Work::Visit(o.callable), Work::Visit(o.args)]);
            }
            Node::Persistent(pid) => return self.push([Work::Visit(*pid), Work::Close(id)]),
            // What can hold itself is noted before it is filled.
            Node::List(_) => {
                self.write(&[EMPTY_LIST])?;
                self.work.push(Work::Fill(id, 0));
            }
            Node::Dict(_) => {
                self.write(&[EMPTY_DICT])?;
                self.work.push(Work::Fill(id, 0));
            }
            Node::Set(_) => {
                self.write(&[EMPTY_SET])?;
                self.work.push(Work::Fill(id, 0));
            }
        }
        self.remember(id)
    }

    /// Makes a value of the children on the stack, or drops them where one of them has made it already.
    fn close(&mut self, id: Id) -> Result<()> {
        let (children, marked) = match self.graph.node(id) {
            Node::Tuple(items) => (items.len(), items.len() > 3),
            Node::FrozenSet(_) => (0, true),
            Node::Object(o) => (2 + usize::from(matches!(o.make, Make::NewEx(_))), false),
            _ => (1, false),
        };
        if let Some(key) = self.memo[id as usize] {
            let drop: &[u8] = if marked {
                &[POP_MARK]
            } else {
                &[POP; 3][..children]
            };
            self.write(drop)?;
            return self.recall(key);
        }
        let op = match self.graph.node(id) {
            Node::Tuple(_) if marked => TUPLE,
            Node::Tuple(_) => [TUPLE1, TUPLE2, TUPLE3][children - 1],
            Node::FrozenSet(_) => FROZENSET,
            Node::Object(o) => match o.make {
                Make::Reduce => REDUCE,
                Make::New => NEWOBJ,
                Make::NewEx(_) => NEWOBJ_EX,
            },
            _ => BINPERSID,
        };
        self.write(&[op])?;
        self.remember(id)?;
        if self.graph.object(id).is_some_and(|o| !o.edits.is_empty()) {
            self.work.push(Work::Fill(id, 0));
        }
        Ok(())
    }

    /// Writes the next batch of a container's items or of an object's edits.
    fn fill(&mut self, id: Id, from: usize) -> Result<()> {
        let batch = |len: usize| from..len.min(from + BATCH);
        match self.graph.node(id) {
            Node::List(items) => {
                let range = batch(items.len());
                let items = items[range.clone()]
                    .iter()
                    .map(|&i| Work::Visit(i))
                    .collect();
                self.batch(id, range.end, range.len(), items, (Some(APPEND), APPENDS))
            }
            Node::Set(items) => {
                let range = batch(items.len());
                let items = items[range.clone()]
                    .iter()
                    .map(|&i| Work::Visit(i))
                    .collect();
                self.batch(id, range.end, range.len(), items, (None, ADDITEMS))
            }
            Node::Dict(items) => {
                let range = batch(items.len());
                let visits = |&(k, v): &(Id, Id)| [Work::Visit(k), Work::Visit(v)];
                let items = items[range.clone()].iter().flat_map(visits).collect();
                self.batch(id, range.end, range.len(), items, (Some(SETITEM), SETITEMS))
            }
            Node::Object(o) => self.edits(id, &o.edits, from),
            _ => Ok(()),
        }
    }

    /// Writes a run of edits of one kind.
    fn edits(&mut self, id: Id, edits: &[Edit], from: usize) -> Result<()> {
        let Some(&first) = edits.get(from) else {
            return Ok(());
        };
        if let Edit::State(state) = first {
            self.work.push(Work::Fill(id, from + 1));
            return self.push([Work::Visit(state), Work::Op(BUILD)]);
        }
        let alike = |e: &&Edit| std::mem::discriminant(*e) == std::mem::discriminant(&first);
        let run: Vec<&Edit> = edits[from..].iter().take(BATCH).take_while(alike).collect();
        let items = run.iter().flat_map(|edit| match **edit {
            Edit::Item(k, v) => vec![Work::Visit(k), Work::Visit(v)],
            Edit::Append(v) | Edit::Add(v) | Edit::State(v) => vec![Work::Visit(v)],
        });
        let ops = match first {
            Edit::Append(_) => (Some(APPEND), APPENDS),
            Edit::Add(_) => (None, ADDITEMS),
            Edit::Item(..) | Edit::State(_) => (Some(SETITEM), SETITEMS),
        };
        self.batch(id, from + run.len(), run.len(), items.collect(), ops)
    }

    /// One batch: a mark, the items, the opcode for many; for a single item the opcode for one.
    fn batch(
        &mut self,
        id: Id,
        end: usize,
        count: usize,
        items: Vec<Work>,
        (one, many): (Option<u8>, u8),
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.work.push(Work::Fill(id, end));
        match one.filter(|_| count == 1) {
            Some(one) => self.work.push(Work::Op(one)),
            None => {
                self.write(&[MARK])?;
                self.work.push(Work::Op(many));
            }
        }
        self.push(items)
    }

    fn remember(&mut self, id: Id) -> Result<()> {
        // What is filled after it is made may be met again in its own filling.
        let filled = match self.graph.node(id) {
            Node::List(items) | Node::Set(items) => !items.is_empty(),
            Node::Dict(items) => !items.is_empty(),
            Node::Object(o) => !o.edits.is_empty(),
            _ => false,
        };
        if !filled && !self.shared[id as usize] {
            return Ok(());
        }
        let key = self.next;
        self.next += 1;
        self.memo[id as usize] = Some(key);
        match u8::try_from(key) {
            Ok(key) => self.write(&[BINPUT, key]),
            Err(_) => self.tagged(LONG_BINPUT, key),
        }
    }

    fn recall(&mut self, key: u32) -> Result<()> {
        match u8::try_from(key) {
            Ok(key) => self.write(&[BINGET, key]),
            Err(_) => self.tagged(LONG_BINGET, key),
        }
    }

    fn tagged(&mut self, op: u8, n: u32) -> Result<()> {
        self.write(&[op])?;
        self.write(&n.to_le_bytes())
    }

    fn int(&mut self, n: i64) -> Result<()> {
        if let Ok(n) = u8::try_from(n) {
            self.write(&[BININT1, n])
        } else if let Ok(n) = u16::try_from(n) {
            self.write(&[BININT2])?;
            self.write(&n.to_le_bytes())
        } else if let Ok(n) = i32::try_from(n) {
            self.write(&[BININT])?;
            self.write(&n.to_le_bytes())
        } else {
            self.long(&n.to_le_bytes())
        }
    }

    fn long(&mut self, bytes: &[u8]) -> Result<()> {
        match u8::try_from(bytes.len()) {
            Ok(n) => self.write(&[LONG1, n])?,
            Err(_) => self.tagged(LONG4, small(bytes.len() as u64)?)?,
        }
        self.write(bytes)
    }

    /// A string with its length; the short form where the protocol has it.
    fn sized(&mut self, text: &[u8], (short, since): (u8, u8), long: u8, wide: u8) -> Result<()> {
        match u8::try_from(text.len()) {
            Ok(n) if self.graph.protocol.max(2) >= since => self.write(&[short, n])?,
            _ => match u32::try_from(text.len()) {
                Ok(n) => self.tagged(long, n)?,
                Err(_) => {
                    self.write(&[wide])?;
                    self.write(&(text.len() as u64).to_le_bytes())?;
                }
            },
        }
        self.write(text)
    }

    fn span(&mut self, span: Span, (short, long, wide): (u8, u8, u8)) -> Result<()> {
        if let (true, Ok(n)) = (short != wide, u8::try_from(span.len)) {
            self.write(&[short, n])?;
        } else if let (true, Ok(n)) = (long != wide, u32::try_from(span.len)) {
            self.tagged(long, n)?;
        } else {
            self.write(&[wide])?;
            self.write(&span.len.to_le_bytes())?;
        }
        copy(self.source, span.offset, span.len, self.out)
    }

    fn global(&mut self, module: &str, name: &str) -> Result<()> {
        // A name within a class needs this form. One with a line feed would end early in the other, and
        // what follows would be read as opcodes.
        if self.graph.protocol >= 4 || module.contains('\n') || name.contains('\n') {
            self.sized(
                module.as_bytes(),
                (SHORT_BINUNICODE, 4),
                BINUNICODE,
                BINUNICODE8,
            )?;
            self.sized(
                name.as_bytes(),
                (SHORT_BINUNICODE, 4),
                BINUNICODE,
                BINUNICODE8,
            )?;
            return self.write(&[STACK_GLOBAL]);
        }
        self.write(&[GLOBAL])?;
        self.write(module.as_bytes())?;
        self.write(b"\n")?;
        self.write(name.as_bytes())?;
        self.write(b"\n")
    }
}

fn small(n: u64) -> Result<u32> {
    u32::try_from(n).map_err(|_| bad(format!("an integer of {n} bytes")))
}
