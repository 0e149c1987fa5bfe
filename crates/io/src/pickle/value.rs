//! The graph of values that a pickle describes.

use crate::error::{bad, out_of_memory};
use osteon_spec::Result;
use std::collections::HashMap;

/// A node's position in its [`Graph`]. Nodes are never copied: a value that a pickle uses twice is one
/// node with two parents, whatever the pickle does, so the graph is no larger than the pickle.
pub(crate) type Id = u32;

/// Bytes that are left where they are in the pickle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub offset: u64,
    pub len: u64,
}

/// A value, or what would make it.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit an `i64`: two's complement, lowest byte first.
    Long(Box<[u8]>),
    Float(f64),
    /// UTF-8 with surrogates, as Python writes it.
    Str(Box<[u8]>),
    /// A Python 2 string of bytes.
    Str2(Box<[u8]>),
    Bytes(Span),
    ByteArray(Span),
    Global {
        module: Box<str>,
        name: Box<str>,
    },
    Tuple(Box<[Id]>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Set(Vec<Id>),
    FrozenSet(Box<[Id]>),
    Object(Box<Object>),
    /// What the id, another value, stands for outside the pickle.
    Persistent(Id),
}

/// The result of a call that was not made.
#[derive(Debug, PartialEq)]
pub(crate) struct Object {
    pub make: Make,
    /// What would be called, or the class.
    pub callable: Id,
    /// The arguments: a tuple in every sane pickle.
    pub args: Id,
    /// What was done to the result afterwards, in order.
    pub edits: Vec<Edit>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Make {
    /// `callable(*args)`.
    Reduce,
    /// `callable.__new__(callable, *args)`.
    New,
    /// The same with keyword arguments, a dict.
    NewEx(Id),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Edit {
    Append(Id),
    Item(Id, Id),
    Add(Id),
    /// `__setstate__`, or an update of `__dict__`.
    State(Id),
}

/// The nodes of a pickle. Children come by [`Id`], so that neither walking nor dropping recurses.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The protocol that the pickle announced.
    pub protocol: u8,
    nodes: Vec<Node>,
}

impl Graph {
    pub fn push(&mut self, node: Node) -> Result<Id> {
        let id = Id::try_from(self.nodes.len()).map_err(|_| bad("has too many values"))?;
        grow(&mut self.nodes, 1)?;
        self.nodes.push(node);
        Ok(id)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        0..self.nodes.len() as Id
    }

    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Calls `f` with every child, in the order in which a pickle would write them.
    pub fn children(&self, id: Id, mut f: impl FnMut(Id)) {
        match self.node(id) {
            Node::Tuple(v) | Node::FrozenSet(v) => v.iter().copied().for_each(f),
            Node::List(v) | Node::Set(v) => v.iter().copied().for_each(f),
            Node::Dict(v) => v.iter().for_each(|&(k, v)| {
                f(k);
                f(v);
            }),
            Node::Persistent(p) => f(*p),
            Node::Object(o) => {
                f(o.callable);
                f(o.args);
                if let Make::NewEx(kwargs) = o.make {
                    f(kwargs);
                }
                for edit in &o.edits {
                    match *edit {
                        Edit::Append(v) | Edit::Add(v) | Edit::State(v) => f(v),
                        Edit::Item(k, v) => {
                            f(k);
                            f(v);
                        }
                    }
                }
            }
            Node::None
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Long(_)
            | Node::Float(_)
            | Node::Str(_)
            | Node::Str2(_)
            | Node::Bytes(_)
            | Node::ByteArray(_)
            | Node::Global { .. } => {}
        }
    }

    /// Puts other children in place of those that `map` knows.
    pub fn redirect(&mut self, map: &HashMap<Id, Id>) {
        let to = |id: &mut Id| *id = map.get(id).copied().unwrap_or(*id);
        for node in &mut self.nodes {
            match node {
                Node::Tuple(v) | Node::FrozenSet(v) => v.iter_mut().for_each(to),
                Node::List(v) | Node::Set(v) => v.iter_mut().for_each(to),
                Node::Dict(v) => v
                    .iter_mut()
                    .for_each(|(k, v)| [k, v].into_iter().for_each(to)),
                Node::Persistent(p) => to(p),
                Node::Object(o) => {
                    to(&mut o.callable);
                    to(&mut o.args);
                    if let Make::NewEx(kwargs) = &mut o.make {
                        to(kwargs);
                    }
                    for edit in &mut o.edits {
                        match edit {
                            Edit::Append(v) | Edit::Add(v) | Edit::State(v) => to(v),
                            Edit::Item(k, v) => [k, v].into_iter().for_each(to),
                        }
                    }
                }
                _ => {}
            }
        }
    }

    pub fn tuple(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::Tuple(v) => Some(v),
            _ => None,
        }
    }

    pub fn int(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// A string's text; surrogates, which no name needs, are replaced.
    pub fn str(&self, id: Id) -> Option<String> {
        match self.node(id) {
            Node::Str(s) | Node::Str2(s) => Some(String::from_utf8_lossy(s).into_owned()),
            _ => None,
        }
    }

    pub fn global(&self, id: Id) -> Option<(&str, &str)> {
        match self.node(id) {
            Node::Global { module, name } => Some((module, name)),
            _ => None,
        }
    }

    pub fn object(&self, id: Id) -> Option<&Object> {
        match self.node(id) {
            Node::Object(o) => Some(o),
            _ => None,
        }
    }
}

/// Makes room for `n` more.
pub(super) fn grow<T>(v: &mut Vec<T>, n: usize) -> Result<()> {
    v.try_reserve(n)
        .map_err(|_| out_of_memory((n * size_of::<T>()) as u64))
}
