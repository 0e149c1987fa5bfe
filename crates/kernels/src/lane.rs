//! How tables of operations become loops.

use crate::element::{Bool, Element, F8E4M3FN, F8E5M2};
use crate::kernel::Params;
use half::{bf16, f16};
use num_complex::Complex;
use osteon_spec::DType;

/// An element in a register: itself, but Rust's `bool` for a [`Bool`].
pub(crate) trait Lane: Element {
    /// What expressions compute with.
    type Value: Copy;
    /// The type of a complex number's parts; any other type itself.
    type Real: Lane;
    /// The complex number with parts of this type; for other types than floats itself.
    type Pair: Lane;
    /// From memory.
    fn get(self) -> Self::Value;
    /// To memory.
    fn put(value: Self::Value) -> Self;
}

macro_rules! lanes {
    ($($ty:ty, $real:ty, $pair:ty;)*) => {$(
        impl Lane for $ty {
            type Value = $ty;
            type Real = $real;
            type Pair = $pair;
            #[inline(always)]
            fn get(self) -> $ty {
                self
            }
            #[inline(always)]
            fn put(value: $ty) -> $ty {
                value
            }
        }
    )*};
}

lanes! {
    u8, u8, u8; i8, i8, i8; i16, i16, i16; i32, i32, i32; i64, i64, i64; u16, u16, u16; u32, u32, u32;
    u64, u64, u64; f16, f16, f16; bf16, bf16, bf16; f32, f32, Complex<f32>; f64, f64, Complex<f64>;
    F8E4M3FN, F8E4M3FN, F8E4M3FN; F8E5M2, F8E5M2, F8E5M2;
    Complex<f32>, f32, Complex<f32>; Complex<f64>, f64, Complex<f64>;
}

impl Lane for Bool {
    type Value = bool;
    type Real = Bool;
    type Pair = Bool;
    #[inline(always)]
    fn get(self) -> bool {
        Bool::get(self)
    }
    #[inline(always)]
    fn put(value: bool) -> Bool {
        value.into()
    }
}

/// The dtype that loops compute in for operations of this dtype: `float32` for half precision.
pub(crate) fn computed_in(dtype: DType) -> DType {
    if dtype.is_float() && dtype.size() == 2 {
        DType::F32
    } else {
        dtype
    }
}

/// # Safety
/// `len` elements may be read at `ptr`, as what is read below.
#[inline(always)]
unsafe fn at<T: Lane>(ptr: *mut u8, i: usize) -> T::Value {
    // SAFETY: the caller's contract.
    unsafe { ptr.cast::<T>().add(i).read_unaligned().get() }
}

/// The loop of a unary operation.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map1<R: Lane, T: Lane>(
    p: [*mut u8; 2],
    len: usize,
    f: impl Fn(T::Value) -> R::Value,
) {
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            p[0].cast::<R>()
                .add(i)
                .write_unaligned(R::put(f(at::<T>(p[1], i))))
        };
    }
}

/// The loop of a unary operation whose formula does not hold for some rare inputs: those are computed once more, by
/// another, where there are any.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map1_but<T: Lane>(
    p: [*mut u8; 2],
    len: usize,
    f: impl Fn(T::Value) -> T::Value,
    rare: impl Fn(T::Value) -> bool,
    otherwise: impl Fn(T::Value) -> T::Value,
) {
    // SAFETY: the caller's contract, for `i < len`.
    let read = |i| unsafe { at::<T>(p[1], i) };
    // SAFETY: the same.
    let write = |i, value| unsafe { p[0].cast::<T>().add(i).write_unaligned(T::put(value)) };
    let mut any = false;
    for i in 0..len {
        let x = read(i);
        any |= rare(x);
        write(i, f(x));
    }
    if any {
        for i in (0..len).filter(|&i| rare(read(i))) {
            write(i, otherwise(read(i)));
        }
    }
}

