//! Tables column by column, small enough to stand in a page: a million rows take a few megabytes.
//!
//! A column is base64 of bytes: for each row the difference to the row before, zigzag (0, -1, 1, -2, … become 0, 1, 2, 3, …), in groups
//! of seven bits, lowest first, the eighth bit set on all but the last. A value stands as itself plus one; none is zero.
//!
//! A script's numbers are exact up to 2^53, and so are the differences of values up to [`MOST`]; larger ones stand as that.

use osteon_spec::{Error, Kind, Result};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};

/// The largest number that a page shows as it is.
const MOST: u64 = (1 << 52) - 1;

/// A table of numbers.
pub(crate) struct Columns<const N: usize> {
    names: [&'static str; N],
    columns: [Column; N],
    rows: usize,
}

#[derive(Default)]
struct Column {
    bytes: Vec<u8>,
    last: u64,
}

impl<const N: usize> Columns<N> {
    pub fn new(names: [&'static str; N]) -> Columns<N> {
        Columns {
            names,
            columns: std::array::from_fn(|_| Column::default()),
            rows: 0,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Out of memory.
    pub fn push(&mut self, row: [Option<u64>; N]) -> Result<()> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value)?;
        }
        self.rows += 1;
        Ok(())
    }
}

impl Column {
    fn push(&mut self, value: Option<u64>) -> Result<()> {
        let value = value.map_or(0, |v| v.min(MOST) + 1);
        let difference = value.cast_signed() - self.last.cast_signed();
        self.last = value;
        let mut zigzag = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        self.bytes.try_reserve(10).map_err(|_| no_memory())?;
        while zigzag > 127 {
            self.bytes.push(zigzag as u8 | 128);
            zigzag >>= 7;
        }
        self.bytes.push(zigzag as u8);
        Ok(())
    }
}

pub(super) fn no_memory() -> Error {
    Error::new(Kind::OutOfMemory, "no memory for the timeline's page")
}

impl<const N: usize> Serialize for Columns<N> {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let mut table = s.serialize_struct("Columns", 2)?;
        table.serialize_field("rows", &self.rows)?;
        table.serialize_field("columns", &Named(self))?;
        table.end()
    }
}

struct Named<'a, const N: usize>(&'a Columns<N>);

impl<const N: usize> Serialize for Named<'_, N> {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(N))?;
        for (name, column) in self.0.names.iter().zip(&self.0.columns) {
            let text = base64(&column.bytes).map_err(serde::ser::Error::custom)?;
            map.serialize_entry(name, &text)?;
        }
        map.end()
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> Result<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    text.try_reserve_exact(bytes.len().div_ceil(3) * 4)
        .map_err(|_| no_memory())?;
    for chunk in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|i| u32::from(chunk.get(i).copied().unwrap_or(0)));
        let word = a << 16 | b << 8 | c;
        for digit in 0..4 {
            text.push(if digit > chunk.len() {
                '='
            } else {
                char::from(DIGITS[(word >> (18 - 6 * digit)) as usize & 63])
            });
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn columns_by_hand() {
        let mut table = Columns::new(["a"]);
        // 5 stands as 6: difference 6, zigzag 12. none as 0: -6, 11. 69 as 70: zigzag 140 = 12 + 128.
        for value in [Some(5), None, Some(69)] {
            table.push([value]).unwrap();
        }
        assert_eq!(table.columns[0].bytes, [12, 11, 140, 1]);
        // As 2^52, zigzag 2^53: seven groups of zeros and 2^4; then a difference of 1 - 2^52, zigzag 2^53 - 3.
        let mut wide = Columns::new(["a"]);
        for value in [Some(u64::MAX), Some(0)] {
            wide.push([value]).unwrap();
        }
        let most = [128, 128, 128, 128, 128, 128, 128, 16];
        let back = [253, 255, 255, 255, 255, 255, 255, 15];
        assert_eq!(wide.columns[0].bytes, [most, back].concat());
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, r#"{"rows":3,"columns":{"a":"DAuMAQ=="}}"#);
    }
}
