//! Functions of complex numbers that hold their accuracy everywhere, after W. Kahan, "Branch cuts
//! for complex elementary functions": computed in `float64`, also for `complex64`.

use crate::convert::Convert;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

type Complex = num_complex::Complex<f64>;

pub(crate) const ONE: Complex = Complex::ONE;

/// `f(x)` by way of `complex128`.
#[inline(always)]
pub(crate) fn wide<T: Convert>(x: T, f: impl Fn(Complex) -> Complex) -> T {
    f(x.to()).to()
}

/// `f(x, y)` by way of `complex128`: products and quotients cancel, and `complex64` would lose digits.
#[inline(always)]
pub(crate) fn wide2<T: Convert>(x: T, y: T, f: impl Fn(Complex, Complex) -> Complex) -> T {
    f(x.to(), y.to()).to()
}

/// `x` as `complex128`.
#[inline(always)]
pub(crate) fn wide_of<T: Convert>(x: T) -> Complex {
    x.to()
}

/// The quotient of two complex numbers of one type, without overflow on the way (Smith's method);
/// by zero, the parts are divided by it.
macro_rules! quotient {
    ($x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        if y.re == 0.0 && y.im == 0.0 {
            crate::Complex::new(x.re / y.re.abs(), x.im / y.im.abs())
        } else if y.re.abs() >= y.im.abs() {
            let ratio = y.im / y.re;
            let scale = 1.0 / (y.re + y.im * ratio);
            crate::Complex::new((x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale)
        } else {
            let ratio = y.re / y.im;
            let scale = 1.0 / (y.re * ratio + y.im);
            crate::Complex::new((x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale)
        }
    }};
}
pub(crate) use quotient;

/// Numbers with complex powers.
pub(crate) trait Power: Copy {
    /// `x^y` as `exp(y · log(x))`, in the numbers' own precision, as C++ and PyTorch have it; 0 to a power with a positive
    /// real part is 0, and everything to the power of 0 is 1.
    fn power(self, y: Self) -> Self;
}

macro_rules! power {
    ($($ty:ty)*) => { $(
        impl Power for num_complex::Complex<$ty> {
            fn power(self, y: Self) -> Self {
                if y.re == 0.0 && y.im == 0.0 {
                    return Self::new(1.0, 0.0);
                }
                let log = num_complex::Complex::new(self.norm().ln(), self.arg());
                let p = num_complex::Complex::new(y.re * log.re - y.im * log.im, y.re * log.im + y.im * log.re);
                p.exp()
            }
        }
    )* };
}

power! { f32 f64 }

/// Where `asin` tends to in the direction of an infinite number.
fn asin_far(z: Complex) -> Complex {
    let re = match (z.re.is_infinite(), z.im.is_infinite()) {
        (true, true) => FRAC_PI_4,
        (true, false) if z.im.is_nan() => f64::NAN,
        (true, false) => FRAC_PI_2,
        (false, _) if z.re.is_nan() => f64::NAN,
        (false, _) => 0.0,
    };
    Complex::new(re.copysign(z.re), f64::INFINITY.copysign(z.im))
}

fn is_far(z: Complex) -> bool {
    z.re.is_infinite() || z.im.is_infinite()
}

pub(crate) fn asin(z: Complex) -> Complex {
    if is_far(z) {
        return asin_far(z);
    }
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex::new(
        z.re.atan2((minus * plus).re),
        (minus.conj() * plus).im.asinh(),
    )
}

pub(crate) fn acos(z: Complex) -> Complex {
    if is_far(z) {
        let asin = asin_far(z);
        return Complex::new(FRAC_PI_2 - asin.re, -asin.im);
    }
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex::new(
        2.0 * minus.re.atan2(plus.re),
        (plus.conj() * minus).im.asinh(),
    )
}

pub(crate) fn acosh(z: Complex) -> Complex {
    if is_far(z) {
        let angle = FRAC_PI_2 - asin_far(z).re;
        return Complex::new(f64::INFINITY, angle.copysign(z.im));
    }
    let (minus, plus) = ((z - 1.0).sqrt(), (z + 1.0).sqrt());
    Complex::new(
        (minus.conj() * plus).re.asinh(),
        2.0 * minus.im.atan2(plus.re),
    )
}

pub(crate) fn asinh(z: Complex) -> Complex {
    turned(z, asin)
}

pub(crate) fn atan(z: Complex) -> Complex {
    turned(z, atanh)
}

pub(crate) fn tan(z: Complex) -> Complex {
    turned(z, tanh)
}

/// `-i·f(i·z)`.
fn turned(z: Complex, f: impl Fn(Complex) -> Complex) -> Complex {
    let w = f(Complex::new(-z.im, z.re));
    Complex::new(w.im, -w.re)
}

pub(crate) fn atanh(z: Complex) -> Complex {
    let (x, y) = (z.re, z.im);
    if is_far(z) && !(x.is_infinite() && y.is_nan()) {
        return Complex::new(0f64.copysign(x), FRAC_PI_2.copysign(y));
    }
    let re = 0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p();
    Complex::new(re, 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y))
}

pub(crate) fn tanh(z: Complex) -> Complex {
    // Beyond this the real part is ±1 to the last place, and squares of its sine overflow soon.
    if z.re.abs() > 22.0 {
        let im = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(1f64.copysign(z.re), im);
    }
    let t = z.im.tan();
    let s = z.re.sinh();
    let beta = 1.0 + t * t;
    let below = 1.0 + beta * s * s;
    Complex::new(beta * (1.0 + s * s).sqrt() * s / below, t / below)
}

/// `log(e^x + e^y)`, after the one of the larger real part.
pub(crate) fn log_add_exp(x: Complex, y: Complex) -> Complex {
    let (low, high) = if x.re < y.re { (x, y) } else { (y, x) };
    if !low.re.is_finite() && low.re == high.re {
        if low.re < 0.0 {
            return low;
        }
        return (low.exp() + high.exp()).ln();
    }
    (1.0 + (low - high).exp()).ln() + high
}