/// The loop of a binary operation.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map2<R: Lane, T: Lane>(
    p: [*mut u8; 3],
    len: usize,
    f: impl Fn(T::Value, T::Value) -> R::Value,
) {
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let value = f(at::<T>(p[1], i), at::<T>(p[2], i));
            p[0].cast::<R>().add(i).write_unaligned(R::put(value));
        }
    }
}

/// [`map1_but`] of two.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map2_but<T: Lane>(
    p: [*mut u8; 3],
    len: usize,
    f: impl Fn(T::Value, T::Value) -> T::Value,
    rare: impl Fn(T::Value, T::Value) -> bool,
    otherwise: impl Fn(T::Value, T::Value) -> T::Value,
) {
    // SAFETY: the caller's contract, for `i < len`.
    let read = |i| unsafe { (at::<T>(p[1], i), at::<T>(p[2], i)) };
    // SAFETY: the same.
    let write = |i, value| unsafe { p[0].cast::<T>().add(i).write_unaligned(T::put(value)) };
    let mut any = false;
    for i in 0..len {
        let (x, y) = read(i);
        any |= rare(x, y);
        write(i, f(x, y));
    }
    if any {
        for i in 0..len {
            let (x, y) = read(i);
            if rare(x, y) {
                write(i, otherwise(x, y));
            }
        }
    }
}

/// The loop of a ternary operation.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map3<R: Lane, T: Lane>(
    p: [*mut u8; 4],
    len: usize,
    f: impl Fn(T::Value, T::Value, T::Value) -> R::Value,
) {
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let value = f(at::<T>(p[1], i), at::<T>(p[2], i), at::<T>(p[3], i));
            p[0].cast::<R>().add(i).write_unaligned(R::put(value));
        }
    }
}

/// The loop of an operation of five operands.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
pub(crate) unsafe fn map5<R: Lane, T: Lane>(
    p: [*mut u8; 6],
    len: usize,
    f: impl Fn(T::Value, T::Value, T::Value, T::Value, T::Value) -> R::Value,
) {
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let at = |k: usize| p[k].cast::<T>().add(i).read_unaligned().get();
            let value = f(at(1), at(2), at(3), at(4), at(5));
            p[0].cast::<R>().add(i).write_unaligned(R::put(value));
        }
    }
}

/// Loops of light operations, whose time is that of moving their operands: with variants for work in
/// place (operand 0 is operand 1) and for a number as an operand of two, where a block between
/// would be a third of the work. In a variant for work in place the compiler sees one pointer, of
/// which it knows that each element is read before it is written.
pub(crate) mod light {
    use super::{Lane, Params, at};
    use crate::convert::Convert;
    use crate::index::Run;
    use half::{bf16, f16};
    use osteon_spec::DType;

    fn is_in_place<const N: usize>(p: [*mut u8; N]) -> bool {
        p[0] == p[1]
    }

