//! Typed access to elements without copying: guards that keep conflicting operations away.

#![allow(
    unsafe_code,
    reason = "elements are read and written through the storage's pointer"
)]

use crate::{Number, View};
use bytemuck::Pod;
use osteon_memory::{Mode, StorageGuard, here};
use osteon_spec::{Error, Kind, Layout, Result};
use std::fmt;
use std::marker::PhantomData;

/// Elements of a view for reading. While it lives, operations that would write the storage are errors
/// that name its line; operations that read go on.
pub struct ReadGuard<T> {
    elements: Elements<T>,
}

/// Elements of a view for reading and writing. While it lives, every other access to the storage is
/// an error that names its line.
pub struct WriteGuard<T> {
    elements: Elements<T>,
}

/// Invariants:
/// - **G1** `base` points to the storage's first element; the layout is in bounds and `base` is aligned for `T`
///   (V1 and V2 of the registry), and the bytes are initialised.
/// - **G2** the storage neither moves nor is freed nor written by operations while `hold` lives.
struct Elements<T> {
    base: *mut u8,
    view: View,
    // Declared last: the bytes are let go after everything that looks at them.
    hold: StorageGuard,
    of: PhantomData<T>,
}

// SAFETY: a guard is a pointer into a storage that it keeps alive, to elements that are `Send + Sync`; the
// storage's access state knows no threads.
unsafe impl<T: Number> Send for Elements<T> {}
// SAFETY: as above; `&self` only reads.
unsafe impl<T: Number> Sync for Elements<T> {}

impl View {
    /// Typed access for reading, without copying. Waits for operations on other threads.
    ///
    /// # Errors
    /// [`Kind::DType`] when `T` is not the dtype, [`Kind::Borrowed`] while a write guard is held, on
    /// any thread; [`Kind::Device`] where there is no memory to read.
    #[track_caller]
    pub fn read<T: Number>(&self) -> Result<ReadGuard<T>> {
        Ok(ReadGuard {
            elements: Elements::new(self, Mode::Read, "read")?,
        })
    }

    /// Typed access for writing, without copying. Waits for operations on other threads. Counts as one
    /// write of the storage.
    ///
    /// # Errors
    /// [`Kind::DType`] when `T` is not the dtype, [`Kind::Borrowed`] while any guard is held, on any
    /// thread; [`Kind::ReadOnly`]; [`Kind::Device`] where there is no memory.
    #[track_caller]
    pub fn write<T: Number>(&self) -> Result<WriteGuard<T>> {
        Ok(WriteGuard {
            elements: Elements::new(self, Mode::Write, "write")?,
        })
    }

    /// Checks that operations may write the elements now, without a write.
    ///
    /// # Errors
    /// [`Kind::Overlap`] where two elements lie in one place, [`Kind::Borrowed`] while a guard is held, [`Kind::ReadOnly`].
    pub fn check_writable(&self, op: &'static str) -> Result<()> {
        crate::write::check_itself(self, op)?;
        self.storage()
            .check_access(Mode::Write)
            .map_err(|e| e.op(op))
    }
}

impl<T: Number> Elements<T> {
    #[track_caller]
    fn new(view: &View, mode: Mode, op: &'static str) -> Result<Elements<T>> {
        if T::DTYPE != view.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the tensor holds {}, not {}; ask for that type, or cast with to() first",
                    view.dtype(),
                    T::DTYPE
                ),
            )
            .op(op));
        }
        if view.device().is_meta() {
            return Err(Error::new(Kind::Device, "a tensor on meta has no elements").op(op));
        }
        let hold = view.storage().guard(mode, here()).map_err(|e| e.op(op))?;
        Ok(Elements {
            base: view.storage().data_mut(),
            view: view.clone(),
            hold,
            of: PhantomData,
        })
    }

    fn layout(&self) -> &Layout {
        self.view.layout()
    }

    fn position(&self, index: &[usize]) -> Option<usize> {
        let layout = self.layout();
        let inside =
            index.len() == layout.rank() && index.iter().zip(layout.sizes()).all(|(&i, &n)| i < n);
        inside.then(|| {
            let steps = index
                .iter()
                .zip(layout.strides())
                .map(|(&i, &s)| i * s)
                .sum::<usize>();
            layout.offset() + steps
        })
    }

    fn get(&self, index: &[usize]) -> Option<T> {
        let at = self.position(index)?;
        // SAFETY: G1 and G2: a position of the layout.
        Some(T::load(unsafe {
            self.base.cast::<T::Stored>().add(at).read()
        }))
    }

    /// All elements as they lie, when that is row-major order without gaps.
    fn dense(&self) -> Option<(*mut T::Stored, usize)> {
        let layout = self.layout();
        if !layout.is_contiguous() {
            return None;
        }
        match layout.numel() {
            0 => Some((std::ptr::NonNull::dangling().as_ptr(), 0)),
            // SAFETY: G1: in bounds.
            n => Some((
                unsafe { self.base.cast::<T::Stored>().add(layout.offset()) },
                n,
            )),
        }
    }

    fn iter(&self) -> impl Iterator<Item = T> {
        let layout = self.layout();
        let mut index = vec![0; layout.rank()];
        (0..layout.numel()).filter_map(move |_| {
            let item = self.get(&index);
            for (i, &n) in index.iter_mut().zip(layout.sizes()).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
            item
        })
    }
}

impl<T: Number> ReadGuard<T> {
    /// One element, or `None` outside of the shape.
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<T> {
        self.elements.get(index.as_ref())
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.elements.iter()
    }

    /// All elements in row-major order as they lie in memory; `None` when they lie in another order or have
    /// gaps. Not for `bool`, whose bytes may be anything.
    pub fn as_slice(&self) -> Option<&[T]>
    where
        T: Pod,
    {
        let (first, n) = self.elements.dense()?;
        // SAFETY: G1 and G2: `n` elements from `first`, which nobody writes while the guard lives. For a
        // `Pod` number the stored type is the type itself: all are but `bool`, which is not `Pod`.
        Some(unsafe { std::slice::from_raw_parts(first.cast::<T>(), n) })
    }

    /// The view that is read.
    pub fn view(&self) -> &View {
        &self.elements.view
    }
}

impl<T: Number> WriteGuard<T> {
    /// One element, or `None` outside of the shape.
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<T> {
        self.elements.get(index.as_ref())
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.elements.iter()
    }

    /// Writes one element; `false` outside of the shape.
    pub fn set(&mut self, index: impl AsRef<[usize]>, value: T) -> bool {
        let Some(at) = self.elements.position(index.as_ref()) else {
            return false;
        };
        // SAFETY: G1 and G2: a position of the layout, and this guard is alone on the storage.
        unsafe {
            self.elements
                .base
                .cast::<T::Stored>()
                .add(at)
                .write(value.store())
        };
        true
    }

    /// All elements in row-major order as they lie in memory; `None` when they lie in another order or have
    /// gaps. Not for `bool`, whose bytes may be anything.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]>
    where
        T: Pod,
    {
        let (first, n) = self.elements.dense()?;
        // SAFETY: as in `as_slice`, and a write guard is alone on its storage.
        Some(unsafe { std::slice::from_raw_parts_mut(first.cast::<T>(), n) })
    }

    /// The view that is written.
    pub fn view(&self) -> &View {
        &self.elements.view
    }
}

impl<T> fmt::Debug for ReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadGuard of {:?}", self.elements.hold.storage())
    }
}

impl<T> fmt::Debug for WriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteGuard of {:?}", self.elements.hold.storage())
    }
}
