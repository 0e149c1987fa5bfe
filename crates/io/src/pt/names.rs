//! Where the tensors sit in the graph, and what they are called: the path to each, joined by dots.

use super::Pickled;
use super::rebuild::{Seen, Tensor, is_rebuild};
use crate::catalog::{Warning, WarningKind};
use crate::error::bad;
use crate::pickle::{Edit, Graph, Id, Make, Node};
use osteon_spec::Result;
use std::collections::HashMap;

/// The deepest nesting that is followed; Python's own limit for what it pickles is about the same.
const MAX_DEPTH: usize = 1000;

/// The tensors by name, and what was odd on the way.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub tensors: Vec<(String, Tensor)>,
    pub warnings: Vec<Warning>,
}

/// Walks from the root to every tensor. One that is reached by two paths has two names. A lone tensor is
/// called `lone`.
pub(crate) fn find(pickled: &Pickled, lone: &str) -> Result<Found> {
    let graph = &pickled.graph;
    let mut walk = Walk {
        pickled,
        reaches: reaching(graph),
        on_path: vec![false; graph.len()],
        // Shared containers can multiply names. What a file can make of its bytes is bounded here.
        budget: 4 * graph.len() + 1024,
        name_bytes: 256 * graph.len() + (1 << 20),
        taken: HashMap::new(),
        found: Found::default(),
    };
    walk.run(lone)?;
    Ok(walk.found)
}

/// Which nodes lead to a call that makes a tensor.
fn reaching(graph: &Graph) -> Vec<bool> {
    let mut reaches = vec![false; graph.len()];
    // Parents of each node, as one array with a range for each.
    let mut starts = vec![0u32; graph.len() + 1];
    let mut todo = Vec::new();
    for id in graph.ids() {
        graph.children(id, |c| starts[c as usize + 1] += 1);
        let callable = graph.object(id).and_then(|o| graph.global(o.callable));
        if callable.is_some_and(|(module, name)| is_rebuild(module, name)) {
            reaches[id as usize] = true;
            todo.push(id);
        }
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut parents = vec![0; starts[graph.len()] as usize];
    let mut next = starts.clone();
    for id in graph.ids() {
        graph.children(id, |c| {
            parents[next[c as usize] as usize] = id;
            next[c as usize] += 1;
        });
    }
    while let Some(id) = todo.pop() {
        for &p in &parents[starts[id as usize] as usize..starts[id as usize + 1] as usize] {
            if !std::mem::replace(&mut reaches[p as usize], true) {
                todo.push(p);
            }
        }
    }
    reaches
}

struct Walk<'a> {
    pickled: &'a Pickled,
    reaches: Vec<bool>,
    on_path: Vec<bool>,
    budget: usize,
    name_bytes: usize,
    /// How many tensors asked for a name.
    taken: HashMap<String, u32>,
    found: Found,
}

/// A container whose children are being visited.
struct Frame {
    node: Id,
    children: std::vec::IntoIter<(String, Id)>,
    /// Length of the path to it.
    path: usize,
}

