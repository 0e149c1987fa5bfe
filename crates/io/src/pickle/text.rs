//! The arguments that protocol 0 writes as text.

use super::value::{Node, grow};
use crate::error::{bad, out_of_memory};
use osteon_spec::Result;

/// A decimal integer. Those beyond 128 bits are refused: nothing that holds tensors needs them, and
/// converting them takes quadratic time.
pub(super) fn decimal(text: &[u8]) -> Result<Node> {
    let n: Option<i128> = std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.trim().parse().ok());
    let n = n.ok_or_else(|| bad("a decimal integer that is not one, or has over 128 bits"))?;
    Ok(match i64::try_from(n) {
        Ok(n) => Node::Int(n),
        Err(_) => Node::Long(n.to_le_bytes().into()),
    })
}

pub(super) fn memo_key(line: &[u8]) -> Result<u64> {
    std::str::from_utf8(line)
        .ok()
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| bad("a memo entry that is not a number"))
}

/// Protocol 0's text: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(super) fn raw_unicode_escape(line: &[u8]) -> Result<Box<[u8]>> {
    let mut out = String::new();
    // Latin-1 takes two bytes at most in UTF-8, escapes fewer than their length.
    out.try_reserve(2 * line.len())
        .map_err(|_| out_of_memory(2 * line.len() as u64))?;
    let mut rest = line;
    while let Some((&b, tail)) = rest.split_first() {
        let digits = match (b, tail.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                out.push(b.into());
                rest = tail;
                continue;
            }
        };
        let code = tail.get(1..1 + digits).and_then(hex);
        let code = code.ok_or_else(|| bad("an escape that is cut short"))?;
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &tail[1 + digits..];
    }
    Ok(out.into_bytes().into())
}

fn hex(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None; // `from_str_radix` takes a sign
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Protocol 0's byte string: a Python literal in quotes.
pub(super) fn string_literal(line: &[u8]) -> Result<Box<[u8]>> {
    let quoted = match line {
        [q @ (b'\'' | b'"'), inner @ .., end] if q == end => inner,
        _ => return Err(bad("a string without quotes")),
    };
    let mut out = Vec::new();
    grow(&mut out, quoted.len())?;
    let mut bytes = quoted.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'x') => {
                let digits = [bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)];
                let code = hex(&digits).ok_or_else(|| bad("an escape that is cut short"))?;
                out.push(code as u8);
            }
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(c @ (b'\\' | b'\'' | b'"')) => out.push(c),
            _ => return Err(bad("an escape that Python does not write")),
        }
    }
    Ok(out.into())
}
