//! Names that users give to tensors and storages.

use crate::handle::{Handle, Refs, Shared};
use std::fmt;
use std::ops::Deref;

/// A name; a `str` that many hold. Cloning it allocates nothing, so that a report can be made when memory
/// has run out.
#[derive(Clone)]
pub struct Label(Handle<Name>);

struct Name {
    refs: Refs,
    text: String,
}

impl Shared for Name {
    fn refs(&self) -> &Refs {
        &self.refs
    }

    // No list points to a name.
    fn retire(&self) {}
}

impl Label {
    /// A name, or `None` where there is no memory for it.
    pub fn new(name: &str) -> Option<Label> {
        let mut text = String::new();
        text.try_reserve_exact(name.len()).ok()?;
        text.push_str(name);
        let refs = Refs::one();
        Handle::try_new(|| Name { refs, text }).map(Label)
    }
}

impl Deref for Label {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Label) -> bool {
        **self == **other
    }
}

impl Eq for Label {}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