    /// # Safety
    /// The contract of [`Loop`](crate::kernel::Loop), as for the others.
    #[inline(always)]
    pub(crate) unsafe fn map1<R: Lane, T: Lane>(
        p: [*mut u8; 2],
        len: usize,
        _: &Params,
        f: impl Fn(T::Value) -> R::Value,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if size_of::<R>() == size_of::<T>() && is_in_place(p) {
                super::map1::<R, T>([p[0], p[0]], len, f);
            } else {
                super::map1::<R, T>(p, len, f);
            }
        }
    }

    /// # Safety
    /// As [`map1`].
    #[inline(always)]
    pub(crate) unsafe fn map2<R: Lane, T: Lane>(
        p: [*mut u8; 3],
        len: usize,
        params: &Params,
        f: impl Fn(T::Value, T::Value) -> R::Value,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if params.number == 2 && len > 0 {
                let y = at::<T>(p[2], 0);
                map1::<R, T>([p[0], p[1]], len, params, |x| f(x, y));
            } else if params.number == 1 && len > 0 {
                let x = at::<T>(p[1], 0);
                super::map1::<R, T>([p[0], p[2]], len, |y| f(x, y));
            } else if size_of::<R>() == size_of::<T>() && is_in_place(p) {
                super::map2::<R, T>([p[0], p[0], p[2]], len, f);
            } else {
                super::map2::<R, T>(p, len, f);
            }
        }
    }

    /// The loop through indices. Half precision is stored as such, and rounded at each step.
    ///
    /// # Safety
    /// The contract of [`Combine`](crate::kernel::Combine).
    #[inline(always)]
    pub(crate) unsafe fn combine<R: Lane + Convert, T: Lane + Convert>(
        dst: *mut u8,
        src: *const u8,
        run: &Run,
        stored: DType,
        f: impl Fn(T::Value, T::Value) -> R::Value,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            match stored {
                DType::F16 => combine_as::<f16, R, T>(dst, src, run, f),
                DType::BF16 => combine_as::<bf16, R, T>(dst, src, run, f),
                _ => combine_as::<T, R, T>(dst, src, run, f),
            }
        }
    }

    /// # Safety
    /// As [`combine`], of elements that are stored as `S`.
    #[inline(always)]
    unsafe fn combine_as<S: Convert, R: Lane + Convert, T: Lane + Convert>(
        dst: *mut u8,
        src: *const u8,
        run: &Run,
        f: impl Fn(T::Value, T::Value) -> R::Value,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            run.for_each(|s, d| {
                let (to, from) = (dst.offset(d).cast::<S>(), src.offset(s).cast::<S>());
                let read = |at: *const S| at.read_unaligned().to::<T>().get();
                let value = R::put(f(read(to), read(from)));
                to.write_unaligned(value.to());
            });
        }
    }

    /// # Safety
    /// As [`map1`].
    #[inline(always)]
    pub(crate) unsafe fn map3<R: Lane, T: Lane>(
        p: [*mut u8; 4],
        len: usize,
        _: &Params,
        f: impl Fn(T::Value, T::Value, T::Value) -> R::Value,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if size_of::<R>() == size_of::<T>() && is_in_place(p) {
                super::map3::<R, T>([p[0], p[0], p[2], p[3]], len, f);
            } else {
                super::map3::<R, T>(p, len, f);
            }
        }
    }
}

