//! Printing, to the character as PyTorch prints.
//!
//! Nothing here knows tensors: [`Printed`] is sizes, a dtype and a way to fetch one element. All
//! numbers of a tensor share one notation and one width, which depend on the elements that are
//! shown and on no others, so the cost is that of the shown elements, whatever the tensor's size.

use osteon_spec::{DType, Dims, Scalar, checked_product};
use std::fmt::{self, Write};
use std::sync::{PoisonError, RwLock};

/// How tensors are printed: the fields of `torch.set_printoptions`.
///
/// ```
/// use osteon_tensor::format::PrintOptions;
/// let narrow = PrintOptions { linewidth: 40, ..PrintOptions::short() };
/// assert_eq!(narrow.precision, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: u8,
    /// A tensor with more elements than this is summarised.
    pub threshold: usize,
    /// How many entries a summary keeps at either end of a dimension.
    pub edgeitems: usize,
    /// Where lines break, in characters.
    pub linewidth: usize,
    /// Scientific notation always or never; `None` chooses by the magnitudes.
    pub sci_mode: Option<bool>,
}

impl PrintOptions {
    const DEFAULT: PrintOptions = PrintOptions {
        precision: 4,
        threshold: 1000,
        edgeitems: 3,
        linewidth: 80,
        sci_mode: None,
    };

    /// PyTorch's profile `short`: fewer digits and shorter summaries.
    pub const fn short() -> PrintOptions {
        PrintOptions {
            precision: 2,
            edgeitems: 2,
            ..PrintOptions::DEFAULT
        }
    }

    /// PyTorch's profile `full`: never summarised.
    pub const fn full() -> PrintOptions {
        PrintOptions {
            threshold: usize::MAX,
            ..PrintOptions::DEFAULT
        }
    }
}

impl Default for PrintOptions {
    /// PyTorch's profile `default`.
    fn default() -> PrintOptions {
        PrintOptions::DEFAULT
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// Sets how every tensor of the process is printed from now on, like `torch.set_printoptions`.
///
/// For one text alone, see [`Printed::write`].
pub fn set_printoptions(options: PrintOptions) {
    *OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = options;
}

/// The options that [`set_printoptions`] set last.
pub fn get_printoptions() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor as its `Display` text needs it, `Debug` being the same text.
///
/// Cost: the elements shown are fetched three times each, to choose a notation, to find the width
/// and to be written; no others are. A summary shows at most `2 * edgeitems` of a dimension. The
/// text is written as it is made, never gathered.
///
/// ```
/// use osteon_spec::{DType, Scalar};
/// use osteon_tensor::format::Printed;
/// let quarters = Printed {
///     sizes: &[2, 2],
///     dtype: DType::F64,
///     get: &|at| Scalar::Float((2 * at[0] + at[1]) as f64 / 4.0),
///     requires_grad: false,
///     grad_fn: None,
///     device_suffix: None,
/// };
/// assert_eq!(
///     quarters.to_string(),
///     "tensor([[0.0000, 0.2500],\n        [0.5000, 0.7500]], dtype=torch.float64)",
/// );
/// ```
#[derive(Clone, Copy)]
pub struct Printed<'a> {
    /// The sizes.
    pub sizes: &'a [usize],
    /// The dtype.
    pub dtype: DType,
    /// The element at an index that has one entry a dimension, widened without rounding.
    pub get: &'a dyn Fn(&[usize]) -> Scalar,
    /// Whether the tensor is a leaf that collects a gradient.
    pub requires_grad: bool,
    /// The name of the operation that gradients flow back to, such as `AddBackward0`.
    pub grad_fn: Option<&'a str>,
    /// The device, where it is not the CPU. The elements of `meta` do not exist and print as `...`.
    pub device_suffix: Option<&'a str>,
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &get_printoptions())
    }
}

impl fmt::Debug for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What every text begins with; its length is the indent of all further lines.
const PREFIX: &str = "tensor(";

