//! Texts that are kept for as long as the process lives, as small numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// Number 0 is the empty text.
#[derive(Default)]
pub(crate) struct Names {
    by_number: Vec<Arc<str>>,
    by_text: HashMap<Arc<str>, u32>,
}

impl Names {
    /// The number of a text, `None` for a new one beyond `most`.
    pub(crate) fn number(&mut self, text: &str, most: usize) -> Option<u32> {
        if text.is_empty() {
            return Some(0);
        }
        if let Some(&number) = self.by_text.get(text) {
            return Some(number);
        }
        if self.by_number.len() >= most {
            return None;
        }
        let text: Arc<str> = Arc::from(text);
        self.by_number.push(text.clone());
        let number = self.by_number.len() as u32;
        self.by_text.insert(text, number);
        Some(number)
    }

    /// The text of a number.
    pub(crate) fn text(&self, number: u32) -> Arc<str> {
        let at = (number as usize).checked_sub(1);
        at.and_then(|i| self.by_number.get(i).cloned())
            .unwrap_or_default()
    }
}
