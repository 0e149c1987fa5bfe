//! Just enough of Rust's lexical structure to tell code from comments, strings and tests.

/// The source with comments, and what strings hold, replaced by spaces: the same lines at the same
/// columns, and only code in them.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut i = 0;
    while i < bytes.len() {
        let end = match bytes[i] {
            b'/' if bytes[i..].starts_with(b"//") => find(bytes, i, b"\n").unwrap_or(bytes.len()),
            b'/' if bytes[i..].starts_with(b"/*") => block_comment_end(bytes, i),
            b'"' => string_end(bytes, i),
            b'r' if !in_word(bytes, i) => raw_string_end(bytes, i).unwrap_or(i),
            b'b' | b'c' if !in_word(bytes, i) && bytes.get(i + 1) == Some(&b'r') => {
                raw_string_end(bytes, i + 1).unwrap_or(i)
            }
            b'\'' => char_end(bytes, i).unwrap_or(i),
            _ => i,
        };
        if end == i {
            i += 1;
            continue;
        }
        blank(&mut out[i..end]);
        i = end;
    }
    // Only whole characters were replaced, each byte by a space.
    String::from_utf8_lossy(&out).into_owned()
}

/// The same text with every item under a `cfg` that asks for `test` replaced by spaces.
///
/// Takes what [`code_only`] made.
pub fn without_tests(code: &str) -> String {
    let bytes = code.as_bytes();
    let mut out = bytes.to_vec();
    let mut from = 0;
    while let Some(start) = find(bytes, from, b"#[cfg(") {
        let Some(close) = matching(bytes, start + 1) else {
            break;
        };
        from = close;
        let condition = &code[start..close];
        if !words(condition).any(|(_, w)| w == "test") || condition.contains("not(test)") {
            continue;
        }
        let end = item_end(bytes, close);
        blank(&mut out[start..end]);
        from = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Each identifier or keyword with its offset.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + code[rest..].find(is_word)?;
        let end = code[start..]
            .find(|c| !is_word(c))
            .map_or(code.len(), |n| start + n);
        rest = end;
        Some((start, &code[start..end]))
    })
}

/// The line, from one, of an offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The text between the braces that open after `from`, without them.
pub fn block_after(code: &str, from: usize) -> Option<&str> {
    let open = from + code[from..].find('{')?;
    let close = matching(code.as_bytes(), open)?;
    Some(&code[open + 1..close - 1])
}

/// Just past the bracket that closes the one at `open`; brackets of all kinds nest.
fn matching(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, b) in bytes.iter().enumerate().skip(open) {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Just past the item that starts at `from`: its braces, or its semicolon.
fn item_end(bytes: &[u8], from: usize) -> usize {
    let mut i = from;
    while i < bytes.len() {
        match bytes[i] {
            b';' => return i + 1,
            b'{' => return matching(bytes, i).unwrap_or(bytes.len()),
            b'(' | b'[' => i = matching(bytes, i).unwrap_or(bytes.len()),
            _ => i += 1,
        }
    }
    bytes.len()
}

fn blank(bytes: &mut [u8]) {
    for b in bytes.iter_mut().filter(|b| **b != b'\n') {
        *b = b' ';
    }
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes
        .get(from..)?
        .windows(what.len())
        .position(|w| w == what)
        .map(|n| from + n)
}

fn in_word(bytes: &[u8], i: usize) -> bool {
    i > 0 && (bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'_')
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut i = start;
    while i < bytes.len() {
        if bytes[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if bytes[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// `r` at `start`, then any number of `#`, a quote, and the same in reverse.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..]
        .iter()
        .take_while(|b| **b == b'#')
        .count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    Some(find(bytes, open + 1, &close).map_or(bytes.len(), |n| n + close.len()))
}

/// A character literal, as opposed to a lifetime.
fn char_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        return find(bytes, start + 3, b"'").map(|n| n + 1);
    }
    let text = std::str::from_utf8(&bytes[start + 1..]).ok()?;
    let width = text.chars().next()?.len_utf8();
    (bytes.get(start + 1 + width) == Some(&b'\'')).then_some(start + width + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        let source = "a /* x /* y */ z */ b // c\nd \"e\\\"f\" g r#\"h\"i\"# j 'k' '\\'' l<'m> b\"n\" br\"o\" p";
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        let kept: Vec<&str> = words(&code).map(|(_, w)| w).collect();
        assert_eq!(kept, ["a", "b", "d", "g", "j", "l", "m", "b", "p"]);
        assert_eq!(line_of(&code, code.find('p').unwrap()), 2);
    }

    #[test]
    fn multibyte_characters_survive_and_are_blanked_where_they_are_text() {
        assert_eq!(code_only("α 'β' \"γ\""), "α          ");
    }

    #[test]
    fn tests_are_cut_out_with_their_braces() {
        let code = "one\n#[cfg(test)]\nmod tests { fn f() { two } }\nthree\n#[cfg(all(test, not(loom)))]\nuse four;\n#[cfg(not(test))]\nfive";
        let kept: Vec<String> = words(&without_tests(code))
            .map(|(_, w)| w.to_owned())
            .filter(|w| w.len() > 2)
            .collect();
        assert_eq!(kept, ["one", "three", "cfg", "not", "test", "five"]);
    }

    #[test]
    fn unterminated_input_ends() {
        for source in ["/*", "\"", "r#\"", "'\\", "#[cfg(test", "b", "'", "\"\\"] {
            assert_eq!(
                without_tests(&code_only(source)).len(),
                source.len(),
                "{source}"
            );
        }
    }
}