impl Printed<'_> {
    /// Writes the text with options of its own, the process-wide ones left alone.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write(&self, out: &mut dyn Write, options: &PrintOptions) -> fmt::Result {
        let mut out = Tracked { out, column: 0 };
        out.write_str(PREFIX)?;
        if self.is_meta() {
            out.write_str("...")?;
        } else if self.is_empty() {
            out.write_str("[]")?;
        } else {
            let layout = Layout {
                tensor: self,
                options,
                summarized: checked_product(self.sizes).unwrap_or(usize::MAX) > options.threshold,
            };
            layout.write(&mut out, &mut Dims::new(), &layout.fit())?;
        }
        // PyTorch counts two characters too many up to the first suffix that begins a line.
        let mut column = out.column + 2;
        for suffix in self.suffixes(options) {
            if column + suffix.len() + 2 > options.linewidth {
                out.write_str(",\n")?;
                out.indent(PREFIX.len())?;
                column = PREFIX.len() + suffix.len();
            } else {
                out.write_str(", ")?;
                column += 2 + suffix.len();
            }
            out.write_str(&suffix)?;
        }
        out.write_str(")")
    }

    fn is_meta(&self) -> bool {
        self.device_suffix == Some("meta")
    }

    fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// What the elements shown do not tell.
    fn suffixes(&self, options: &PrintOptions) -> Vec<String> {
        let mut suffixes = Vec::new();
        if let Some(device) = self.device_suffix {
            suffixes.push(format!("device='{device}'"));
        }
        let unseen = self.is_meta() || self.is_empty();
        let size_is_told = if self.is_meta() {
            false
        } else if self.is_empty() {
            self.sizes.len() == 1
        } else {
            options.edgeitems > 0
        };
        if !size_is_told {
            suffixes.push(format!("size={}", Tuple(self.sizes)));
        }
        // Elements give away the dtypes that Python's own numbers become; without them only
        // PyTorch's default dtype goes unsaid.
        let dtype_is_told = self.dtype == DType::F32
            || !unseen && matches!(self.dtype, DType::I64 | DType::Bool | DType::C64);
        if !dtype_is_told {
            suffixes.push(format!("dtype=torch.{}", self.dtype));
        }
        if let Some(name) = self.grad_fn {
            suffixes.push(format!("grad_fn=<{name}>"));
        } else if self.requires_grad {
            suffixes.push("requires_grad=True".to_owned());
        }
        suffixes
    }
}

/// Which elements are shown, and where.
struct Layout<'a> {
    tensor: &'a Printed<'a>,
    options: &'a PrintOptions,
    summarized: bool,
}

impl Layout<'_> {
    /// The positions shown of a dimension of size `n`, with one `None` for those left out.
    fn shown(&self, n: usize) -> impl Iterator<Item = Option<usize>> + use<> {
        let edge = self.options.edgeitems;
        let gap = self.summarized && n > edge.saturating_mul(2);
        let (head, tail) = if gap { (edge, n - edge) } else { (n, n) };
        (0..head)
            .map(Some)
            .chain(gap.then_some(None))
            .chain((tail..n).map(Some))
    }

    /// Calls `f` with each element shown below `index`.
    fn each_shown(&self, index: &mut Dims, f: &mut dyn FnMut(Scalar)) {
        match self.tensor.sizes.get(index.len()) {
            None => f((self.tensor.get)(index)),
            Some(&n) => {
                for i in self.shown(n).flatten() {
                    index.push(i);
                    self.each_shown(index, f);
                    index.pop();
                }
            }
        }
    }

    /// The notation and width that suit the elements shown.
    fn fit(&self) -> Element {
        let (mut real, mut imag) = (Magnitudes::NONE, Magnitudes::NONE);
        self.each_shown(&mut Dims::new(), &mut |value| match value {
            Scalar::Float(x) => real.see(x),
            Scalar::Complex(re, im) => {
                real.see(re);
                imag.see(im);
            }
            Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_) => {}
        });
        let mut element = Element {
            real: real.style(self.options),
            imag: self
                .tensor
                .dtype
                .is_complex()
                .then(|| imag.style(self.options)),
        };
        self.each_shown(&mut Dims::new(), &mut |value| element.widen(value));
        element
    }

    /// Writes what lies below `index`: an element, or a bracketed list.
    fn write(&self, out: &mut Tracked<'_>, index: &mut Dims, element: &Element) -> fmt::Result {
        let Some(&n) = self.tensor.sizes.get(index.len()) else {
            return out.write_str(&element.text((self.tensor.get)(index)));
        };
        let indent = PREFIX.len() + index.len();
        // A row fills its lines; lists of rows, of matrices, … leave 0, 1, … lines blank.
        let dims_below = self.tensor.sizes.len() - index.len() - 1;
        let (per_line, line_feeds) = if dims_below == 0 {
            let room = self.options.linewidth.saturating_sub(indent);
            ((room / (element.width() + ", ".len())).max(1), 1)
        } else {
            (1, dims_below)
        };
        out.write_str("[")?;
        for (k, position) in self.shown(n).enumerate() {
            if k > 0 && k % per_line == 0 {
                out.write_str(",")?;
                (0..line_feeds).try_for_each(|_| out.write_str("\n"))?;
                out.indent(indent + 1)?;
            } else if k > 0 {
                out.write_str(", ")?;
            }
            match position {
                Some(i) => {
                    index.push(i);
                    self.write(out, index, element)?;
                    index.pop();
                }
                None if dims_below == 0 && k > 0 => out.write_str(" ...")?,
                None => out.write_str("...")?,
            }
        }
        out.write_str("]")
    }
}

/// How every element of one tensor is written.
struct Element {
    /// Real numbers, integers and `bool`, and the real parts of complex numbers.
    real: Style,
    /// The imaginary parts, if the dtype has them.
    imag: Option<Style>,
}

