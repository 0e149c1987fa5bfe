//! A record of the spool: what happened, as a few bytes.
//!
//! Numbers are in groups of seven bits, lowest first, the eighth bit set on all but the last. A record is its kind, the
//! nanoseconds since the record before, and its fields. Texts are numbers of the spool's table, but for labels, which may be
//! of any number and stand in the record.

use std::io::{self, Read};

/// Declares the records: for each its fields, in the order of their bytes.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) enum Record {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $kind,)* },)*
        }

        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum Tag { $($name,)* }

        impl Record {
            /// Appends the record to the bytes.
            pub(super) fn write(&self, after: u64, to: &mut Vec<u8>) {
                match self {
                    $(Record::$name { $($field,)* } => {
                        to.push(Tag::$name as u8);
                        after.put(to);
                        $($field.put(to);)*
                    })*
                }
            }

            /// The next record, and the nanoseconds since the one before.
            pub(super) fn read(from: &mut impl Read) -> io::Result<(u64, Record)> {
                let tag = byte(from)?;
                let after = u64::get(from)?;
                $(if tag == Tag::$name as u8 {
                    return Ok((after, Record::$name { $($field: <$kind>::get(from)?,)* }));
                })*
                Err(broken())
            }
        }
    };
}

records! {
    /// The recording began, at a time of the spool, with the figures of each device.
    Begin { time: u64, figures: [Totals; 2], }
    /// The recording ended.
    End { figures: [Totals; 2], }
    /// A storage got its bytes, or had them when a recording began.
    Alloc {
        before: bool, thread: u32, device: u32, id: u64, bytes: u64, size: u64, address: u64, op: u32,
        site: u32, scope: u32, version: u64,
    }
    /// It gave them back.
    Free { id: u64, version: u64, }
    /// A tensor was registered under a key that no other live one has, or was when a recording began.
    View {
        before: bool, key: u64, storage: u64, op: u32, site: u32, scope: u32, view: bool, dtype: u32,
        shape: Box<[u64]>, stride: Box<[u64]>, offset: u64,
    }
    /// It went.
    ViewEnd { key: u64, }
    /// A storage got a label.
    LabelStorage { before: bool, thread: u32, id: u64, text: Box<[u8]>, }
    /// A tensor got a label.
    LabelView { before: bool, thread: u32, key: u64, storage: u64, text: Box<[u8]>, }
    /// Memory came from the system, or a segment got another shape.
    Map { before: bool, device: u32, address: u64, size: u64, large: bool, }
    /// It went, or got another shape.
    Unmap { device: u32, address: u64, }
    /// Elements were copied.
    Copy {
        thread: u32, duration: u64, bytes: u64, reason: u32, op: u32, site: u32, scope: u32, from: u64,
        to: u64,
    }
    /// A storage was written in place.
    Write { thread: u32, storage: u64, op: u32, site: u32, scope: u32, }
    /// A moment worth a line; the value is one more, 0 for none.
    Mark { thread: u32, kind: u32, text: u32, value: u64, }
}

/// What an allocator holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) allocated: u64,
    pub(super) requested: u64,
    pub(super) reserved: u64,
}

/// The most sizes, strides or bytes of a label: what is more is a broken file.
const LONGEST: u64 = 1 << 24;

trait Field: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn get(from: &mut impl Read) -> io::Result<Self>;
}

impl Field for u64 {
    #[inline]
    fn put(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest > 127 {
            to.push(rest as u8 | 128);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    fn get(from: &mut impl Read) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = byte(from)?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(broken())
    }
}

impl Field for u32 {
    #[inline]
    fn put(&self, to: &mut Vec<u8>) {
        u64::from(*self).put(to);
    }

    fn get(from: &mut impl Read) -> io::Result<u32> {
        u64::get(from)?.try_into().map_err(|_| broken())
    }
}

impl Field for bool {
    #[inline]
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn get(from: &mut impl Read) -> io::Result<bool> {
        Ok(byte(from)? != 0)
    }
}

impl Field for Box<[u64]> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|n| n.put(to));
    }

    fn get(from: &mut impl Read) -> io::Result<Box<[u64]>> {
        let mut list = reserved(u64::get(from)?)?;
        for _ in 0..list.capacity() {
            list.push(u64::get(from)?);
        }
        Ok(list.into())
    }
}

impl Field for Box<[u8]> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        to.extend_from_slice(self);
    }

    fn get(from: &mut impl Read) -> io::Result<Box<[u8]>> {
        let n = u64::get(from)?;
        let mut list = reserved(n)?;
        list.resize(n as usize, 0);
        from.read_exact(&mut list)?;
        Ok(list.into())
    }
}

impl Field for [Totals; 2] {
    fn put(&self, to: &mut Vec<u8>) {
        for t in self {
            [t.allocated, t.requested, t.reserved]
                .iter()
                .for_each(|n| n.put(to));
        }
    }

    fn get(from: &mut impl Read) -> io::Result<[Totals; 2]> {
        let mut both = [Totals::default(); 2];
        for t in &mut both {
            *t = Totals {
                allocated: u64::get(from)?,
                requested: u64::get(from)?,
                reserved: u64::get(from)?,
            };
        }
        Ok(both)
    }
}

fn reserved<T>(n: u64) -> io::Result<Vec<T>> {
    let mut list = Vec::new();
    if n > LONGEST || list.try_reserve_exact(n as usize).is_err() {
        return Err(broken());
    }
    Ok(list)
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the recording's file is damaged",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        let mut bytes = Vec::new();
        Record::Free {
            id: 300,
            version: 2,
        }
        .write(128, &mut bytes);
        // The fourth kind; 128 = 0 + 1·2⁷; 300 = 44 + 2·2⁷.
        assert_eq!(bytes, [3, 128, 1, 172, 2, 2]);
        let read = Record::read(&mut &bytes[..]).unwrap();
        assert_eq!(
            read,
            (
                128,
                Record::Free {
                    id: 300,
                    version: 2
                }
            )
        );
        assert!(Record::read(&mut &bytes[..4]).is_err());
        assert!(Record::read(&mut &[99u8, 0][..]).is_err());
        // A list that says to be longer than any.
        assert!(Record::read(&mut &[6u8, 0, 1, 1, 255, 255, 255, 255, 255, 1][..]).is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        let view = Record::View {
            before: true,
            key: u64::MAX,
            storage: 1,
            op: 2,
            site: 3,
            scope: 0,
            view: false,
            dtype: 4,
            shape: [0, 1 << 40].into(),
            stride: [1, 127].into(),
            offset: 128,
        };
        let label = Record::LabelView {
            before: false,
            thread: u32::MAX,
            key: 9,
            storage: 0,
            text: "größe".as_bytes().into(),
        };
        let begin = Record::Begin {
            time: 7,
            figures: [
                Totals {
                    allocated: 1,
                    requested: 2,
                    reserved: 3,
                },
                Totals::default(),
            ],
        };
        let mut bytes = Vec::new();
        for (i, record) in [&view, &label, &begin].into_iter().enumerate() {
            record.write(i as u64 * 1000, &mut bytes);
        }
        let mut rest = &bytes[..];
        for (i, record) in [view, label, begin].into_iter().enumerate() {
            assert_eq!(Record::read(&mut rest).unwrap(), (i as u64 * 1000, record));
        }
        assert!(rest.is_empty());
    }
}
