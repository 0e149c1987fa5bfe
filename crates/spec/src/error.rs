//! The one error type, one word wide.

use std::error::Error as StdError;
use std::fmt;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Opaque: the message says it to people, the `is_*` predicates to programs.
///
/// A message names the operation, the shapes, dtypes, sites or file bytes concerned, and what to
/// do about it.
///
/// ```
/// use osteon_spec::{Error, Kind};
/// let e = Error::new(Kind::Shape, "sizes 3 and 4 do not match at dim 1").op("add");
/// assert!(e.is_shape());
/// assert_eq!(e.to_string(), "add: sizes 3 and 4 do not match at dim 1");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    op: Option<&'static str>,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    report: Option<Box<dyn OomReport>>,
}

/// The classes of failure behind the `is_*` predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Sizes that do not fit each other or the data.
    Shape,
    /// A dimension or index out of range (PyTorch's IndexError).
    Index,
    /// A dtype that the operation does not accept.
    DType,
    /// Any other bad argument.
    Value,
    /// A view that strides cannot express.
    Layout,
    /// A write whose destination overlaps itself or an input.
    Overlap,
    /// A typed guard is in the way.
    Borrowed,
    /// A write to memory that may not be written.
    ReadOnly,
    /// An implicit copy inside `copies::forbid()`.
    CopyForbidden,
    /// Memory that could not be had.
    OutOfMemory,
    /// Two devices, or an operation that the device cannot do.
    Device,
    /// The operating system refused.
    Io,
    /// A file that is not what it says.
    Format,
    /// A step of automatic differentiation that is not possible.
    Autograd,
}

/// What an out-of-memory error knows: `Display` for people, JSON for programs.
pub trait OomReport: fmt::Display + Send + Sync {
    /// The report as one JSON object.
    ///
    /// # Errors
    /// Out of memory.
    fn to_json(&self) -> Result<String>;
}

impl Error {
    /// A new error of a kind.
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            op: None,
            message: message.into(),
            source: None,
            report: None,
        }))
    }

    /// An out-of-memory error. Its message is its report, written when it is shown: no text is made while
    /// memory is full.
    #[cold]
    pub fn out_of_memory(report: Box<dyn OomReport>) -> Error {
        let mut e = Error::new(Kind::OutOfMemory, String::new());
        e.0.report = Some(report);
        e
    }

    /// An error of the operating system, about a path or an action.
    #[cold]
    pub fn io(context: impl Into<String>, source: std::io::Error) -> Error {
        let mut e = Error::new(Kind::Io, format!("{}: {source}", context.into()));
        e.0.source = Some(Box::new(source));
        e
    }

    /// The same error, said by this operation, unless an operation has spoken already.
    #[must_use]
    pub fn op(mut self, op: &'static str) -> Error {
        self.0.op.get_or_insert(op);
        self
    }

    /// The same error with words before its message (a file, a tensor's name).
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The class of failure.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The operation that failed, where one was running.
    pub fn op_name(&self) -> Option<&'static str> {
        self.0.op
    }

    /// The report of an out-of-memory error.
    pub fn oom_report(&self) -> Option<&dyn OomReport> {
        self.0.report.as_deref()
    }
}

macro_rules! predicates {
    ($($name:ident $kind:ident $doc:literal)*) => { impl Error { $(
        #[doc = $doc]
        pub fn $name(&self) -> bool { self.0.kind == Kind::$kind }
    )* } };
}

predicates! {
    is_shape Shape "Sizes that do not fit."
    is_index Index "A dimension or index out of range."
    is_dtype DType "A dtype that is not accepted."
    is_value Value "A bad argument of another sort."
    is_layout Layout "A view that strides cannot express; `reshape` would copy."
    is_overlap Overlap "A destination that overlaps itself or an input."
    is_borrowed Borrowed "A typed guard is in the way; the message names its site."
    is_read_only ReadOnly "A write to read-only memory."
    is_copy_forbidden CopyForbidden "An implicit copy inside `copies::forbid()`."
    is_out_of_memory OutOfMemory "Memory that could not be had; see [`Error::oom_report`]."
    is_device Device "Devices that differ or cannot do this."
    is_io Io "The operating system refused."
    is_format Format "A file that is not what it says."
    is_autograd Autograd "A step of differentiation that is not possible."
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(report) = &self.0.report {
            return write!(f, "{}{report}", self.0.message);
        }
        if let Some(op) = self.0.op {
            write!(f, "{op}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    // A test's `unwrap` shows this: the message, not the struct.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|e| &**e as _)
    }
}

const _: () = assert!(size_of::<Error>() == size_of::<usize>());
