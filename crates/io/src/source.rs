//! Bytes to read from: a file by positioned reads, or memory. Nothing is allocated beyond what is there.

use crate::error::{bad, out_of_memory};
use osteon_spec::{Error, Kind, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A file or a byte string, of a length that is known before anything is read.
#[derive(Debug)]
pub(crate) struct Source {
    bytes: Bytes,
    len: u64,
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Source> {
        let file = File::open(path).map_err(|e| Error::io("cannot open", e))?;
        let meta = file.metadata().map_err(|e| Error::io("cannot open", e))?;
        if !meta.is_file() {
            return Err(Error::new(Kind::Io, "is not a regular file"));
        }
        Ok(Source {
            len: meta.len(),
            bytes: Bytes::File(file),
        })
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Source {
        Source {
            len: bytes.len() as u64,
            bytes: Bytes::Memory(bytes),
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// The open file, where there is one, to map.
    pub fn file(&self) -> Option<&File> {
        match &self.bytes {
            Bytes::File(f) => Some(f),
            Bytes::Memory(_) => None,
        }
    }

    /// Fills `buf` from `offset`; bytes that are not there are an error.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(bad(format!(
                "is cut short: {} bytes are needed at byte {offset}, but it ends at byte {}",
                buf.len(),
                self.len
            )));
        }
        match &self.bytes {
            // A file that shrinks while it is read ends up here as an I/O error.
            Bytes::File(f) => read_exact_at(f, buf, offset)
                .map_err(|e| Error::io(format!("cannot read at byte {offset}"), e)),
            Bytes::Memory(m) => {
                let start = offset as usize;
                buf.copy_from_slice(&m[start..start + buf.len()]);
                Ok(())
            }
        }
    }

    /// `len` bytes from `offset`. The claim is compared with what is there before memory is asked for.
    pub fn read_vec(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(bad(format!(
                "is cut short: {len} bytes are needed at byte {offset}, but it ends at byte {}",
                self.len
            )));
        }
        let mut buf = zeroed(len)?;
        self.read_at(offset, &mut buf)?;
        Ok(buf)
    }
}

/// Zero bytes, or an error where memory is short.
pub(crate) fn zeroed(len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| out_of_memory(len))?;
    let mut buf = Vec::new();
    buf.try_reserve_exact(len)
        .map_err(|_| out_of_memory(len as u64))?;
    buf.resize(len, 0);
    Ok(buf)
}

/// Bytes copied at a time.
const WINDOW: u64 = 1 << 20;

/// Copies a stretch of a source through a window of fixed size.
pub(crate) fn copy(source: &Source, offset: u64, len: u64, out: &mut impl Write) -> Result<()> {
    let mut window = zeroed(len.min(WINDOW))?;
    let mut done = 0;
    while done < len {
        let n = (len - done).min(WINDOW) as usize;
        source.read_at(offset + done, &mut window[..n])?;
        out.write_all(&window[..n])
            .map_err(|e| Error::io("cannot write", e))?;
        done += n as u64;
    }
    Ok(())
}

#[cfg(unix)]
fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buf: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buf.is_empty() {
        let n = file.seek_read(buf, offset)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        buf = &mut buf[n..];
        offset += n as u64;
    }
    Ok(())
}

/// A place in a stretch of a [`Source`], read forwards through a small buffer.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    source: &'a Source,
    /// Position of the next byte, and the end of the stretch, in the source.
    pos: u64,
    end: u64,
    buf: Vec<u8>,
    /// Position of `buf[0]` in the source.
    buf_at: u64,
}

/// Bytes read at a time.
const BUFFER: u64 = 64 * 1024;

impl<'a> Cursor<'a> {
    /// The bytes from `start` to `end`, which the caller has checked to lie in the source.
    pub fn new(source: &'a Source, start: u64, end: u64) -> Cursor<'a> {
        debug_assert!(start <= end && end <= source.len());
        Cursor {
            source,
            pos: start,
            end,
            buf: Vec::new(),
            buf_at: start,
        }
    }

    /// Position of the next byte in the source.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    pub fn remaining(&self) -> u64 {
        self.end - self.pos
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        let at = (self.pos - self.buf_at) as usize;
        if let Some(&b) = self.buf.get(at) {
            self.pos += 1;
            return Ok(b);
        }
        self.refill()?;
        let b = self.buf[0];
        self.pos += 1;
        Ok(b)
    }

    fn refill(&mut self) -> Result<()> {
        if self.pos >= self.end {
            return Err(bad(format!("ends early, at byte {}", self.end)));
        }
        self.buf = self
            .source
            .read_vec(self.pos, self.remaining().min(BUFFER))?;
        self.buf_at = self.pos;
        Ok(())
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        for b in &mut out {
            *b = self.byte()?;
        }
        Ok(out)
    }

    /// The next `n` bytes, allocated only after it is known that they are there.
    pub fn take(&mut self, n: u64) -> Result<Box<[u8]>> {
        self.check(n)?;
        let at = (self.pos - self.buf_at) as usize;
        let out = match self.buf.get(at..).and_then(|b| b.get(..n as usize)) {
            Some(b) => b.into(),
            None => self.source.read_vec(self.pos, n)?.into_boxed_slice(),
        };
        self.pos += n;
        Ok(out)
    }

    /// Passes over `n` bytes; where they lie.
    pub fn skip(&mut self, n: u64) -> Result<u64> {
        self.check(n)?;
        let start = self.pos;
        self.pos += n;
        Ok(start)
    }

    fn check(&self, n: u64) -> Result<()> {
        if n > self.remaining() {
            return Err(bad(format!(
                "byte {} announces {n} bytes, but {} are left",
                self.pos,
                self.remaining()
            )));
        }
        Ok(())
    }

    /// The bytes up to the next line feed, which is passed over.
    pub fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                b => {
                    line.try_reserve(1)
                        .map_err(|_| out_of_memory(line.len() as u64))?;
                    line.push(b);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_never_leaves_its_stretch() {
        let s = Source::from_bytes((0..200).collect());
        let mut c = Cursor::new(&s, 10, 14);
        assert_eq!(c.byte().unwrap(), 10);
        assert_eq!(&*c.take(2).unwrap(), [11, 12]);
        assert!(c.take(2).is_err());
        assert_eq!(c.skip(1).unwrap(), 13);
        assert!(c.byte().is_err());
        assert_eq!(c.pos(), 14);
    }

    #[test]
    fn claims_are_compared_before_memory_is_asked_for() {
        let s = Source::from_bytes(vec![0; 8]);
        assert!(s.read_vec(0, u64::MAX).unwrap_err().is_format());
        assert!(s.read_vec(u64::MAX, 2).unwrap_err().is_format());
        assert!(s.read_vec(8, 0).unwrap().is_empty());
    }
}
