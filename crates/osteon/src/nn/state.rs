//! The state of a module by names: parameters and buffers, to be saved and loaded.

use super::Module;
use super::module::{Part, walk};
use crate::{Error, Kind, Result, Tensor, no_grad};
use osteon_autograd::check_writable;
use osteon_memory::Mode;
use std::collections::BTreeMap;
use std::path::Path;

/// Names and tensors: what [`osteon::load`](crate::load) returns and [`osteon::save`](crate::save) takes.
///
/// ```
/// use osteon::nn::{Linear, Module, StateDict};
/// let state: StateDict = Linear::new(3, 2)?.state_dict();
/// assert!(state.contains_key("bias"));
/// # Ok::<(), osteon::Error>(())
/// ```
pub type StateDict = BTreeMap<String, Tensor>;

/// Names without a counterpart; see [`Module::load_matching`].
///
/// ```
/// use osteon::nn::{Linear, Module, StateDict};
/// let none = Linear::new(3, 2)?.load_matching(&StateDict::new())?;
/// assert_eq!((none.missing.len(), none.unexpected.len()), (2, 0));
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Names that the module has and the state lacks.
    pub missing: Vec<String>,
    /// Names that the state has and the module lacks.
    pub unexpected: Vec<String>,
}

/// Every parameter and buffer under every name that it has, in the order of the module's parts.
pub(super) fn entries<M: Module + ?Sized>(module: &M) -> Vec<(String, Tensor)> {
    let mut found = Vec::new();
    walk(module, &mut |name, part| {
        if let Part::Parameter(tensor) | Part::Buffer(tensor) = part {
            found.push((name.to_owned(), tensor.clone()));
        }
    });
    found
}

pub(super) fn load<M: Module + ?Sized>(
    module: &M,
    state: &StateDict,
    strict: bool,
) -> Result<Unmatched> {
    let own = entries(module);
    let given = |name: &str| state.get(name);
    // A tensor of several names needs one of them.
    let is_given = |tensor: &Tensor| own.iter().any(|(n, t)| t.is(tensor) && given(n).is_some());
    let unmatched = Unmatched {
        missing: own
            .iter()
            .filter(|(_, t)| !is_given(t))
            .map(|(n, _)| n.clone())
            .collect(),
        unexpected: state
            .keys()
            .filter(|name| !own.iter().any(|(n, _)| n == *name))
            .cloned()
            .collect(),
    };
    let mut wrong = Vec::new();
    if strict {
        for (what, names) in [
            ("missing", &unmatched.missing),
            ("unexpected", &unmatched.unexpected),
        ] {
            if !names.is_empty() {
                wrong.push(format!("{what}: {}", names.join(", ")));
            }
        }
    }
    let mut copies: Vec<(&str, &Tensor, &Tensor)> = Vec::new();
    for (name, tensor) in &own {
        let Some(source) = given(name) else { continue };
        if source.shape() != tensor.shape() {
            let shapes = (tensor.shape(), source.shape());
            wrong.push(format!(
                "{name} has shape {:?} here and {:?} there",
                shapes.0, shapes.1
            ));
        } else if source.dtype().is_complex() && !tensor.dtype().is_complex() {
            wrong.push(format!(
                "{name} is {} here and {} there",
                tensor.dtype(),
                source.dtype()
            ));
        } else if let Some((first, _, other)) = copies.iter().find(|(_, t, _)| t.is(tensor)) {
            if !other.is(source) && !other.equal(source)? {
                wrong.push(format!(
                    "{first} and {name} are one tensor here and two different ones there"
                ));
            }
        } else if let Err(e) = check_writable(tensor, "copy_") {
            wrong.push(format!("{name} cannot be written: {e}"));
        } else if let Err(e) = source.storage().check_access(Mode::Read) {
            wrong.push(format!("{name} cannot be read: {e}"));
        } else {
            copies.push((name, tensor, source));
        }
    }
    let mut named = BTreeMap::new();
    for (name, tensor) in &own {
        if !named.entry(name).or_insert(tensor).is(tensor) {
            wrong.push(format!("{name} is the name of two tensors here"));
        }
    }
    if !wrong.is_empty() {
        let message = format!(
            "the state does not fit this {}: {}; load_matching() takes what does",
            module.kind(),
            wrong.join("; ")
        );
        return Err(Error::new(Kind::Value, message).op("load_state_dict"));
    }
    no_grad(|| {
        copies
            .iter()
            .try_for_each(|(name, to, from)| to.copy_(from).map_err(|e| e.context(name)))
    })?;
    Ok(unmatched)
}

pub(super) fn save<M: Module + ?Sized>(module: &M, path: &Path) -> Result<()> {
    let mut entries = entries(module);
    let says_sharing = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("pt") || e.eq_ignore_ascii_case("pth"));
    if !says_sharing {
        let mut kept: Vec<(String, Tensor)> = Vec::new();
        for (name, tensor) in entries {
            if !kept.iter().any(|(_, t)| t.is(&tensor)) {
                kept.push((name, tensor));
            }
        }
        entries = kept;
    }
    crate::save(path, entries.iter().map(|(name, tensor)| (name, tensor)))
}
