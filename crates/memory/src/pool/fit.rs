//! The free chunks of a space in order of (size, address), for best fit.
//!
//! A treap whose nodes are the chunks themselves: it allocates nothing, and needs no more than
//! logarithmic time whatever the sizes are. (Bins by size would be a little faster and would give
//! up exactness: a near fit splits a chunk where an exact fit would not.)

use super::list::NIL;
use super::space::Chunk;

/// The root of the tree; the nodes lie in the space's chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) root: u32,
}

/// A place where a node hangs: a child of `parent`, or the root.
#[derive(Clone, Copy)]
struct Hook {
    parent: u32,
    side: usize,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

fn key(chunks: &[Chunk], i: u32) -> (usize, usize) {
    let c = &chunks[i as usize];
    (c.size, c.addr)
}

/// The heap priority of a node: its index, well mixed, so that no pattern of use makes the tree
/// deep.
pub(super) fn priority(i: u32) -> u32 {
    let x = (i ^ (i >> 16)).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

impl Fit {
    pub(super) const EMPTY: Fit = Fit { root: NIL };

    fn hang(&mut self, chunks: &mut [Chunk], hook: Hook, i: u32) {
        match hook.parent {
            NIL => self.root = i,
            parent => chunks[parent as usize].child[hook.side] = i,
        }
    }

    /// Adds a node: goes down to where its priority puts it, and splits what hangs there.
    pub(super) fn insert(&mut self, chunks: &mut [Chunk], i: u32) {
        let (k, p) = (key(chunks, i), priority(i));
        let mut hook = Hook {
            parent: NIL,
            side: LEFT,
        };
        let mut at = self.root;
        while at != NIL && priority(at) >= p {
            let side = if k < key(chunks, at) { LEFT } else { RIGHT };
            hook = Hook { parent: at, side };
            at = chunks[at as usize].child[side];
        }
        self.hang(chunks, hook, i);
        // What is less than the new node hangs below its left child, the rest below its right.
        let mut less = Hook {
            parent: i,
            side: LEFT,
        };
        let mut more = Hook {
            parent: i,
            side: RIGHT,
        };
        while at != NIL {
            if key(chunks, at) < k {
                self.hang(chunks, less, at);
                less = Hook {
                    parent: at,
                    side: RIGHT,
                };
                at = chunks[at as usize].child[RIGHT];
            } else {
                self.hang(chunks, more, at);
                more = Hook {
                    parent: at,
                    side: LEFT,
                };
                at = chunks[at as usize].child[LEFT];
            }
        }
        self.hang(chunks, less, NIL);
        self.hang(chunks, more, NIL);
    }

    /// Takes a node out and merges its two children in its place.
    pub(super) fn remove(&mut self, chunks: &mut [Chunk], i: u32) {
        let k = key(chunks, i);
        let mut hook = Hook {
            parent: NIL,
            side: LEFT,
        };
        let mut at = self.root;
        while at != i {
            debug_assert_ne!(at, NIL, "a free chunk that is not in the tree");
            let side = if k < key(chunks, at) { LEFT } else { RIGHT };
            hook = Hook { parent: at, side };
            at = chunks[at as usize].child[side];
        }
        let [mut left, mut right] = chunks[i as usize].child;
        loop {
            if left == NIL {
                return self.hang(chunks, hook, right);
            }
            if right == NIL {
                return self.hang(chunks, hook, left);
            }
            if priority(left) >= priority(right) {
                self.hang(chunks, hook, left);
                hook = Hook {
                    parent: left,
                    side: RIGHT,
                };
                left = chunks[left as usize].child[RIGHT];
            } else {
                self.hang(chunks, hook, right);
                hook = Hook {
                    parent: right,
                    side: LEFT,
                };
                right = chunks[right as usize].child[LEFT];
            }
        }
    }

    /// The smallest chunk of at least `size` bytes, and among equals the lowest.
    pub(super) fn best(&self, chunks: &[Chunk], size: usize) -> u32 {
        let (mut at, mut best) = (self.root, NIL);
        while at != NIL {
            let c = &chunks[at as usize];
            if c.size >= size {
                best = at;
                at = c.child[LEFT];
            } else {
                at = c.child[RIGHT];
            }
        }
        best
    }
}
