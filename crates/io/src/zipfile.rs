//! The directory of a zip archive, distrusted: every record is checked against its own header, and no
//! byte of data is read.

use crate::error::bad;
use crate::inflate::Inflated;
use crate::source::Source;
use osteon_spec::Result;
use std::collections::HashMap;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const END_LEN: u64 = 22;
const LOCATOR64_LEN: u64 = 20;
/// Flag bit 0: encrypted. Bit 3: sizes and checksum follow the data. Bit 5: patched data.
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_STREAMED: u16 = 1 << 3;
const FLAG_PATCHED: u16 = 1 << 5;
/// DEFLATE cannot expand a byte into more than this.
const MAX_RATIO: u64 = 1032;

/// A record, whose header is what the directory says.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub name: String,
    pub deflated: bool,
    pub crc32: u32,
    /// Bytes in the file.
    pub length: u64,
    /// Bytes when inflated; `length` where stored.
    pub size: u64,
    /// Where the record's header begins.
    header: u64,
    /// Where its data begins.
    pub offset: u64,
}

impl Record {
    /// The bytes of a deflated record.
    pub fn inflated<'a>(&self, source: &'a Source) -> Inflated<'a> {
        Inflated::new(source, self.offset, self.length, self.size, self.crc32)
    }
}

/// The records of an archive in the order of its directory. Names are unique and no two records share
/// a byte.
#[derive(Debug)]
pub(crate) struct Archive {
    pub records: Vec<Record>,
    by_name: HashMap<String, usize>,
}

impl Archive {
    pub fn get(&self, name: &str) -> Option<&Record> {
        self.by_name.get(name).map(|&i| &self.records[i])
    }

    pub fn open(source: &Source) -> Result<Archive> {
        let end = find_end(source)?;
        let directory = source.read_vec(end.offset, end.len)?;
        let mut fields = Fields {
            bytes: &directory,
            at: 0,
        };
        let mut records = Vec::new();
        let mut by_name = HashMap::new();
        while fields.at < directory.len() {
            let at = end.offset + fields.at as u64;
            let record = central_record(&mut fields)
                .and_then(|r| local_record(source, r, end.offset))
                .map_err(|e| e.context(format_args!("zip directory at byte {at}")))?;
            if by_name.insert(record.name.clone(), records.len()).is_some() {
                return Err(bad(format!("two zip records are named {:?}", record.name)));
            }
            records.push(record);
        }
        if records.len() as u64 != end.count {
            return Err(bad(format!(
                "the zip directory has {} records, but its end announces {}",
                records.len(),
                end.count
            )));
        }
        no_overlap(&records)?;
        Ok(Archive { records, by_name })
    }
}

/// Where the directory is.
struct End {
    offset: u64,
    len: u64,
    count: u64,
}

fn find_end(source: &Source) -> Result<End> {
    // The end record is followed by nothing but its comment of at most 65,535 bytes.
    let tail_at = source.len().saturating_sub(END_LEN + 0xffff);
    let tail = source.read_vec(tail_at, source.len() - tail_at)?;
    let last = tail
        .windows(END_LEN as usize)
        .rposition(|w| w.starts_with(&END.to_le_bytes()))
        .ok_or_else(|| bad("is a zip archive without an end (cut short?)"))?;
    let at = tail_at + last as u64;
    let mut f = Fields {
        bytes: &tail[last..],
        at: 4,
    };
    let (disk, first_disk) = (f.u16()?, f.u16()?);
    let (on_disk, count) = (f.u16()?, f.u16()?);
    let (len, offset, comment) = (f.u32()?, f.u32()?, f.u16()?);
    let extra = (tail.len() - last) as u64 - END_LEN;
    if extra != u64::from(comment) {
        return Err(bad(format!(
            "the zip archive's end at byte {at} is followed by {extra} bytes, of which {comment} are its comment"
        )));
    }
    let small = End {
        offset: offset.into(),
        len: len.into(),
        count: count.into(),
    };
    let (end, directory_end) = match find_end64(source, at)? {
        Some((end, end64_at)) => {
            // Where the old fields are not the mark for "see there", both must say the same.
            let differ = |old: u64, mark: u64, new: u64| old != mark && old != new;
            if differ(small.offset, 0xffff_ffff, end.offset)
                || differ(small.len, 0xffff_ffff, end.len)
                || differ(small.count, 0xffff, end.count)
            {
                return Err(bad("the zip archive's two end records differ"));
            }
            (end, end64_at)
        }
        None if disk != 0 || first_disk != 0 || on_disk != count => {
            return Err(bad("is a part of a zip archive of several files"));
        }
        None => (small, at),
    };
    if end.offset.checked_add(end.len) != Some(directory_end) {
        return Err(bad(format!(
            "the zip directory of {} bytes at byte {} does not end at its end record, byte {directory_end}",
            end.len, end.offset
        )));
    }
    Ok(end)
}

