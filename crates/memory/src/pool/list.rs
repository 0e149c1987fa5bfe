//! Doubly linked lists whose links lie in the elements of a `Vec`, so that they never allocate.

/// No element.
pub(super) const NIL: u32 = u32::MAX;

/// The links of one element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) before: u32,
    pub(super) after: u32,
}

impl Links {
    pub(super) const NONE: Links = Links {
        before: NIL,
        after: NIL,
    };
}

/// An element of a `Vec` that can be in one list at a time.
pub(super) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        first: NIL,
        last: NIL,
    };

    pub(super) fn push_first<T: Linked>(&mut self, nodes: &mut [T], i: u32) {
        self.insert(nodes, NIL, i);
    }

    /// Inserts behind an element, or with `NIL` as the first.
    pub(super) fn insert<T: Linked>(&mut self, nodes: &mut [T], before: u32, i: u32) {
        let after = match before {
            NIL => std::mem::replace(&mut self.first, i),
            before => std::mem::replace(&mut nodes[before as usize].links().after, i),
        };
        match after {
            NIL => self.last = i,
            after => nodes[after as usize].links().before = i,
        }
        *nodes[i as usize].links() = Links { before, after };
    }

    pub(super) fn remove<T: Linked>(&mut self, nodes: &mut [T], i: u32) {
        let Links { before, after } = *nodes[i as usize].links();
        match before {
            NIL => self.first = after,
            before => nodes[before as usize].links().after = after,
        }
        match after {
            NIL => self.last = before,
            after => nodes[after as usize].links().before = before,
        }
    }
}
