//! Zip archives of stored records, laid out as PyTorch lays them out: data at multiples of 64 bytes, the
//! checksum behind the data, so that nothing is read twice and nothing is held.

use crate::atomic::put;
use crate::error::bad;
use osteon_spec::Result;
use std::io::{self, Write};

/// PyTorch maps storages where they lie: they begin at multiples of this.
pub(crate) const ALIGNMENT: u64 = 64;

const MAX: u64 = u32::MAX as u64;
/// Bit 11: names are UTF-8. Bit 3: sizes and checksum follow the data.
const UTF8: u16 = 1 << 11;
const STREAMED: u16 = 1 << 3;

/// An archive that is being written.
pub(crate) struct Writer<W> {
    out: Counted<W>,
    records: Vec<Done>,
}

struct Done {
    name: String,
    flags: u16,
    crc32: u32,
    size: u64,
    header: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W) -> Writer<W> {
        Writer {
            out: Counted {
                out,
                at: 0,
                crc: flate2::Crc::new(),
            },
            records: Vec::new(),
        }
    }

    /// A record of bytes that are at hand.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.record(name, bytes.len() as u64, |out| put(out, bytes))
            .map(drop)
    }

    /// A record of `size` bytes, which `fill` must write exactly. Returns their checksum.
    pub fn record(
        &mut self,
        name: &str,
        size: u64,
        fill: impl FnOnce(&mut Counted<W>) -> Result<()>,
    ) -> Result<u32> {
        let name_len = u16::try_from(name.len())
            .map_err(|_| bad(format!("a record name of {} bytes is too long", name.len())))?;
        let header = self.out.at;
        let flags = if size > 0 { UTF8 | STREAMED } else { UTF8 };
        let mut extra = Vec::new();
        if size >= MAX || header >= MAX {
            let mut wide = Vec::new();
            if size >= MAX {
                wide.extend([size.to_le_bytes(), size.to_le_bytes()].concat());
            }
            if header >= MAX {
                wide.extend(header.to_le_bytes());
            }
            field(&mut extra, 1, &wide);
        }
        // The padding is an extra field of its own, as PyTorch's reader computes it.
        let start = header + 30 + u64::from(name_len) + extra.len() as u64 + 4;
        let padding = start.next_multiple_of(ALIGNMENT) - start;
        field(
            &mut extra,
            u16::from_le_bytes(*b"FB"),
            &vec![b'Z'; padding as usize],
        );

        let mut local = Vec::from(0x0403_4b50u32.to_le_bytes());
        local.extend(20u16.to_le_bytes());
        local.extend(flags.to_le_bytes());
        // Method, time, date, checksum and sizes are zero: stored, undated, and told after the data.
        local.extend([0; 18]);
        local.extend(name_len.to_le_bytes());
        local.extend((extra.len() as u16).to_le_bytes());
        put(&mut self.out, &local)?;
        put(&mut self.out, name.as_bytes())?;
        put(&mut self.out, &extra)?;

        let start = self.out.at;
        self.out.crc = flate2::Crc::new();
        fill(&mut self.out)?;
        let crc32 = self.out.crc.sum();
        if self.out.at - start != size {
            let wrote = self.out.at - start;
            return Err(bad(format!(
                "record {name:?} was to have {size} bytes and got {wrote}"
            )));
        }
        if size > 0 {
            let mut after = Vec::from(0x0807_4b50u32.to_le_bytes());
            after.extend(crc32.to_le_bytes());
            if size >= MAX || header >= MAX {
                after.extend([size.to_le_bytes(), size.to_le_bytes()].concat());
            } else {
                after.extend([(size as u32).to_le_bytes(), (size as u32).to_le_bytes()].concat());
            }
            put(&mut self.out, &after)?;
        }
        self.records.push(Done {
            name: name.to_owned(),
            flags,
            crc32,
            size,
            header,
        });
        Ok(crc32)
    }

    /// Writes the directory.
    pub fn finish(mut self) -> Result<()> {
        let start = self.out.at;
        for r in std::mem::take(&mut self.records) {
            let mut wide = Vec::new();
            if r.size >= MAX {
                wide.extend([r.size.to_le_bytes(), r.size.to_le_bytes()].concat());
            }
            if r.header >= MAX {
                wide.extend(r.header.to_le_bytes());
            }
            let mut extra = Vec::new();
            if !wide.is_empty() {
                field(&mut extra, 1, &wide);
            }
            let version: u16 = if wide.is_empty() { 20 } else { 45 };
            let narrow = |n: u64| (n.min(MAX) as u32).to_le_bytes();
            let mut entry = Vec::from(0x0201_4b50u32.to_le_bytes());
            entry.extend(version.to_le_bytes());
            entry.extend(version.to_le_bytes());
            entry.extend(r.flags.to_le_bytes());
            entry.extend([0; 6]);
            entry.extend(r.crc32.to_le_bytes());
            entry.extend(narrow(r.size));
            entry.extend(narrow(r.size));
            entry.extend((r.name.len() as u16).to_le_bytes());
            entry.extend((extra.len() as u16).to_le_bytes());
            entry.extend([0; 10]);
            entry.extend(narrow(r.header));
            entry.extend(r.name.as_bytes());
            entry.extend(extra);
            put(&mut self.out, &entry)?;
            self.records.push(r);
        }
        self.end(start)
    }

    /// The end records; the 64-bit ones always, as PyTorch writes them.
    fn end(&mut self, start: u64) -> Result<()> {
        let (count, len) = (self.records.len() as u64, self.out.at - start);
        let end64 = self.out.at;
        let mut end = Vec::from(0x0606_4b50u32.to_le_bytes());
        end.extend(44u64.to_le_bytes());
        end.extend([45u16.to_le_bytes(), 45u16.to_le_bytes()].concat());
        end.extend([0; 8]);
        end.extend([count, count, len, start].map(u64::to_le_bytes).concat());
        end.extend(0x0706_4b50u32.to_le_bytes());
        end.extend([0; 4]);
        end.extend(end64.to_le_bytes());
        end.extend(1u32.to_le_bytes());
        let small = (count.min(0xffff) as u16).to_le_bytes();
        end.extend(0x0605_4b50u32.to_le_bytes());
        end.extend([0; 4]);
        end.extend([small, small].concat());
        end.extend((len.min(MAX) as u32).to_le_bytes());
        end.extend((start.min(MAX) as u32).to_le_bytes());
        end.extend([0; 2]);
        put(&mut self.out, &end)
    }
}