/// The 64-bit end record and its position, where the archive has one.
fn find_end64(source: &Source, end_at: u64) -> Result<Option<(End, u64)>> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR64_LEN) else {
        return Ok(None);
    };
    let locator = source.read_vec(locator_at, LOCATOR64_LEN)?;
    let mut f = Fields {
        bytes: &locator,
        at: 0,
    };
    if f.u32()? != LOCATOR64 {
        return Ok(None);
    }
    let (_disk, at) = (f.u32()?, f.u64()?);
    let whole = locator_at
        .checked_sub(at)
        .filter(|&n| (56..=0x1_0000).contains(&n));
    let Some(len) = whole else {
        return Err(bad(format!(
            "the zip64 locator at byte {locator_at} points to byte {at}"
        )));
    };
    let bytes = source.read_vec(at, len)?;
    let mut f = Fields {
        bytes: &bytes,
        at: 0,
    };
    if f.u32()? != END64 || f.u64()? != len - 12 {
        return Err(bad(format!("there is no zip64 end record at byte {at}")));
    }
    f.at = 24; // past two versions and two disk numbers
    let (on_disk, count) = (f.u64()?, f.u64()?);
    let (len, offset) = (f.u64()?, f.u64()?);
    if on_disk != count {
        return Err(bad("is a part of a zip archive of several files"));
    }
    Ok(Some((End { offset, len, count }, at)))
}

/// A record as the directory describes it; `offset` is not known yet.
struct Central {
    record: Record,
    flags: u16,
    method: u16,
    raw_name: Vec<u8>,
}

fn central_record(f: &mut Fields<'_>) -> Result<Central> {
    if f.u32()? != CENTRAL {
        return Err(bad("is no directory entry"));
    }
    f.take(4)?; // versions
    let (flags, method) = (f.u16()?, f.u16()?);
    f.take(4)?; // time
    let crc32 = f.u32()?;
    let (length, size) = (f.u32()?, f.u32()?);
    let (name_len, extra_len, comment_len) = (f.u16()?, f.u16()?, f.u16()?);
    let disk = f.u16()?;
    f.take(6)?; // attributes
    let header = f.u32()?;
    let raw_name = f.take(name_len.into())?.to_vec();
    let extra = f.take(extra_len.into())?;
    f.take(comment_len.into())?;

    let mut wide = Zip64::find(extra)?;
    let size = wide.or(size)?;
    let length = wide.or(length)?;
    let header = wide.or(header)?;
    let name = match std::str::from_utf8(&raw_name) {
        Ok(n) if is_plain(n) => n.to_owned(),
        _ => {
            let name = String::from_utf8_lossy(&raw_name);
            return Err(bad(format!("the record name {name:?} is not a plain path")));
        }
    };
    let fail = |what: String| Err(bad(format!("record {name:?} {what}")));
    if flags & (FLAG_ENCRYPTED | FLAG_PATCHED) != 0 {
        return fail("is encrypted or patched".into());
    }
    if disk != 0 && disk != 0xffff {
        return fail("is in another file".into());
    }
    let deflated = match method {
        0 => false,
        8 => true,
        m => {
            return fail(format!(
                "is compressed by method {m}; only 0 and 8 are read"
            ));
        }
    };
    if !deflated && length != size {
        return fail(format!("is stored, yet has {length} bytes for {size}"));
    }
    if deflated && size > length.saturating_mul(MAX_RATIO) {
        return fail(format!(
            "claims {size} bytes, more than {length} compressed ones can hold"
        ));
    }
    let record = Record {
        name,
        deflated,
        crc32,
        length,
        size,
        header,
        offset: 0,
    };
    Ok(Central {
        record,
        flags,
        method,
        raw_name,
    })
}

