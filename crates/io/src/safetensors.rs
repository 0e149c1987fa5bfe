//! The safetensors format: a length, a JSON header, the tensors' bytes without a gap.

use crate::atomic::{Out, put};
use crate::catalog::{
    ByteOrder, Catalog, DataLocation, Encoding, Format, StorageEntry, TensorEntry, Warning,
    WarningKind,
};
use crate::error::{bad, count};
use crate::save::{Held, Tensors};
use crate::source::Source;
use osteon_spec::{DType, Dims, Error, Kind, Layout, Result, checked_product};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;

/// The longest header that the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// The dtypes that the format names. Those without a [`DType`] here have a size in bits all the same.
const DTYPES: [(&str, Option<DType>, u64); 22] = [
    ("BOOL", Some(DType::Bool), 8),
    ("U8", Some(DType::U8), 8),
    ("I8", Some(DType::I8), 8),
    ("I16", Some(DType::I16), 16),
    ("U16", Some(DType::U16), 16),
    ("F16", Some(DType::F16), 16),
    ("BF16", Some(DType::BF16), 16),
    ("I32", Some(DType::I32), 32),
    ("U32", Some(DType::U32), 32),
    ("F32", Some(DType::F32), 32),
    ("I64", Some(DType::I64), 64),
    ("U64", Some(DType::U64), 64),
    ("F64", Some(DType::F64), 64),
    ("C64", Some(DType::C64), 64),
    ("F8_E4M3", Some(DType::F8E4M3FN), 8),
    ("F8_E5M2", Some(DType::F8E5M2), 8),
    ("F8_E8M0", None, 8),
    ("F8_E4M3FNUZ", None, 8),
    ("F8_E5M2FNUZ", None, 8),
    ("F6_E2M3", None, 6),
    ("F6_E3M2", None, 6),
    ("F4", None, 4),
];

/// The format's name for a dtype.
fn dtype_name(dtype: DType) -> Result<&'static str> {
    let found = DTYPES.iter().find(|(_, d, _)| *d == Some(dtype));
    found.map(|(name, _, _)| *name).ok_or_else(|| {
        let message = format!("safetensors has no dtype {dtype}; cast the tensor with to() first");
        Error::new(Kind::DType, message)
    })
}

/// A length that can be one, then the brace that every header begins with.
pub(crate) fn is_safetensors(start: &[u8]) -> bool {
    let Some((len, rest)) = start.split_first_chunk::<8>() else {
        return false;
    };
    u64::from_le_bytes(*len) <= MAX_HEADER && rest.first() == Some(&b'{')
}

/// The header: tensors in file order of their data, and what `__metadata__` says.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub tensors: Vec<(String, Info)>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Info {
    pub dtype: String,
    pub shape: Vec<u64>,
    pub data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Header, D::Error> {
        d.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    // Ordinary maps keep the last of two equal keys in silence; here they are an error.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(de::Error::custom(format!("the key {key:?} appears twice")));
            }
            if key == "__metadata__" {
                header.metadata = map.next_value()?;
            } else {
                let info = map.next_value()?;
                header.tensors.push((key, info));
            }
        }
        Ok(header)
    }
}

/// Reads the header; also where the data begins.
pub(crate) fn header(source: &Source) -> Result<(Header, u64)> {
    let mut len = [0; 8];
    source.read_at(0, &mut len)?;
    let len = u64::from_le_bytes(len);
    if len > MAX_HEADER {
        return Err(bad(format!(
            "the header's length at byte 0 is {len}; the format allows {MAX_HEADER}"
        )));
    }
    if len > source.len() - 8 {
        return Err(bad(format!(
            "the header's length at byte 0 is {len}, but {} follow (cut short?)",
            count(source.len() - 8, "byte")
        )));
    }
    let text = source.read_vec(8, len)?;
    if text.first() != Some(&b'{') {
        return Err(bad("the header at byte 8 does not begin with '{'"));
    }
    let mut header: Header = serde_json::from_slice(&text)
        .map_err(|e| bad(format!("the header at byte 8 is not one: {e}")))?;
    header.tensors.sort_by_key(|(_, info)| info.data_offsets);
    Ok((header, 8 + len))
}

