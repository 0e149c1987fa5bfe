//! A protocol buffer without its definition: fields by number.

use std::io::Read;

/// A field's value.
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

pub struct Message(Vec<(u64, Field)>);

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        n |= u64::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    n
}

pub fn read(bytes: &[u8]) -> Message {
    let (mut fields, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let tag = varint(bytes, &mut at);
        let field = match tag & 7 {
            0 => Field::Number(varint(bytes, &mut at)),
            2 => {
                let len = varint(bytes, &mut at) as usize;
                at += len;
                Field::Bytes(bytes[at - len..at].to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, field));
    }
    Message(fields)
}

impl Message {
    /// A number; 0 where it is missing.
    pub fn number(&self, field: u64) -> u64 {
        self.0
            .iter()
            .find_map(|(f, value)| match value {
                Field::Number(n) if *f == field => Some(*n),
                _ => None,
            })
            .unwrap_or(0)
    }

    fn bytes(&self, field: u64) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(move |(f, value)| match value {
            Field::Bytes(bytes) if *f == field => Some(bytes.as_slice()),
            _ => None,
        })
    }

    pub fn messages(&self, field: u64) -> Vec<Message> {
        self.bytes(field).map(read).collect()
    }

    pub fn texts(&self, field: u64) -> Vec<String> {
        self.bytes(field)
            .map(|b| String::from_utf8(b.to_vec()).unwrap())
            .collect()
    }

    /// A packed list of numbers.
    pub fn numbers(&self, field: u64) -> Vec<u64> {
        let mut list = Vec::new();
        for bytes in self.bytes(field) {
            let mut at = 0;
            while at < bytes.len() {
                list.push(varint(bytes, &mut at));
            }
        }
        list
    }
}