/// A table of operations: the enum, and the function that looks a kernel up.
///
/// A row names an operation and gives, for each kind of number that has it, the result of one
/// element: `Name { kind kind: |x, y| expression; kind -> Type: |x; p| expression; }`, or `Name:
/// light { .. }` for an operation whose loops are worth the variants of [`light`]. The kinds
/// are the sets of [`with_element!`](crate::with_element); the expression sees values of the
/// element type `T` (`bool` for `Bool`), in `p` the operation's numbers of that type, and as `I` the instructions
/// ([`Isa`](crate::simd::Isa)) whose [functions](crate::math) it calls. The
/// result is a `T` unless a type follows the arrow; `Real` is the type of a complex number's parts, `Pair` the complex number of a float.
macro_rules! ops {
    (
        $(#[$enum_doc:meta])*
        pub enum $Enum:ident;
        $(#[$fn_doc:meta])*
        $vis:vis fn $lookup:ident = $map:ident over $n:literal;
        $( $(#[$doc:meta])* $name:ident $(: $weight:ident)? { $($arms:tt)+ } )+
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Enum {
            $( $(#[$doc])* $name, )+
        }

        impl $Enum {
            /// Every operation, in the order of the table.
            pub const ALL: &[$Enum] = &[$($Enum::$name),+];
        }

        $(#[$fn_doc])*
        $vis fn $lookup(op: $Enum, dtype: $crate::DType) -> Option<$crate::Kernel<$n>> {
            let computed = $crate::lane::computed_in(dtype);
            let kernel = match op {
                $( $Enum::$name => $crate::lane::ops!(@arms ($map $($weight)?) $n computed; $($arms)+), )+
            };
            kernel.map(|k| if computed == dtype { k } else { k.rounded_to(dtype) })
        }
    };
    // The arms of a row, one after the other: the first that has the dtype.
    (@arms $map:tt $n:literal $computed:ident;) => { None };
    (
        @arms $map:tt $n:literal $computed:ident;
        $($set:ident)+ $(-> $ret:ident)?: |$($x:ident),+| $e:expr; $($rest:tt)*
    ) => {
        $crate::lane::ops!(
            @arms $map $n $computed; $($set)+ $(-> $ret)?: |$($x),+; _numbers| $e; $($rest)*
        )
    };
    (
        @arms $map:tt $n:literal $computed:ident;
        $($set:ident)+ $(-> $ret:ident)?: |$($x:ident),+; $p:ident| $e:expr; $($rest:tt)*
    ) => {
        $crate::lane::ops!(@sets $map $n $computed ($($ret)?) ($($x)+) $p ($e); $($set)+)
            .or_else(|| $crate::lane::ops!(@arms $map $n $computed; $($rest)*))
    };
    (@sets $map:tt $n:literal $computed:ident $ret:tt $x:tt $p:ident $e:tt; $($set:ident)+) => {
        None$(.or_else(|| $crate::with_element!($set: $computed, T => {
            $crate::lane::ops!(@kernel $map $n T $ret $x $p $e)
        })))+
    };
    (@kernel ($map:ident $($weight:ident)?) $n:literal $T:ident ($($ret:ident)?) ($($x:ident)+) $p:ident $e:tt) => {{
        #[allow(dead_code)]
        type Real = <$T as $crate::lane::Lane>::Real;
        #[allow(dead_code)]
        type Pair = <$T as $crate::lane::Lane>::Pair;
        type Input = <$T as $crate::lane::Lane>::Value;
        type Output = $crate::lane::ops!(@or $T $($ret)?);
        #[inline(always)]
        #[allow(unused_parens)]
        fn op<I: $crate::simd::Isa>(
            $($x: Input,)+
            $p: &[Input; $crate::Params::MAX],
        ) -> <Output as $crate::lane::Lane>::Value {
            $e
        }
        let mut dtypes = [<$T as $crate::Element>::DTYPE; $n];
        dtypes[0] = <Output as $crate::Element>::DTYPE;
        let kernel = $crate::Kernel::new(dtypes, $crate::simd::simd_loop!($n, |p, len, params| {
            let numbers = std::array::from_fn(|i| $crate::lane::Lane::get(params.get::<$T>(i)));
            $crate::lane::ops!(
                @call $map $($weight)?; Output, $T; p, len, params,
                // Of a large formula the closure would stay a function, of the baseline's instructions.
                #[inline(always)] move |$($x: Input),+| op::<I>($($x,)+ &numbers)
            )
        }))$(.$weight())?;
        $crate::lane::ops!(@combine $map $($weight)?; kernel, Output, $T, op)
    }};
    (@combine map2 light; $kernel:ident, $R:ident, $T:ident, $op:ident) => {{
        /// # Safety
        /// The contract of [`Combine`]($crate::kernel::Combine).
        unsafe fn combine(
            dst: *mut u8,
            src: *const u8,
            run: &$crate::index::Run,
            params: &$crate::Params,
            stored: $crate::DType,
        ) {
            let numbers = std::array::from_fn(|i| $crate::lane::Lane::get(params.get::<$T>(i)));
            // SAFETY: the caller's contract.
            unsafe {
                $crate::lane::light::combine::<$R, $T>(
                    dst, src, run, stored, move |x, y| $op::<$crate::simd::Portable>(x, y, &numbers)
                )
            }
        }
        $kernel.combining(combine)
    }};
    (@combine $map:ident $($weight:ident)?; $kernel:ident, $R:ident, $T:ident, $op:ident) => { $kernel };
    (@call $map:ident; $R:ident, $T:ident; $p:expr, $len:expr, $params:expr, $op:expr) => {
        $crate::lane::$map::<$R, $T>($p, $len, $op)
    };
    (@call $map:ident $weight:ident; $R:ident, $T:ident; $p:expr, $len:expr, $params:expr, $op:expr) => {
        $crate::lane::$weight::$map::<$R, $T>($p, $len, $params, $op)
    };
    (@or $T:ident) => { $T };
    (@or $T:ident $ret:ident) => { $ret };
}
pub(crate) use ops;
