//! The rows of a timeline's tables, and how they stand in JSON: the names of the columns once, then values.

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// A text, as its index in [`Timeline::strings`](super::Timeline::strings); 0 stands for none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Text(pub u32);

/// A row of a table.
pub(crate) trait Row: Default + Serialize {
    /// The names of its columns, in the order of its values.
    const COLUMNS: &'static [&'static str];

    /// Reads the next value into a column of this row; false at the end of the values.
    fn read<'de, A: SeqAccess<'de>>(
        &mut self,
        column: usize,
        values: &mut A,
    ) -> Result<bool, A::Error>;

    /// Each text of the row.
    fn each_text(&self, visit: impl FnMut(Text));
}

/// What a value of a column may be.
trait Value {
    fn text(&self) -> Option<Text> {
        None
    }
}
impl Value for u32 {}
impl Value for u64 {}
impl Value for bool {}
impl Value for Option<u64> {}
impl Value for Box<[u64]> {}
impl Value for Text {
    fn text(&self) -> Option<Text> {
        Some(*self)
    }
}

macro_rules! rows {
    ($($(#[$doc:meta])* $row:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Row for $row {
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn read<'de, A: SeqAccess<'de>>(
                &mut self,
                column: usize,
                values: &mut A,
            ) -> Result<bool, A::Error> {
                let name = Self::COLUMNS.get(column).copied();
                $(if name == Some(stringify!($field)) {
                    let Some(value) = values.next_element()? else { return Ok(false) };
                    self.$field = value;
                    return Ok(true);
                })*
                Ok(values.next_element::<IgnoredAny>()?.is_some())
            }

            fn each_text(&self, mut visit: impl FnMut(Text)) {
                $(if let Some(text) = self.$field.text() {
                    visit(text);
                })*
            }
        }

        impl Serialize for $row {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                let mut row = s.serialize_tuple(Self::COLUMNS.len())?;
                $(row.serialize_element(&self.$field)?;)*
                row.end()
            }
        }
    )*};
}

rows! {
    /// One stay of a storage in one place: from its allocation to its release.
    Stay {
        /// The storage's id.
        id: u64,
        /// Index in the devices.
        device: u32,
        /// Bytes requested.
        bytes: u64,
        /// Bytes of its block; 0 where they are not the allocator's.
        size: u64,
        /// Where its block begins.
        address: u64,
        /// When it was allocated, in nanoseconds of the recording.
        from: u64,
        /// When it was freed; none when it still is there.
        to: Option<u64>,
        /// Whether it was there when the recording began.
        before: bool,
        /// What made it.
        op: Text,
        /// The line that made it.
        site: Text,
        /// The scope in which it was made.
        scope: Text,
        /// Its label, or its first labelled tensor's.
        label: Text,
        /// The thread that made it.
        thread: u64,
        /// How often it was written.
        version: u64,
    }

    /// One tensor, for as long as the registry listed it.
    ViewSpan {
        /// The storage's id.
        storage: u64,
        /// When it was made.
        from: u64,
        /// When it went; none when it still is there.
        to: Option<u64>,
        /// Whether it was there when the recording began.
        before: bool,
        /// The operation that made it.
        op: Text,
        /// The line that made it.
        site: Text,
        /// The scope in which it was made.
        scope: Text,
        /// Its label.
        label: Text,
        /// Whether it was made as a view of another tensor.
        view: bool,
        /// The name of its dtype.
        dtype: Text,
        /// Sizes.
        shape: Box<[u64]>,
        /// Strides, in elements.
        stride: Box<[u64]>,
        /// The first element's position, in elements.
        offset: u64,
    }

    /// A range that the allocator held from the system.
    SegmentSpan {
        /// Index in the devices.
        device: u32,
        /// Where it begins.
        address: u64,
        /// Its bytes.
        size: u64,
        /// `small` or `large`.
        kind: Text,
        /// Since when.
        from: u64,
        /// Until when; none when it still is held.
        to: Option<u64>,
    }

    /// A copy that was made.
    CopySpan {
        /// When it was done.
        time: u64,
        /// How long it took.
        duration: u64,
        /// Bytes written.
        bytes: u64,
        /// Why.
        reason: Text,
        /// By which operation.
        op: Text,
        /// Called from which line.
        site: Text,
        /// In which scope.
        scope: Text,
        /// The id of the storage that was read.
        from: u64,
        /// The id of the storage that was written.
        to: u64,
        /// By which thread.
        thread: u64,
    }

    /// An in-place write.
    Write {
        /// When.
        time: u64,
        /// The storage's id.
        storage: u64,
        /// By which operation.
        op: Text,
        /// Called from which line.
        site: Text,
        /// In which scope.
        scope: Text,
        /// By which thread.
        thread: u64,
    }

    /// A moment worth a line in a drawing.
    Moment {
        /// When.
        time: u64,
        /// `step`, `scope`, `scope_end`, `oom`, `limit` or `label`.
        kind: Text,
        /// The scope, the failed operation, the label.
        text: Text,
        /// The step, the bytes refused, the limit, the storage labelled.
        value: Option<u64>,
        /// By which thread.
        thread: u64,
    }
}

