//! The bytes of zip records: inflated under the size that they declare, their checksums compared.

use crate::error::bad;
use crate::source::{Source, copy, zeroed};
use crate::zipfile::Record;
use flate2::read::DeflateDecoder;
use osteon_spec::{Error, Result};
use std::io::{Read, Write};

/// The inflated bytes of a stretch of a source, of which the size and the checksum were declared.
pub(crate) struct Inflated<'a> {
    stream: DeflateDecoder<Window<'a>>,
    crc: flate2::Crc,
    left: u64,
    want: u32,
}

/// A stretch of a source as a reader.
struct Window<'a> {
    source: &'a Source,
    pos: u64,
    end: u64,
}

impl Read for Window<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = (self.end - self.pos).min(buf.len() as u64) as usize;
        self.source
            .read_at(self.pos, &mut buf[..n])
            .map_err(std::io::Error::other)?;
        self.pos += n as u64;
        Ok(n)
    }
}

impl<'a> Inflated<'a> {
    pub fn new(
        source: &'a Source,
        offset: u64,
        length: u64,
        size: u64,
        crc32: u32,
    ) -> Inflated<'a> {
        let window = Window {
            source,
            pos: offset,
            end: offset + length,
        };
        let stream = DeflateDecoder::new(window);
        Inflated {
            stream,
            crc: flate2::Crc::new(),
            left: size,
            want: crc32,
        }
    }

    /// Fills `buf` with the next bytes.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<()> {
        if buf.len() as u64 > self.left {
            return Err(bad(format!(
                "inflates to {} bytes fewer than are needed",
                buf.len() as u64 - self.left
            )));
        }
        self.stream.read_exact(buf).map_err(inflating)?;
        self.crc.update(buf);
        self.left -= buf.len() as u64;
        Ok(())
    }

    /// Passes over bytes.
    pub fn skip(&mut self, mut n: u64) -> Result<()> {
        let mut scratch = [0; 4096];
        while n > 0 {
            let part = n.min(scratch.len() as u64) as usize;
            self.read(&mut scratch[..part])?;
            n -= part as u64;
        }
        Ok(())
    }

    /// Reads to the end, which must be where it was declared, and compares the checksum.
    pub fn finish(mut self) -> Result<()> {
        self.skip(self.left)?;
        match self.stream.read(&mut [0]).map_err(inflating)? {
            0 => check_crc(self.crc.sum(), self.want),
            _ => Err(bad("inflates to more than the size it declares")),
        }
    }
}

#[cold]
fn inflating(e: std::io::Error) -> Error {
    bad(format!("cannot be inflated to its declared size: {e}"))
}

/// A whole small record in memory, its checksum verified; one larger than `limit` is refused before
/// anything is read.
pub(crate) fn read_record(source: &Source, record: &Record, limit: u64) -> Result<Vec<u8>> {
    let read = || -> Result<Vec<u8>> {
        if record.size > limit {
            return Err(bad(format!(
                "has {} bytes; the limit is {limit}",
                record.size
            )));
        }
        let mut bytes = zeroed(record.size)?;
        if record.deflated {
            let mut stream = record.inflated(source);
            stream.read(&mut bytes)?;
            stream.finish()?;
        } else {
            source.read_at(record.offset, &mut bytes)?;
            check_crc(crc32_of(&bytes), record.crc32)?;
        }
        Ok(bytes)
    };
    read().map_err(|e| e.context(format_args!("record {:?}", record.name)))
}

/// Compares a stored record's checksum with its bytes, through a window of fixed size.
pub(crate) fn verify_stored(source: &Source, record: &Record) -> Result<()> {
    let mut crc = CrcWriter(flate2::Crc::new());
    copy(source, record.offset, record.length, &mut crc)?;
    check_crc(crc.0.sum(), record.crc32)
}

/// Counts what is written into a checksum.
struct CrcWriter(flate2::Crc);

impl Write for CrcWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn crc32_of(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Compares checksums; 0 stands for none (PyTorch can leave them out).
pub(crate) fn check_crc(got: u32, want: u32) -> Result<()> {
    if got != want && want != 0 {
        return Err(bad(format!(
            "has the checksum {got:08x}, not {want:08x}: its bytes have changed"
        )));
    }
    Ok(())
}
