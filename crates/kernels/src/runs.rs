//! One-dimensional moves of elements, by width.

/// Moves `len` elements of `width` bytes from one run to another that does not overlap it. Strides
/// are in bytes; a source stride of 0 repeats one element.
///
/// # Safety
/// The positions of the destination's run may be written, those of the source's read.
///
/// # Panics
/// When `width` is not 1, 2, 4, 8 or 16.
#[inline]
pub(crate) unsafe fn move_run(
    dst: *mut u8,
    ds: isize,
    src: *const u8,
    ss: isize,
    len: usize,
    width: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match width {
            _ if ds == width as isize && ss == ds => {
                std::ptr::copy_nonoverlapping(src, dst, len * width);
            }
            1 => move_strided::<u8>(dst, ds, src, ss, len),
            2 => move_strided::<u16>(dst, ds, src, ss, len),
            4 => move_strided::<u32>(dst, ds, src, ss, len),
            8 => move_strided::<u64>(dst, ds, src, ss, len),
            16 => move_strided::<u128>(dst, ds, src, ss, len),
            _ => panic!("no element has {width} bytes"),
        }
    }
}

/// The same for elements of `T`'s size. Unaligned accesses, because a complex element of 8 bytes is
/// aligned to 4 only, and elements in files may be aligned to nothing.
///
/// # Safety
/// As [`move_run`].
#[inline(always)]
pub(crate) unsafe fn move_strided<T: Copy>(
    dst: *mut u8,
    ds: isize,
    src: *const u8,
    ss: isize,
    len: usize,
) {
    // SAFETY: the caller's contract: every position below is of a run.
    unsafe {
        if ss == 0 {
            fill_run(dst, ds, len, src.cast::<T>().read_unaligned());
        } else if ds == size_of::<T>() as isize {
            for i in 0..len as isize {
                let value = src.offset(i * ss).cast::<T>().read_unaligned();
                dst.cast::<T>().offset(i).write_unaligned(value);
            }
        } else {
            for i in 0..len as isize {
                let value = src.offset(i * ss).cast::<T>().read_unaligned();
                dst.offset(i * ds).cast::<T>().write_unaligned(value);
            }
        }
    }
}

/// Writes one value along a run.
///
/// # Safety
/// `dst + i·stride` may be written as a `T`, for every `i < len`.
#[inline(always)]
pub(crate) unsafe fn fill_run<T: Copy>(dst: *mut u8, stride: isize, len: usize, value: T) {
    // SAFETY: the caller's contract.
    unsafe {
        if stride == size_of::<T>() as isize {
            for i in 0..len {
                dst.cast::<T>().add(i).write_unaligned(value);
            }
        } else {
            for i in 0..len as isize {
                dst.offset(i * stride).cast::<T>().write_unaligned(value);
            }
        }
    }
}
