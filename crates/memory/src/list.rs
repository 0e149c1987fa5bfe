//! A doubly linked list through its members: joining and leaving cost a few stores and no memory.

use crate::sync::Cell;
use std::marker::PhantomData;
use std::ptr;

/// A member's place in its [`List`]; only touched under the lock that guards the list.
pub(crate) struct Links<T> {
    prev: Cell<*const T>,
    next: Cell<*const T>,
}

// SAFETY: whoever touches the links, or what they point to, holds the lock that guards the list.
unsafe impl<T> Send for Links<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Links<T> {}

impl<T> Links<T> {
    pub(crate) fn new() -> Links<T> {
        Links {
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }
}

/// A value with room for its place in one list.
pub(crate) trait Linked: Sized {
    fn links(&self) -> &Links<Self>;
}

/// The newest member first.
///
/// Invariant **N1**: every member is alive and at rest in memory while it is in the list: it leaves, under the
/// list's lock, before it is dropped.
pub(crate) struct List<T> {
    head: *const T,
    len: usize,
    marker: PhantomData<*const T>,
}

// SAFETY: the list is reached under one lock; its members are shared between threads.
unsafe impl<T: Sync> Send for List<T> {}

impl<T: Linked> List<T> {
    pub(crate) const fn new() -> List<T> {
        List {
            head: ptr::null(),
            len: 0,
            marker: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a member first.
    ///
    /// # Safety
    /// The member is in no list, and N1 holds for it until it is removed.
    #[inline]
    pub(crate) unsafe fn push(&mut self, member: &T) {
        member.links().prev.set(ptr::null());
        member.links().next.set(self.head);
        // SAFETY: N1: the head, if any, is alive.
        if let Some(head) = unsafe { self.head.as_ref() } {
            head.links().prev.set(member);
        }
        self.head = member;
        self.len += 1;
    }

    /// Takes a member out.
    ///
    /// # Safety
    /// The member is in this list.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, member: &T) {
        let (prev, next) = (member.links().prev.get(), member.links().next.get());
        // SAFETY: N1: the neighbours, if any, are alive.
        match unsafe { prev.as_ref() } {
            Some(p) => p.links().next.set(next),
            None => self.head = next,
        }
        // SAFETY: as above.
        if let Some(n) = unsafe { next.as_ref() } {
            n.links().prev.set(prev);
        }
        self.len -= 1;
    }

    /// The members, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: N1: members are alive while the list is borrowed, that is, while its lock is held.
        let mut at = unsafe { self.head.as_ref() };
        std::iter::from_fn(move || {
            let member = at?;
            // SAFETY: as above.
            at = unsafe { member.links().next.get().as_ref() };
            Some(member)
        })
    }
}