/// Reads the record's own header and compares it.
fn local_record(source: &Source, central: Central, directory: u64) -> Result<Record> {
    let Central {
        mut record,
        flags,
        method,
        raw_name,
    } = central;
    let at = record.header;
    let differs = |what: &str| {
        bad(format!(
            "record {:?} has another {what} in its header at byte {at}",
            record.name
        ))
    };
    let head = source.read_vec(at, 30)?;
    let mut f = Fields {
        bytes: &head,
        at: 0,
    };
    if f.u32()? != LOCAL {
        return Err(bad(format!(
            "record {:?} has no header at byte {at}",
            record.name
        )));
    }
    f.take(2)?; // version
    let (local_flags, local_method) = (f.u16()?, f.u16()?);
    f.take(4)?; // time
    let (crc32, length, size) = (f.u32()?, f.u32()?, f.u32()?);
    let (name_len, extra_len) = (f.u16()?, f.u16()?);
    let tail = source.read_vec(at + 30, u64::from(name_len) + u64::from(extra_len))?;
    let (name, extra) = tail.split_at(name_len.into());
    if name != raw_name {
        return Err(differs("name"));
    }
    if local_method != method {
        return Err(differs("method"));
    }
    if local_flags & (FLAG_ENCRYPTED | FLAG_STREAMED) != flags & (FLAG_ENCRYPTED | FLAG_STREAMED) {
        return Err(differs("flags"));
    }
    let mut wide = Zip64::find(extra)?;
    // Unlike the directory's, this extra field always holds both sizes, size first.
    let (size, length) = (wide.or(size)?, wide.or(length)?);
    let streamed = flags & FLAG_STREAMED != 0;
    let unknown = streamed && size == 0 && length == 0;
    if !unknown && (size, length) != (record.size, record.length) {
        return Err(differs("size"));
    }
    if crc32 != record.crc32 && !(streamed && crc32 == 0) {
        return Err(differs("checksum"));
    }
    record.offset = at + 30 + tail.len() as u64;
    if record
        .offset
        .checked_add(record.length)
        .is_none_or(|end| end > directory)
    {
        return Err(bad(format!(
            "record {:?} of {} bytes at byte {} runs into the zip directory at byte {directory}",
            record.name, record.length, record.offset
        )));
    }
    Ok(record)
}

/// No two records share a byte, and the first begins the file.
fn no_overlap(records: &[Record]) -> Result<()> {
    let mut order: Vec<&Record> = records.iter().collect();
    order.sort_by_key(|r| r.header);
    if let Some(first) = order.first().filter(|r| r.header != 0) {
        return Err(bad(format!(
            "{} bytes precede the first zip record",
            first.header
        )));
    }
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].length > pair[1].header {
            return Err(bad(format!(
                "zip records {:?} and {:?} overlap",
                pair[0].name, pair[1].name
            )));
        }
    }
    Ok(())
}

/// A relative path without `..`, as records have.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\\', '\0'])
        && name.split('/').all(|part| part != "..")
}

/// The extra field of the 64-bit sizes, taken one by one for every field that points there.
struct Zip64<'a> {
    fields: Fields<'a>,
}

impl<'a> Zip64<'a> {
    fn find(extra: &'a [u8]) -> Result<Zip64<'a>> {
        let mut f = Fields {
            bytes: extra,
            at: 0,
        };
        let mut found = Zip64 {
            fields: Fields { bytes: &[], at: 0 },
        };
        // Fewer than four bytes at the end are padding that some writers leave.
        while extra.len() - f.at >= 4 {
            let (id, len) = (f.u16()?, f.u16()?);
            let bytes = f.take(len.into())?;
            if id == 1 {
                found.fields.bytes = bytes;
            }
        }
        Ok(found)
    }

    fn or(&mut self, small: u32) -> Result<u64> {
        if small == u32::MAX && !self.fields.bytes.is_empty() {
            self.fields.u64()
        } else {
            Ok(small.into())
        }
    }
}

/// Little-endian fields, one after another.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let bytes = self.bytes;
        let got = self
            .at
            .checked_add(n)
            .and_then(|end| bytes.get(self.at..end));
        let got = got.ok_or_else(|| bad("a zip field is cut short"))?;
        self.at += n;
        Ok(got)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
