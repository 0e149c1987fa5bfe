//! How many bytes of a file may be reached by no tensor.

use std::fmt;
use std::str::FromStr;

/// A share of a file's storages, or a number of bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    limit: Limit,
    as_written: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Percent(f64),
    Bytes(f64),
}

const UNITS: [(&str, f64); 9] = [
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];

impl Budget {
    /// Whether so much waste is more than allowed.
    pub fn is_broken(&self, waste: u64, held: u64) -> bool {
        match self.limit {
            Limit::Percent(p) => waste as f64 * 100.0 > p * held as f64,
            Limit::Bytes(b) => waste as f64 > b,
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let wrong = || {
            format!(
                "{text:?} is neither a percentage such as 5% nor a size such as 4096, 64KiB or 1GB"
            )
        };
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let limit = match unit {
            "%" if number <= 100.0 => Limit::Percent(number),
            "%" => return Err(format!("{text:?} is more than 100%")),
            unit => {
                let (_, size) = UNITS
                    .iter()
                    .find(|(name, _)| *name == unit)
                    .ok_or_else(wrong)?;
                Limit::Bytes(number * size)
            }
        };
        Ok(Budget {
            limit,
            as_written: text.to_owned(),
        })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sizes() {
        let broken =
            |text: &str, waste, held| text.parse::<Budget>().unwrap().is_broken(waste, held);
        assert!(!broken("5%", 5, 100) && broken("5%", 6, 100));
        assert!(!broken("0%", 0, 0) && broken("0%", 1, 1 << 60));
        assert!(!broken("12.5%", 1, 8) && broken("12.4%", 1, 8));
        assert!(!broken("10", 10, 10) && broken("10", 11, 20));
        assert!(!broken("1KiB", 1024, 4096) && broken("1 KB", 1001, 4096));
    }

    #[test]
    fn what_is_no_budget() {
        for text in [
            "", "%", "x", "-1", "5 apples", "101%", "1.2.3", "NaN", "inf",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }
}
