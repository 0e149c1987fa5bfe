//! Labels that events mention, as small numbers: an event has no room for a text.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// How many labels are remembered; later ones are events without a text.
const MOST: usize = 16_384;
/// The longest that is remembered, in bytes.
const LONGEST: usize = 256;

#[derive(Default)]
struct Labels {
    by_number: Vec<&'static str>,
    by_text: HashMap<&'static str, u32>,
}

static LABELS: Mutex<Option<Labels>> = Mutex::new(None);

fn labels() -> MutexGuard<'static, Option<Labels>> {
    LABELS.lock().unwrap_or_else(|e| e.into_inner())
}

/// The number of a label, 0 for one that cannot be remembered.
pub(crate) fn number(text: &str) -> u32 {
    let mut labels = labels();
    let labels = labels.get_or_insert_default();
    match labels.by_text.get(text) {
        Some(&number) => number,
        None => labels.remember(text).unwrap_or(0),
    }
}

impl Labels {
    fn remember(&mut self, text: &str) -> Option<u32> {
        if self.by_number.len() == MOST || text.len() > LONGEST {
            return None;
        }
        self.by_number.try_reserve(1).ok()?;
        self.by_text.try_reserve(1).ok()?;
        let mut kept = String::new();
        kept.try_reserve_exact(text.len()).ok()?;
        kept.push_str(text);
        let kept = kept.leak();
        self.by_number.push(kept);
        let number = self.by_number.len() as u32;
        self.by_text.insert(kept, number);
        Some(number)
    }
}

/// The label of a number.
pub(crate) fn text(number: u32) -> Option<&'static str> {
    let at = (number as usize).checked_sub(1)?;
    labels().as_ref()?.by_number.get(at).copied()
}
