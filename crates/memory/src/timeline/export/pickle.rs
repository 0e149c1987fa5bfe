//! Values as a pickle that PyTorch's viewers read: protocol 2, plain containers, numbers and texts.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

/// What a viewer takes in one go: its script passes a batch as arguments of one call.
const BATCH: usize = 1000;

/// Writes values one after the other, as they nest.
pub(super) struct Pickler<'a, W, K> {
    out: W,
    /// Texts and values that were written before, by the number under which the reader remembers them.
    texts: HashMap<&'a str, u32>,
    values: HashMap<K, u32>,
    remembered: u32,
}

impl<'a, W: Write, K: Eq + Hash> Pickler<'a, W, K> {
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"\x80\x02")?;
        Ok(Pickler {
            out,
            texts: HashMap::new(),
            values: HashMap::new(),
            remembered: 0,
        })
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b".")
    }

    fn remember(&mut self) -> io::Result<u32> {
        let number = self.remembered;
        self.remembered += 1;
        self.out.write_all(b"r")?;
        self.out.write_all(&number.to_le_bytes())?;
        Ok(number)
    }

    fn recall(&mut self, number: u32) -> io::Result<()> {
        self.out.write_all(b"j")?;
        self.out.write_all(&number.to_le_bytes())
    }

    /// A text that may come again.
    pub(super) fn text(&mut self, text: &'a str) -> io::Result<()> {
        if let Some(&number) = self.texts.get(text) {
            return self.recall(number);
        }
        let len = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.out.write_all(b"X")?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out.write_all(text.as_bytes())?;
        let number = self.remember()?;
        self.texts.insert(text, number);
        Ok(())
    }

    pub(super) fn number(&mut self, n: u64) -> io::Result<()> {
        if let Ok(n) = u8::try_from(n) {
            return self.out.write_all(&[b'K', n]);
        }
        if let Ok(n) = i32::try_from(n) {
            self.out.write_all(b"J")?;
            return self.out.write_all(&n.to_le_bytes());
        }
        // With its sign: a leading zero where the highest bit is set.
        let bytes = u128::from(n).to_le_bytes();
        let len = 8 - n.leading_zeros() as usize / 8;
        let len = len + usize::from(bytes[len - 1] > 127);
        self.out.write_all(&[0x8a, len as u8])?;
        self.out.write_all(&bytes[..len])
    }

    pub(super) fn bool(&mut self, b: bool) -> io::Result<()> {
        self.out.write_all(if b { b"\x88" } else { b"\x89" })
    }

    /// Two numbers as a tuple.
    pub(super) fn pair(&mut self, a: u64, b: u64) -> io::Result<()> {
        self.number(a)?;
        self.number(b)?;
        self.out.write_all(b"\x86")
    }

    /// A list, its items written by `item`.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(b"]")?;
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            self.out.write_all(b"(")?;
            for it in items.by_ref().take(BATCH) {
                item(self, it)?;
            }
            self.out.write_all(b"e")?;
        }
        Ok(())
    }

    /// A dict, its entries written by `entries` as a text and a value each.
    pub(super) fn dict(
        &mut self,
        entries: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(b"}(")?;
        entries(self)?;
        self.out.write_all(b"u")
    }

    /// A value that may come again, known by a key.
    pub(super) fn once(
        &mut self,
        key: K,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(&number) = self.values.get(&key) {
            return self.recall(number);
        }
        write(self)?;
        let number = self.remember()?;
        self.values.insert(key, number);
        Ok(())
    }

    pub(super) fn entry(&mut self, key: &'a str, n: u64) -> io::Result<()> {
        self.text(key)?;
        self.number(n)
    }

    pub(super) fn text_entry(&mut self, key: &'a str, text: &'a str) -> io::Result<()> {
        self.text(key)?;
        self.text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against what Python's pickle module reads: numbers at the borders of their forms.
    #[test]
    fn numbers_by_hand() {
        let bytes = |n: u64| {
            let mut out = Vec::new();
            Pickler::<_, u8>::new(&mut out).unwrap().number(n).unwrap();
            out.split_off(2)
        };
        assert_eq!(bytes(255), [b'K', 255]);
        assert_eq!(bytes(256), [b'J', 0, 1, 0, 0]);
        assert_eq!(bytes(1 << 31), [0x8a, 5, 0, 0, 0, 128, 0]);
        assert_eq!(bytes((1 << 39) - 1), [0x8a, 5, 255, 255, 255, 255, 127]);
        assert_eq!(bytes(u64::MAX)[..3], [0x8a, 9, 255]);
    }

    #[test]
    fn what_comes_again_is_recalled() {
        let mut out = Vec::new();
        let mut p = Pickler::new(&mut out).unwrap();
        p.list([1, 1], |p, n| p.once(n, |p| p.text("a"))).unwrap();
        p.finish().unwrap();
        assert_eq!(
            out,
            b"\x80\x02](X\x01\0\0\0ar\0\0\0\0r\x01\0\0\0j\x01\0\0\0e."
        );
    }
}