/// A list of rows as a table in JSON, for `#[serde(with = "table")]`.
pub(crate) mod table {
    use super::*;

    pub fn serialize<R: Row, S: Serializer>(rows: &[R], s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(2))?;
        map.serialize_entry("columns", R::COLUMNS)?;
        map.serialize_entry("rows", rows)?;
        map.end()
    }

    pub fn deserialize<'de, R: Row, D: Deserializer<'de>>(d: D) -> Result<Vec<R>, D::Error> {
        d.deserialize_map(Table(PhantomData))
    }

    struct Table<R>(PhantomData<R>);

    impl<'de, R: Row> Visitor<'de> for Table<R> {
        type Value = Vec<R>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table of columns and rows")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<R>, A::Error> {
            let mut order: Option<Vec<usize>> = None;
            let mut rows = Vec::new();
            while let Some(key) = map.next_key::<String>()? {
                match key.as_str() {
                    "columns" => {
                        order = Some(order_of::<R, A::Error>(&map.next_value::<Vec<String>>()?)?)
                    }
                    "rows" => {
                        let order = order
                            .as_deref()
                            .ok_or_else(|| de::Error::custom("columns must stand before rows"))?;
                        rows = map.next_value_seed(Rows(order, PhantomData))?;
                    }
                    _ => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(rows)
        }
    }

    /// Which column of the row each value is; past them all for one that is not known.
    fn order_of<R: Row, E: de::Error>(columns: &[String]) -> Result<Vec<usize>, E> {
        if let Some(missing) = R::COLUMNS.iter().find(|c| !columns.iter().any(|o| o == *c)) {
            return Err(E::custom(format_args!("the column {missing} is missing")));
        }
        let place = |c: &String| R::COLUMNS.iter().position(|own| own == c);
        Ok(columns
            .iter()
            .map(|c| place(c).unwrap_or(R::COLUMNS.len()))
            .collect())
    }

    struct Rows<'a, R>(&'a [usize], PhantomData<R>);

    impl<'de, R: Row> DeserializeSeed<'de> for Rows<'_, R> {
        type Value = Vec<R>;

        fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Vec<R>, D::Error> {
            d.deserialize_seq(self)
        }
    }

    impl<'de, R: Row> Visitor<'de> for Rows<'_, R> {
        type Value = Vec<R>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of rows")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<R>, A::Error> {
            let mut rows = Vec::new();
            while let Some(row) = seq.next_element_seed(One(self.0, PhantomData))? {
                rows.try_reserve(1)
                    .map_err(|_| de::Error::custom("no memory for the rows"))?;
                rows.push(row);
            }
            Ok(rows)
        }
    }

    struct One<'a, R>(&'a [usize], PhantomData<R>);

    impl<'de, R: Row> DeserializeSeed<'de> for One<'_, R> {
        type Value = R;

        fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<R, D::Error> {
            d.deserialize_seq(self)
        }
    }

    impl<'de, R: Row> Visitor<'de> for One<'_, R> {
        type Value = R;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a row of {} values", self.0.len())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<R, A::Error> {
            let mut row = R::default();
            for (i, &column) in self.0.iter().enumerate() {
                if !row.read(column, &mut seq)? {
                    return Err(de::Error::invalid_length(i, &self));
                }
            }
            if seq.next_element::<IgnoredAny>()?.is_some() {
                return Err(de::Error::invalid_length(self.0.len() + 1, &self));
            }
            Ok(row)
        }
    }
}