pub(crate) fn catalog(source: &Source, path: &Path) -> Result<Catalog> {
    let (header, start) = header(source)?;
    let data_len = source.len() - start;
    let mut warnings = Vec::new();
    let mut tensors = Vec::new();
    let mut storages = Vec::new();
    let mut next = 0;
    for (name, info) in &header.tensors {
        let (begin, end) = info.data_offsets;
        let (dtype, nbytes) =
            sizes(info).map_err(|e| e.context(format_args!("tensor {name:?}")))?;
        if begin > end || end > data_len {
            return Err(bad(format!(
                "tensor {name:?} lies at data bytes {begin}..{end} of {data_len} (cut short?)"
            )));
        }
        if end - begin != nbytes {
            return Err(bad(format!(
                "tensor {name:?} of {} {:?} takes {nbytes} bytes, but its data_offsets span {}",
                info.dtype,
                info.shape,
                end - begin
            )));
        }
        if begin != next {
            let what = if begin < next {
                "overlaps the tensor before it"
            } else {
                "leaves a hole"
            };
            return Err(bad(format!(
                "tensor {name:?} at data byte {begin} {what}, which ends at data byte {next}"
            )));
        }
        next = end;
        match dtype {
            Some(dtype) => tensors.push(TensorEntry {
                name: name.clone(),
                dtype,
                layout: Layout::contiguous(&dims(&info.shape)?)?,
                storage: storages.len(),
                requires_grad: false,
                conj: false,
                neg: false,
            }),
            None => warnings.push(Warning::new(
                WarningKind::Unsupported,
                format!(
                    "tensor {name:?} is left out: its dtype {} is not supported",
                    info.dtype
                ),
            )),
        }
        storages.push(StorageEntry {
            key: name.clone(),
            nbytes,
            dtype: dtype.unwrap_or(DType::U8),
            data: DataLocation {
                offset: start + begin,
                length: nbytes,
                encoding: Encoding::Stored,
                byte_order: ByteOrder::Little,
                crc32: None,
            },
        });
    }
    if next != data_len {
        return Err(bad(format!(
            "the last tensor ends at data byte {next}, but the file has {}",
            count(data_len, "data byte")
        )));
    }
    if start % 8 != 0 && !tensors.is_empty() {
        warnings.push(Warning::new(
            WarningKind::Structure,
            format!("the data begins at byte {start}, not a multiple of 8: tensors are copied when they are loaded"),
        ));
    }
    Ok(Catalog {
        path: path.to_path_buf(),
        format: Format::Safetensors,
        file_bytes: source.len(),
        tensors,
        storages,
        warnings,
    })
}

/// The dtype, where it is one of ours, and the size in bytes.
fn sizes(info: &Info) -> Result<(Option<DType>, u64)> {
    let Some(&(_, dtype, bits)) = DTYPES.iter().find(|(name, _, _)| *name == info.dtype) else {
        return Err(bad(format!("has the unknown dtype {:?}", info.dtype)));
    };
    let numel = checked_product(&dims(&info.shape)?)? as u64;
    match numel.checked_mul(bits) {
        Some(n) if n % 8 == 0 => Ok((dtype, n / 8)),
        _ => Err(bad(format!(
            "has {numel} elements of {bits} bits, not a number of bytes"
        ))),
    }
}

fn dims(shape: &[u64]) -> Result<Dims> {
    shape
        .iter()
        .map(|&n| usize::try_from(n))
        .collect::<Result<Dims, _>>()
        .map_err(|_| {
            bad(format!(
                "has the shape {shape:?}, too large for this machine"
            ))
        })
}

/// Writes tensors dense, in the order of the format's own serialiser: wide elements first, so that all
/// are aligned, then by name.
pub(crate) fn write(tensors: &Tensors<'_>, out: &mut Out) -> Result<()> {
    let mut order: Vec<&Held<'_>> = tensors.list.iter().collect();
    order.sort_by_key(|t| (std::cmp::Reverse(t.view.element_size()), t.name));
    // Strings cannot fail to be written as JSON.
    let quoted = |s: &str| serde_json::Value::from(s).to_string();
    let mut header = String::from(r#"{"__metadata__":{"format":"pt"}"#);
    let mut at = 0;
    for t in &order {
        if t.name == "__metadata__" {
            return Err(Error::new(
                Kind::Value,
                "no tensor can be named \"__metadata__\"",
            ));
        }
        let end = at + t.view.nbytes();
        header += &format!(
            r#",{}:{{"dtype":"{}","shape":{},"data_offsets":[{at},{end}]}}"#,
            quoted(t.name),
            dtype_name(t.view.dtype())?,
            serde_json::json!(t.view.shape())
        );
        at = end;
    }
    header.push('}');
    header.extend(std::iter::repeat_n(
        ' ',
        header.len().next_multiple_of(8) - header.len(),
    ));
    if header.len() as u64 > MAX_HEADER {
        return Err(Error::new(
            Kind::Value,
            format!(
                "a header of {} bytes; the format allows {MAX_HEADER}",
                header.len()
            ),
        ));
    }
    put(out, &(header.len() as u64).to_le_bytes())?;
    put(out, header.as_bytes())?;
    order
        .into_iter()
        .try_for_each(|t| tensors.write_dense(t, out))
}
