//! NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.

use crate::catalog::{Catalog, DataLocation, Encoding, Format};
use crate::error::bad;
use crate::npy;
use crate::source::Source;
use crate::zipfile::{Archive, Record};
use osteon_spec::Result;
use std::path::Path;

pub(crate) fn catalog(source: &Source, archive: &Archive, path: &Path) -> Result<Catalog> {
    let mut tensors = Vec::new();
    let mut storages = Vec::new();
    for record in &archive.records {
        let Some(name) = record.name.strip_suffix(".npy") else {
            return Err(bad(format!(
                "is a zip archive, but its record {:?} is neither a pickle of PyTorch's nor an array",
                record.name
            )));
        };
        let in_record = || format!("record {:?}", record.name);
        let (header, data) = array(source, record).map_err(|e| e.context(in_record()))?;
        let (tensor, storage) = npy::entries(name.to_owned(), storages.len(), &header, data);
        tensors.push(tensor);
        storages.push(storage);
    }
    Ok(Catalog {
        path: path.to_path_buf(),
        format: Format::Npz,
        file_bytes: source.len(),
        tensors,
        storages,
        warnings: Vec::new(),
    })
}

/// The header of an array; of a deflated one, no more than that is inflated.
fn array(source: &Source, record: &Record) -> Result<(npy::Header, DataLocation)> {
    let header = if record.deflated {
        let mut stream = record.inflated(source);
        npy::header(|buf| stream.read(buf))?
    } else {
        let (mut at, end) = (record.offset, record.offset + record.length);
        npy::header(|buf| {
            if buf.len() as u64 > end - at {
                return Err(bad("ends within its header"));
            }
            source.read_at(at, buf)?;
            at += buf.len() as u64;
            Ok(())
        })?
    };
    if header.start > record.size {
        return Err(bad("ends within its header"));
    }
    npy::check_len(&header, record.size)?;
    let byte_order = header.byte_order;
    let data = if record.deflated {
        let (inflated, crc32) = (record.size, record.crc32);
        let encoding = Encoding::Deflated {
            skip: header.start,
            inflated,
            crc32,
        };
        DataLocation {
            offset: record.offset,
            length: record.length,
            encoding,
            byte_order,
            crc32: None,
        }
    } else {
        let (offset, length) = (record.offset + header.start, header.nbytes);
        DataLocation {
            offset,
            length,
            encoding: Encoding::Stored,
            byte_order,
            crc32: None,
        }
    };
    Ok((header, data))
}
