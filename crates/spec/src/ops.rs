//! The one table of operations as data: what every method of the users' tensor is called, what kind it is, and what it
//! costs. Documentation, and whoever wraps the methods in another language, read it; a test holds it to the methods.

mod table;

pub use table::OPS;

/// What kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Another view of the same storage.
    View,
    /// The same elements, in the same or a new storage.
    Copy,
    /// Element by element.
    Elementwise,
    /// Over dims, or all elements.
    Reduction,
    /// Running along a dim.
    Scan,
    /// Sums of products.
    Product,
    /// By index tensors and masks.
    Index,
    /// By order and equality.
    Sort,
    /// Elements in other places: joined, repeated, turned.
    Arrange,
    /// From nothing.
    Create,
    /// Into this tensor.
    InPlace,
}

/// What an operation does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// No bytes.
    Free,
    /// No bytes where it can be so, else a copy.
    MayCopy,
    /// A new storage for each result.
    Allocates,
    /// Writes into the storage.
    Writes,
    /// Changes the handle alone.
    Metadata,
}

impl Cost {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Cost::Free => "nothing",
            Cost::MayCopy => "a copy where it must",
            Cost::Allocates => "allocates the result",
            Cost::Writes => "writes in place",
            Cost::Metadata => "changes the handle alone",
        }
    }
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The method, and after it its forms in place (`_`) and into an output (`_out`).
    pub names: &'static [&'static str],
    /// Its kind.
    pub class: Class,
    /// What the first of the names costs.
    pub cost: Cost,
    /// What it does, in a line.
    pub doc: &'static str,
}

impl OpInfo {
    /// The method's name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// Where an operation answers otherwise than PyTorch, and how; `docs/differences.md` has the reasons.
pub const DIFFERENCES: &[(&str, &str)] = &[
    (
        "bernoulli",
        "other random numbers; a probability beyond 0 and 1 is none",
    ),
    ("conj", "a copy; PyTorch sets a bit"),
    ("eq", "exact also with numbers that the dtype cannot hold"),
    ("ge", "exact also with numbers that the dtype cannot hold"),
    ("gt", "exact also with numbers that the dtype cannot hold"),
    ("le", "exact also with numbers that the dtype cannot hold"),
    ("lt", "exact also with numbers that the dtype cannot hold"),
    ("masked_fill_", "an expanded tensor is refused"),
    ("ne", "exact also with numbers that the dtype cannot hold"),
    ("rand", "other random numbers"),
    ("randint", "other random numbers"),
    ("randn", "other random numbers"),
    ("randperm", "other random numbers"),
    ("resize_", "changes nothing where it fails"),
];

/// `Class Cost { name name_ name_out = "doc"; … }`
macro_rules! rows {
    ($($class:ident $cost:ident { $($name:ident $($form:ident)* = $doc:literal;)* })*) => {
        /// Every operation, by class.
        pub const OPS: &[OpInfo] = &[$($(OpInfo {
            names: &[stringify!($name) $(, stringify!($form))*],
            class: Class::$class,
            cost: Cost::$cost,
            doc: $doc,
        },)*)*];
    };
}
use rows;
