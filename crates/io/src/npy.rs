//! NumPy's `.npy`: a magic, a Python dict literal that describes the array, its bytes.

use crate::catalog::{
    ByteOrder, Catalog, DataLocation, Encoding, Format, StorageEntry, TensorEntry, stem,
};
use crate::error::{bad, count};
use crate::source::Source;
use osteon_spec::{DType, Dims, Error, Kind, Layout, MAX_RANK, Result, checked_product};
use osteon_tensor::View;
use std::path::Path;

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header that is read; NumPy itself reads 10,000 bytes unless told to trust the file.
const MAX_HEADER: u64 = 0x1_0000;

/// What a header says.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub dtype: DType,
    pub byte_order: ByteOrder,
    pub layout: Layout,
    pub nbytes: u64,
    /// Bytes before the array's.
    pub start: u64,
}

/// Reads a header by asking for the file's bytes in order.
pub(crate) fn header(mut read: impl FnMut(&mut [u8]) -> Result<()>) -> Result<Header> {
    let mut magic = [0; 8];
    read(&mut magic)?;
    if !magic.starts_with(MAGIC) {
        return Err(bad("does not begin with the magic of npy"));
    }
    let (len, start) = match magic[6] {
        1 => {
            let mut len = [0; 2];
            read(&mut len)?;
            (u64::from(u16::from_le_bytes(len)), 10)
        }
        2 | 3 => {
            let mut len = [0; 4];
            read(&mut len)?;
            (u64::from(u32::from_le_bytes(len)), 12)
        }
        v => {
            return Err(bad(format!(
                "is of npy version {v}.{}, which is not known",
                magic[7]
            )));
        }
    };
    if len > MAX_HEADER {
        return Err(bad(format!(
            "announces a header of {len} bytes; at most {MAX_HEADER} are read"
        )));
    }
    let mut text = vec![0; len as usize];
    read(&mut text)?;
    let literal =
        literal(&text).map_err(|e| e.context(format_args!("npy header at byte {start}")))?;
    let (dtype, byte_order) = dtype(&literal.descr)?;
    let numel = checked_product(&literal.shape)? as u64;
    let nbytes = numel.checked_mul(dtype.size() as u64);
    let nbytes = nbytes.ok_or_else(|| bad("is an array larger than can be"))?;
    let layout = if literal.fortran_order {
        fortran(&literal.shape)?
    } else {
        Layout::contiguous(&literal.shape)?
    };
    Ok(Header {
        dtype,
        byte_order,
        layout,
        nbytes,
        start: start + len,
    })
}

/// Column-major sizes.
fn fortran(sizes: &[usize]) -> Result<Layout> {
    let reversed: Dims = sizes.iter().rev().copied().collect();
    let mut strides = Dims::from_slice(Layout::contiguous(&reversed)?.strides());
    strides.reverse();
    Layout::new(Dims::from_slice(sizes), strides, 0)
}

/// The dtype of a `descr` such as `<f4`.
fn dtype(descr: &str) -> Result<(DType, ByteOrder)> {
    let (order, code) = match descr.split_at_checked(1) {
        Some(("<" | "|", code)) => (ByteOrder::Little, code),
        Some((">", code)) => (ByteOrder::Big, code),
        Some(("=", code)) if cfg!(target_endian = "little") => (ByteOrder::Little, code),
        Some(("=", code)) => (ByteOrder::Big, code),
        _ => (ByteOrder::Little, descr),
    };
    if code.starts_with('O') {
        return Err(bad(
            "holds Python objects, which are pickles; only numbers are read",
        ));
    }
    match CODES.iter().find(|(c, _)| *c == code) {
        Some(&(_, dtype)) => Ok((dtype, order)),
        None => Err(bad(format!(
            "is an array of the dtype {descr:?}, which is not supported"
        ))),
    }
}

