//! What a module knows of itself.

use osteon_memory::{Scope, scope};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    /// The path of the module that this thread runs, to name those inside it relative to it.
    static RUNNING: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// A module's place in its model, and whether it trains. A module that holds one and shows it in
/// [`visit`](crate::nn::Module::visit) is named and switched with the model around it; [`nn::module!`](crate::nn::module)
/// does so by itself.
///
/// ```
/// use osteon::nn::{Info, Module, Parts};
/// #[derive(Default)]
/// struct Noise {
///     info: Info,
/// }
/// impl Module for Noise {
///     fn visit(&self, parts: &mut Parts<'_>) {
///         parts.info(&self.info);
///     }
/// }
/// let noise = Noise::default();
/// assert!(noise.info.is_training());
/// noise.eval();
/// assert!(!noise.info.is_training());
/// ```
pub struct Info {
    path: Mutex<Option<Arc<str>>>,
    training: AtomicBool,
}

impl Default for Info {
    /// Without a name, in training.
    fn default() -> Info {
        Info {
            path: Mutex::new(None),
            training: AtomicBool::new(true),
        }
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info")
            .field("path", &self.path())
            .field("training", &self.is_training())
            .finish()
    }
}

impl Info {
    /// Whether the module trains, as opposed to being evaluated: as [`train`](crate::nn::Module::train) said last.
    ///
    /// ```
    /// use osteon::nn::{Dropout, Info, Module};
    /// assert!(Info::default().is_training());
    /// ```
    pub fn is_training(&self) -> bool {
        self.training.load(Ordering::Relaxed)
    }

    pub(crate) fn set_training(&self, training: bool) {
        self.training.store(training, Ordering::Relaxed);
    }

    /// The module's name in the outermost model that it was seen in (`blocks.3.attn`), if it has one.
    ///
    /// ```
    /// use osteon::nn::{Info, Module, Parts};
    /// struct Outer { inner: Info }
    /// # struct Inner<'a>(&'a Info);
    /// # impl Module for Inner<'_> {
    /// #     fn visit(&self, parts: &mut Parts<'_>) { parts.info(self.0) }
    /// # }
    /// impl Module for Outer {
    ///     fn visit(&self, parts: &mut Parts<'_>) {
    ///         parts.add("inner", &Inner(&self.inner));
    ///     }
    /// }
    /// let outer = Outer { inner: Info::default() };
    /// outer.parameters();
    /// assert_eq!(outer.inner.path().as_deref(), Some("inner"));
    /// ```
    pub fn path(&self) -> Option<Arc<str>> {
        self.path
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes a name, unless it has one from a model further out.
    pub(crate) fn set_path(&self, path: &str) {
        let mut own = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.is_empty() && own.as_deref().is_none_or(|own| extends(path, own)) {
            *own = Some(Arc::from(path));
        }
    }

    /// Enters the module's scope until the guard is dropped: what is made meanwhile carries its name in every report of
    /// memory. Costs a look-up, as [`memory::scope`](crate::memory::scope).
    ///
    /// ```
    /// use osteon::nn::Info;
    /// let info = Info::default();
    /// let _running = info.enter(); // no name yet: no scope
    /// ```
    pub fn enter(&self) -> Running {
        let Some(path) = self.path() else {
            return Running(None);
        };
        // A scope's name joins that of the scope around it, which a module around this one has already entered.
        let outer = RUNNING.with_borrow(Clone::clone);
        let relative = outer.as_deref().and_then(|o| inside(&path, o));
        let scope = scope(relative.unwrap_or(&path));
        RUNNING.set(Some(path));
        Running(Some((scope, outer)))
    }
}

/// The rest of a path inside another one.
fn inside<'a>(path: &'a str, outer: &str) -> Option<&'a str> {
    path.strip_prefix(outer)?.strip_prefix('.')
}

/// Whether a name is another one seen from further out.
pub(crate) fn extends(name: &str, other: &str) -> bool {
    name.strip_suffix(other)
        .is_some_and(|front| front.ends_with('.'))
}

/// A module that runs, until this is dropped; see [`Info::enter`].
#[derive(Debug)]
#[must_use = "the module's scope ends when this is dropped"]
pub struct Running(Option<(Scope, Option<Arc<str>>)>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((_, outer)) = self.0.take() {
            RUNNING.set(outer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_grow_outwards_only() {
        let info = Info::default();
        for (seen, has) in [
            ("", None),
            ("attn", Some("attn")),
            ("3.attn", Some("3.attn")),
            ("attn", Some("3.attn")),
            ("mlp", Some("3.attn")),
            ("blocks.3.attn", Some("blocks.3.attn")),
            ("xblocks.3.attn", Some("blocks.3.attn")),
        ] {
            info.set_path(seen);
            assert_eq!(info.path().as_deref(), has, "after {seen:?}");
        }
    }

    #[test]
    fn a_scope_is_the_path_once_however_modules_nest() {
        let path = |info: &Info| {
            let _running = info.enter();
            let t = crate::Tensor::new([1f32]).unwrap();
            let id = t.storage().id();
            let map = crate::memory::map();
            let found = map.storages.iter().find(|s| s.id == id).unwrap();
            found.scope.path().to_string()
        };
        let (outer, inner) = (Info::default(), Info::default());
        outer.set_path("blocks.3");
        inner.set_path("blocks.3.attn");
        assert_eq!(path(&inner), "blocks.3.attn");
        let _in = crate::memory::scope("step");
        let _running = outer.enter();
        assert_eq!(path(&inner), "step.blocks.3.attn");
        let _by_hand = crate::memory::scope("mix");
        assert_eq!(path(&inner), "step.blocks.3.mix.attn");
    }
}