impl Walk<'_> {
    fn run(&mut self, lone: &str) -> Result<()> {
        let mut path = String::new();
        let mut frames = Vec::new();
        frames.extend(self.enter(self.pickled.root, &path, lone)?);
        while let Some(frame) = frames.last_mut() {
            path.truncate(frame.path);
            let Some((segment, child)) = frame.children.next() else {
                self.on_path[frame.node as usize] = false;
                frames.pop();
                continue;
            };
            if frames.len() > 1 || frames[0].path > 0 {
                path.push('.');
            }
            path.push_str(&segment);
            if self.on_path[child as usize] {
                self.warn(format!(
                    "{path:?} refers back to what contains it; it is not followed"
                ));
                continue;
            }
            if frames.len() >= MAX_DEPTH {
                return Err(bad(format!(
                    "tensors are nested more than {MAX_DEPTH} deep"
                )));
            }
            frames.extend(self.enter(child, &path, lone)?);
        }
        Ok(())
    }

    /// Notes a tensor, or opens a container.
    fn enter(&mut self, node: Id, path: &str, lone: &str) -> Result<Option<Frame>> {
        self.budget = self.budget.checked_sub(1).ok_or_else(|| {
            bad("containers share each other so often that the names of their tensors have no end")
        })?;
        let seen = self.pickled.tensor(node).map_err(|e| {
            e.context(format_args!(
                "tensor {:?}",
                if path.is_empty() { lone } else { path }
            ))
        })?;
        let children = match seen {
            Seen::Tensor(t) => {
                let name = self.name(if path.is_empty() { lone } else { path })?;
                let state = t.state;
                self.found.tensors.push((name, *t));
                let mut children = Children::new(&self.pickled.graph, &self.reaches);
                if let Some(state) = state {
                    children.state(state);
                }
                children.list
            }
            Seen::Unsupported(why) => {
                let message = format!("tensor {path:?} is left out: {why}");
                self.found
                    .warnings
                    .push(Warning::new(WarningKind::Unsupported, message));
                return Ok(None);
            }
            Seen::Other => children(&self.pickled.graph, &self.reaches, node),
        };
        if children.is_empty() {
            return Ok(None);
        }
        self.on_path[node as usize] = true;
        Ok(Some(Frame {
            node,
            children: children.into_iter(),
            path: path.len(),
        }))
    }

    /// The path, made unique.
    fn name(&mut self, path: &str) -> Result<String> {
        self.name_bytes = self.name_bytes.checked_sub(path.len()).ok_or_else(|| {
            bad("the names of its tensors are longer than the file can account for")
        })?;
        let mut name = path.to_owned();
        loop {
            let count = self.taken.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count == 1 {
                break;
            }
            let next = format!("{path}#{count}");
            if name == path {
                self.warn(format!(
                    "two tensors are called {path:?}; one is listed as {next:?}"
                ));
            }
            name = next;
        }
        Ok(name)
    }

    fn warn(&mut self, message: String) {
        self.found
            .warnings
            .push(Warning::new(WarningKind::Structure, message));
    }
}

/// The children of a node that lead to tensors, each with its step of the path.
fn children(graph: &Graph, reaches: &[bool], node: Id) -> Vec<(String, Id)> {
    let mut out = Children::new(graph, reaches);
    match graph.node(node) {
        Node::Tuple(v) | Node::FrozenSet(v) => v.iter().for_each(|&v| out.element(v)),
        Node::List(v) | Node::Set(v) => v.iter().for_each(|&v| out.element(v)),
        Node::Dict(items) => items.iter().for_each(|&(k, v)| out.item(k, v)),
        Node::Object(o) => {
            match items_of_args(graph, node) {
                Some(pairs) => pairs.into_iter().for_each(|(k, v)| out.item(k, v)),
                // A collection made from a list: `set([…])`.
                None => match graph.tuple(o.args) {
                    Some(&[only])
                        if graph.global(o.callable).is_some_and(|(m, _)| is_builtin(m)) =>
                    {
                        graph.children(only, |v| out.element(v));
                    }
                    Some(args) => args.iter().for_each(|&v| out.element(v)),
                    None => out.element(o.args),
                },
            }
            if let Make::NewEx(kwargs) = o.make {
                out.state(kwargs);
            }
            for edit in &o.edits {
                match *edit {
                    Edit::Append(v) | Edit::Add(v) => out.element(v),
                    Edit::Item(k, v) => out.item(k, v),
                    Edit::State(s) => out.state(s),
                }
            }
        }
        _ => {}
    }
    out.list
}

fn is_builtin(module: &str) -> bool {
    matches!(module, "builtins" | "__builtin__")
}

/// The key-value pairs of a dict, an `OrderedDict` or a like object.
pub(super) fn items(graph: &Graph, node: Id) -> Option<Vec<(Id, Id)>> {
    match graph.node(node) {
        Node::Dict(items) => Some(items.clone()),
        Node::Object(o) => {
            let mut items = items_of_args(graph, node)?;
            items.extend(o.edits.iter().filter_map(|e| match *e {
                Edit::Item(k, v) => Some((k, v)),
                _ => None,
            }));
            Some(items)
        }
        _ => None,
    }
}