/// NumPy's codes for the dtypes that it has.
const CODES: [(&str, DType); 14] = [
    ("b1", DType::Bool),
    ("u1", DType::U8),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

/// The header of a tensor in row-major order, padded so that the array begins at a multiple of 64 bytes.
pub(crate) fn encode(view: &View) -> Result<Vec<u8>> {
    let Some((code, _)) = CODES.iter().find(|(_, d)| *d == view.dtype()) else {
        let message = format!(
            "NumPy has no dtype {}; cast the tensor with to() first",
            view.dtype()
        );
        return Err(Error::new(Kind::DType, message));
    };
    let order = match view.element_size() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    let shape = match view.shape() {
        [n] => format!("({n},)"),
        dims => format!(
            "({})",
            dims.iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let mut text =
        format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take 10 bytes; the text ends with a line feed.
    let len = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', len - 1 - text.len()));
    text.push('\n');
    // The text of 64 dims stays far below the 65,535 bytes of version 1.
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((len as u16).to_le_bytes());
    header.extend(text.as_bytes());
    Ok(header)
}

#[derive(Debug, PartialEq)]
struct Literal {
    descr: String,
    fortran_order: bool,
    shape: Dims,
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, each key once, in any order.
fn literal(text: &[u8]) -> Result<Literal> {
    let mut p = Parser { rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    p.expect(b'{')?;
    while !p.accept(b'}') {
        let key = p.string()?;
        p.expect(b':')?;
        let again = match &*key {
            "descr" if p.peek() == Some(b'[') => {
                return Err(bad(
                    "describes a structured array; only plain numbers are read",
                ));
            }
            "descr" => descr.replace(p.string()?).is_some(),
            "fortran_order" => fortran_order.replace(p.boolean()?).is_some(),
            "shape" => shape.replace(p.shape()?).is_some(),
            _ => return Err(bad(format!("has the unknown key {key:?}"))),
        };
        if again {
            return Err(bad(format!("has the key {key:?} twice")));
        }
        if !p.accept(b',') {
            p.expect(b'}')?;
            break;
        }
    }
    p.skip_space();
    if !p.rest.is_empty() {
        return Err(bad("goes on after its dict"));
    }
    match (descr, fortran_order, shape) {
        (Some(descr), Some(fortran_order), Some(shape)) => Ok(Literal {
            descr,
            fortran_order,
            shape,
        }),
        _ => Err(bad("lacks one of descr, fortran_order and shape")),
    }
}

/// The part of Python's literals that these headers use.
struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.rest.first().copied()
    }

    fn accept(&mut self, b: u8) -> bool {
        let found = self.peek() == Some(b);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, b: u8) -> Result<()> {
        match self.accept(b) {
            true => Ok(()),
            false => Err(bad(format!(
                "is no dict literal: {:?} is missing",
                b as char
            ))),
        }
    }

    fn string(&mut self) -> Result<String> {
        let quote = self.peek().filter(|q| matches!(q, b'\'' | b'"'));
        let end = quote.and_then(|q| self.rest[1..].iter().position(|&b| b == q));
        let end = end.ok_or_else(|| bad("is no dict literal: a string is missing"))?;
        let text = &self.rest[1..1 + end];
        self.rest = &self.rest[end + 2..];
        // None of the strings that can follow has an escape.
        String::from_utf8(text.to_vec()).map_err(|_| bad("has a string that is not UTF-8"))
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_space();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word.as_bytes()) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(bad("has a fortran_order that is neither True nor False"))
    }

    fn shape(&mut self) -> Result<Dims> {
        let mut shape = Dims::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            if shape.len() == MAX_RANK {
                return Err(bad(format!("has more than {MAX_RANK} dimensions")));
            }
            self.skip_space();
            let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (number, rest) = self.rest.split_at(digits);
            let size = std::str::from_utf8(number)
                .ok()
                .and_then(|n| n.parse().ok());
            shape.push(
                size.ok_or_else(|| bad("has a size that is not a natural number that fits"))?,
            );
            // Python 2 wrote `3L`.
            self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

pub(crate) fn catalog(source: &Source, path: &Path) -> Result<Catalog> {
    let mut at = 0;
    let header = header(|buf| {
        source.read_at(at, buf)?;
        at += buf.len() as u64;
        Ok(())
    })?;
    check_len(&header, source.len())?;
    let (tensor, storage) = entries(
        stem(path),
        0,
        &header,
        DataLocation {
            offset: header.start,
            length: header.nbytes,
            encoding: Encoding::Stored,
            byte_order: header.byte_order,
            crc32: None,
        },
    );
    Ok(Catalog {
        path: path.to_path_buf(),
        format: Format::Npy,
        file_bytes: source.len(),
        tensors: vec![tensor],
        storages: vec![storage],
        warnings: Vec::new(),
    })
}

/// Compares an array's size with what follows its header.
pub(crate) fn check_len(header: &Header, len: u64) -> Result<()> {
    let data = len - header.start;
    if data != header.nbytes {
        let which = if data < header.nbytes {
            " (cut short?)"
        } else {
            ""
        };
        return Err(bad(format!(
            "describes {} {} at byte {}, {} bytes, but {} follow{which}",
            header.layout,
            header.dtype,
            header.start,
            header.nbytes,
            count(data, "byte")
        )));
    }
    Ok(())
}

/// An array as the only tensor of its storage.
pub(crate) fn entries(
    name: String,
    storage: usize,
    header: &Header,
    data: DataLocation,
) -> (TensorEntry, StorageEntry) {
    let entry = StorageEntry {
        key: name.clone(),
        nbytes: header.nbytes,
        dtype: header.dtype,
        data,
    };
    let tensor = TensorEntry {
        name,
        dtype: header.dtype,
        layout: header.layout.clone(),
        storage,
        requires_grad: false,
        conj: false,
        neg: false,
    };
    (tensor, entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_as_numpy_and_others_write_them() {
        let l =
            literal(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!(
            (&*l.descr, l.fortran_order, l.shape.as_slice()),
            ("<f4", false, &[3, 4][..])
        );
        let l = literal(b"{\"shape\":(5L,),\"fortran_order\":True,\"descr\":\"|u1\"}").unwrap();
        assert_eq!(
            (&*l.descr, l.fortran_order, l.shape.as_slice()),
            ("|u1", true, &[5][..])
        );
        assert_eq!(
            literal(b"{'descr':'b1','fortran_order':False,'shape':()}")
                .unwrap()
                .shape
                .len(),
            0
        );
        for broken in [
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f4",
            "",
        ] {
            assert!(literal(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn column_major_strides() {
        assert_eq!(fortran(&[2, 3, 4]).unwrap().strides(), [1, 2, 6]);
        assert_eq!(fortran(&[]).unwrap().rank(), 0);
    }
}