impl Element {
    fn widen(&mut self, value: Scalar) {
        match value {
            Scalar::Float(x) => self.real.widen(x),
            Scalar::Complex(re, im) => {
                self.real.widen(re);
                if let Some(imag) = &mut self.imag {
                    imag.widen(im);
                }
            }
            Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_) => {
                self.real.width = self.real.width.max(self.text(value).len());
            }
        }
    }

    /// The width that lines are planned with. Single elements may be wider.
    fn width(&self) -> usize {
        self.real.width + self.imag.as_ref().map_or(0, |imag| imag.width + "j".len())
    }

    fn text(&self, value: Scalar) -> String {
        match value {
            Scalar::Bool(true) => self.real.pad("True"),
            Scalar::Bool(false) => self.real.pad("False"),
            Scalar::Int(i) => self.real.pad(&i.to_string()),
            Scalar::UInt(u) => self.real.pad(&u.to_string()),
            Scalar::Float(x) => self.real.pad(&self.real.text(x)),
            Scalar::Complex(re, im) => {
                let mut text = self.real.pad(&self.real.text(re));
                let imag = self.imag.as_ref().unwrap_or(&self.real).text(im);
                if !imag.starts_with('-') {
                    text.push('+');
                }
                text + &imag + "j"
            }
        }
    }
}

/// How a number is written in digits.
#[derive(Clone, Copy)]
enum Notation {
    /// `12.`
    Whole,
    /// `12.3400`
    Fixed,
    /// `1.2340e+01`
    Scientific,
}

/// A notation, and the width of the widest number.
struct Style {
    notation: Notation,
    precision: usize,
    width: usize,
}

impl Style {
    /// Makes room for a number. Zeros and what is not finite do not count, as in PyTorch.
    fn widen(&mut self, x: f64) {
        if is_counted(x) {
            self.width = self.width.max(self.text(x).len());
        }
    }

    /// A number in Python's spelling, not padded.
    fn text(&self, x: f64) -> String {
        if x.is_nan() {
            return "nan".to_owned();
        }
        if x.is_infinite() {
            return x.to_string();
        }
        let precision = self.precision;
        match self.notation {
            Notation::Whole => format!("{x:.0}."),
            Notation::Fixed => format!("{x:.precision$}"),
            Notation::Scientific => with_padded_exponent(format!("{x:.precision$e}")),
        }
    }

    fn pad(&self, text: &str) -> String {
        format!("{text:>0$}", self.width)
    }
}

/// Python's form of an exponent, a sign and at least two digits, from Rust's.
fn with_padded_exponent(text: String) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

/// Whether a number has a say in the notation and the width.
fn is_counted(x: f64) -> bool {
    x.is_finite() && x != 0.0
}

/// What a notation is chosen by.
struct Magnitudes {
    min: f64,
    max: f64,
    all_whole: bool,
}

impl Magnitudes {
    const NONE: Magnitudes = Magnitudes {
        min: f64::INFINITY,
        max: 0.0,
        all_whole: true,
    };

    fn see(&mut self, x: f64) {
        if is_counted(x) {
            self.min = self.min.min(x.abs());
            self.max = self.max.max(x.abs());
            self.all_whole &= x.fract() == 0.0;
        }
    }

    /// PyTorch's choice. Its limits hold for `float64` copies of the elements, so that the
    /// `float32` nearest to 1e-4, which is below it, is scientific.
    fn style(&self, options: &PrintOptions) -> Style {
        // Only zeros, nan and inf: never scientific, whatever the options say.
        let none = self.max == 0.0;
        let uneven = self.max / self.min > 1e3 || self.max > 1e8 || self.min < 1e-4;
        let notation = if !none && options.sci_mode.unwrap_or(uneven) {
            Notation::Scientific
        } else if self.all_whole {
            Notation::Whole
        } else {
            Notation::Fixed
        };
        Style {
            notation,
            precision: options.precision.into(),
            width: 1,
        }
    }
}

/// Sizes as Python writes a tuple.
struct Tuple<'a>(&'a [usize]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [n] => write!(f, "({n},)"),
            sizes => {
                f.write_str("(")?;
                for (i, n) in sizes.iter().enumerate() {
                    let separator = if i > 0 { ", " } else { "" };
                    write!(f, "{separator}{n}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Text on its way out, and how many characters its last line has by now.
struct Tracked<'a> {
    out: &'a mut dyn Write,
    column: usize,
}

impl Tracked<'_> {
    fn indent(&mut self, n: usize) -> fmt::Result {
        (0..n).try_for_each(|_| self.write_str(" "))
    }
}

impl Write for Tracked<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.column = match text.rfind('\n') {
            Some(at) => text.len() - at - 1,
            None => self.column + text.len(),
        };
        self.out.write_str(text)
    }
}