fn field(extra: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    extra.extend(id.to_le_bytes());
    extra.extend((bytes.len() as u16).to_le_bytes());
    extra.extend(bytes);
}

/// A writer that knows how much went through it, and the checksum of the current record.
pub(crate) struct Counted<W> {
    out: W,
    at: u64,
    crc: flate2::Crc,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.crc.update(&bytes[..n]);
        self.at += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inflate::read_record;
    use crate::source::Source;
    use crate::zipfile::Archive;
    use std::io::Read;

    fn archive(records: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        for (name, data) in records {
            w.put(name, data).unwrap();
        }
        w.finish().unwrap();
        bytes
    }

    #[test]
    fn others_read_what_is_written() {
        let big = vec![3; 1000];
        let records: [(&str, &[u8]); 4] = [
            ("a/data.pkl", b"x"),
            ("a/data/0", &big),
            ("a/none", b""),
            ("a/é", b"yz"),
        ];
        let bytes = archive(&records);
        let mut zip = zip::ZipArchive::new(io::Cursor::new(&bytes)).unwrap();
        assert_eq!(zip.len(), 4);
        for (name, data) in records {
            let mut file = zip.by_name(name).unwrap();
            assert_eq!(file.data_start().unwrap() % ALIGNMENT, 0);
            let mut got = Vec::new();
            file.read_to_end(&mut got).unwrap();
            assert_eq!(got, data, "{name}");
        }
        let source = Source::from_bytes(bytes);
        let ours = Archive::open(&source).unwrap();
        for (name, data) in records {
            assert_eq!(
                read_record(&source, ours.get(name).unwrap(), 1000).unwrap(),
                data,
                "{name}"
            );
        }
    }

    #[test]
    fn a_record_of_another_size_than_said_is_an_error() {
        let mut w = Writer::new(Vec::new());
        assert!(w.record("a", 3, |out| put(out, b"ab")).is_err());
    }
}