/// What `OrderedDict([(k, v), …])` begins with; `None` for what is no `OrderedDict`.
fn items_of_args(graph: &Graph, node: Id) -> Option<Vec<(Id, Id)>> {
    let o = graph.object(node)?;
    if graph.global(o.callable)? != ("collections", "OrderedDict") {
        return None;
    }
    let mut items = Vec::new();
    if let Some(&[list]) = graph.tuple(o.args) {
        graph.children(list, |pair| match graph.node(pair) {
            Node::Tuple(kv) => items.extend(kv.first().copied().zip(kv.get(1).copied())),
            Node::List(kv) => items.extend(kv.first().copied().zip(kv.get(1).copied())),
            _ => {}
        });
    }
    Some(items)
}

/// Collects the children of one node.
struct Children<'a> {
    graph: &'a Graph,
    reaches: &'a [bool],
    list: Vec<(String, Id)>,
    index: usize,
}

impl<'a> Children<'a> {
    fn new(graph: &'a Graph, reaches: &'a [bool]) -> Children<'a> {
        Children {
            graph,
            reaches,
            list: Vec::new(),
            index: 0,
        }
    }

    fn element(&mut self, value: Id) {
        if self.reaches[value as usize] {
            self.list.push((self.index.to_string(), value));
        }
        self.index += 1;
    }

    fn item(&mut self, key: Id, value: Id) {
        if self.reaches[value as usize] {
            self.list.push((key_text(self.graph, key, 2), value));
        }
    }

    /// What is given to `__setstate__`: usually the attributes, or a pair of them and of the slots.
    fn state(&mut self, state: Id) {
        if !self.reaches[state as usize] {
            return;
        }
        let pair = self.graph.tuple(state).filter(|t| t.len() == 2);
        let dicts = pair.map_or(vec![state], <[Id]>::to_vec);
        if dicts
            .iter()
            .all(|&d| *self.graph.node(d) == Node::None || items(self.graph, d).is_some())
        {
            dicts.into_iter().for_each(|d| self.attributes(d));
        } else {
            self.list.push(("state".into(), state));
        }
    }

    /// Attributes by name. Those in which a module keeps its parameters, buffers and children are
    /// passed over in the path, as in its `state_dict`.
    fn attributes(&mut self, dict: Id) {
        let attributes = items(self.graph, dict).unwrap_or_default();
        let named = |name: &str| {
            attributes
                .iter()
                .any(|&(k, _)| self.graph.str(k).as_deref() == Some(name))
        };
        let is_module = named("_parameters") && named("_modules");
        for (key, value) in attributes {
            let key_name = self.graph.str(key);
            let kept = matches!(
                key_name.as_deref(),
                Some("_parameters" | "_buffers" | "_modules")
            );
            match items(self.graph, value).filter(|_| is_module && kept) {
                Some(inner) => inner.into_iter().for_each(|(k, v)| self.item(k, v)),
                None => self.item(key, value),
            }
        }
    }
}

/// A dict's key as a step of a path, as Python would print it.
fn key_text(graph: &Graph, key: Id, depth: usize) -> String {
    match graph.node(key) {
        Node::Str(s) | Node::Str2(s) => String::from_utf8_lossy(s).into_owned(),
        Node::Int(n) => n.to_string(),
        Node::Float(x) => format!("{x:?}"),
        Node::Bool(true) => "True".into(),
        Node::Bool(false) => "False".into(),
        Node::None => "None".into(),
        Node::Global { module, name } => format!("{module}.{name}"),
        Node::Tuple(items) if depth > 0 && items.len() <= 8 => {
            let items: Vec<String> = items
                .iter()
                .map(|&i| key_text(graph, i, depth - 1))
                .collect();
            format!("({})", items.join(", "))
        }
        _ => "?".into(),
    }
}
