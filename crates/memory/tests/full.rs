//! Reports where the program's heap is full: an error, or a shorter list; never an abort.

use osteon_memory::{
    Mode, Role, Storage, Viewer, copies, diff, dominators, holders, map, mark, pins, recent,
    retained, scope, step,
};
use osteon_spec::{DType, Device, Layout};
use std::alloc::{GlobalAlloc, Layout as Bytes, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::panic::Location;

thread_local! {
    /// Which of this thread's allocations is refused: the one after so many others.
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The system's allocator, which refuses one allocation when told to.
struct Refusing;

fn refuses() -> bool {
    match REFUSED.get() {
        Some(0) => {
            REFUSED.set(None);
            true
        }
        Some(n) => {
            REFUSED.set(Some(n - 1));
            false
        }
        None => false,
    }
}

// SAFETY: either the system allocator's answer or null, which means refused.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Bytes) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Bytes) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Bytes, size: usize) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Refusing = Refusing;

/// Runs `f` with each of its allocations refused in turn, until it makes no more. Returns how many there were.
fn each_refused(mut f: impl FnMut()) -> usize {
    for n in 0.. {
        REFUSED.set(Some(n));
        f();
        if REFUSED.take().is_some() {
            return n;
        }
    }
    unreachable!()
}

/// Takes text, and no memory.
struct Sink;

impl std::fmt::Write for Sink {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        Ok(())
    }
}

#[test]
fn reports_are_shorter_or_errors() {
    let here = Location::caller();
    let storage = Storage::allocate(4000, &Device::cpu(), "zeros", here).unwrap();
    let look = |n: usize, role| {
        let layout = Layout::contiguous(&[n]).unwrap();
        Viewer::register(storage.clone(), layout, DType::F32, "look", here, role).unwrap()
    };
    let tensors = [
        look(10, Role::View),
        look(100, Role::Tensor),
        look(5, Role::Saved),
    ];
    let _guard = storage.guard(Mode::Read, here).unwrap();
    let before = mark();
    let full = |map: &osteon_memory::MemoryMap| map.omitted == 0 && map.storages.len() == 1;
    // A map counts what it cannot list.
    let n = each_refused(|| {
        let map = map();
        assert_eq!(map.storages.len() + map.omitted, 1);
        assert!(full(&map) || map.allocated == 4096);
    });
    assert!(n >= 3, "{n}");
    assert!(full(&map()));
    let now = map();
    let texts = each_refused(|| write!(Sink, "{now}").unwrap());
    let json = each_refused(|| drop(now.to_json()));
    let pictures = each_refused(|| drop(now.picture()));
    assert!(
        texts > 0 && json > 3 && pictures > 3,
        "{texts} {json} {pictures}"
    );
    // What is said about them is right or an error.
    each_refused(|| {
        if let Ok(held) = holders(&storage) {
            assert_eq!(held.holders.len(), 5, "{held}");
        }
    });
    each_refused(|| {
        if let Ok(bytes) = retained(&tensors[0]) {
            assert_eq!(bytes, 0);
        }
    });
    each_refused(|| drop(dominators().map(|d| write!(Sink, "{d}"))));
    each_refused(|| drop(pins().map(|p| assert_eq!(p.entries.len(), 2))));
    each_refused(|| drop(now.groups()));
    each_refused(|| {
        let diff = diff(&before);
        assert!(diff.entries.is_empty());
    });
    each_refused(|| drop(step()));
    assert!(step().complete);
    each_refused(|| drop(recent()));
    let side = (&storage, DType::F32, tensors[0].layout());
    let copied = copies::mark();
    copies::record(
        copies::begin(40),
        copies::CopyReason::Requested,
        "copy",
        here,
        side,
        side,
    );
    each_refused(|| {
        let log = copies::since(&copied);
        assert_eq!(log.len() as u64 + log.missed(), 1);
    });
    assert_eq!(copies::since(&copied).len(), 1);
    // Names stay as they were.
    storage.set_label("before");
    let mut texts = ["one", "two"].iter().cycle();
    each_refused(|| {
        storage.set_label(texts.next().unwrap());
        assert!(storage.label().is_some());
    });
    let mut number = 0;
    let mut path = String::with_capacity(32);
    each_refused(|| {
        number += 1;
        path.clear();
        write!(path, "scope{number}").unwrap();
        let _in = scope(&path);
    });
    drop(tensors);
}

/// With the heap filled to the last byte that it gives, an allocation that fails is still an error with a report.
#[cfg(target_os = "linux")]
#[test]
fn a_heap_that_is_full() {
    const CHILD: &str = "OSTEON_TEST_FULL_HEAP";
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        println!("skipped: the address sanitizer needs more addresses than this test leaves");
        return;
    }
    if std::env::var_os(CHILD).is_none() {
        // In a process of its own, whose addresses are bounded.
        let this = std::env::current_exe().unwrap();
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -v 1000000 && exec \"$0\" --exact a_heap_that_is_full --nocapture --test-threads=1",
            ])
            .arg(this)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{output:?}");
        assert!(
            text.contains("out of memory: 64 MiB on cpu  for zeros at "),
            "{text}"
        );
        assert!(text.contains("too little memory"), "{text}");
        return;
    }
    let here = Location::caller();
    let kept = Storage::allocate(4 << 20, &Device::cpu(), "zeros", here).unwrap();
    // Standard error keeps no text back, so that it needs no memory; but the C library does for what each thread has
    // of its own, the first time that it is used, and ends the process without.
    let show = |error| std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n"));
    show(Storage::allocate(usize::MAX / 2, &Device::cpu(), "empty", here).unwrap_err()).unwrap();
    // The bytes set aside for errors are there again.
    drop(Storage::allocate(1 << 20, &Device::cpu(), "zeros", here).unwrap());
    let mut filling: Vec<Vec<u8>> = Vec::with_capacity(1 << 20);
    let mut size = 8 << 20;
    while size > 0 {
        let mut piece = Vec::new();
        match piece.try_reserve_exact(size) {
            Ok(()) if filling.len() < filling.capacity() => filling.push(piece),
            // Small pieces are kept by size.
            _ if size <= 4096 => size -= 16,
            _ => size /= 2,
        }
    }
    let error = Storage::allocate(64 << 20, &Device::cpu(), "zeros", here).unwrap_err();
    let written = show(error);
    drop((filling, kept));
    written.unwrap();
}
