//! Which dtypes an operation accepts, found out by calling it.

use std::collections::BTreeMap;

use osteon::{DType, Device, Tensor};

use super::args::{Arg, Call};
use super::call::Stop;
use super::ops;

/// The dtypes of equal operands that an operation accepts, a letter for each family: all of one are accepted, or
/// the few are named. None where the operation is not among those that are called by name.
pub fn dtypes_of(name: &str) -> Option<String> {
    let activation = format!("nn.functional.{name}");
    let (name, operands) = [name, &activation]
        .into_iter()
        .flat_map(|name| (1..=3).map(move |n| (name, n)))
        .find(|&(name, n)| {
            // One of the two is accepted by every operation.
            [DType::F64, DType::I64]
                .iter()
                .any(|&d| accepts(name, n, d) == Some(true))
        })?;
    let families: [(&str, &[DType]); 5] = [
        ("b", &[DType::Bool]),
        ("u", &[DType::U8, DType::U16, DType::U32, DType::U64]),
        ("i", &[DType::I8, DType::I16, DType::I32, DType::I64]),
        ("f", &[DType::F16, DType::BF16, DType::F32, DType::F64]),
        ("c", &[DType::C64, DType::C128]),
    ];
    let mut said = Vec::new();
    for (letter, family) in families {
        let accepted: Vec<&str> = family
            .iter()
            .filter(|&&d| accepts(name, operands, d) == Some(true))
            .map(|d| d.name())
            .collect();
        if accepted.len() == family.len() {
            said.push(letter);
        } else {
            said.extend(accepted);
        }
    }
    Some(said.join(" "))
}

/// Whether a call with so many operands of a dtype succeeds; none where it cannot be made.
fn accepts(name: &str, operands: usize, dtype: DType) -> Option<bool> {
    let tensors = (0..operands)
        .map(|_| Tensor::ones([1], dtype, &Device::cpu()))
        .collect::<osteon::Result<Vec<_>>>()
        .ok()?;
    let args: Vec<Arg> = (0..operands).map(Arg::Tensor).collect();
    let call = Call {
        args: &args,
        kwargs: &BTreeMap::new(),
        tensors: &tensors,
    };
    match Stop::catch(|| ops::apply(name, &call)) {
        Ok(_) => Some(true),
        Err(Stop::Failed(_)) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operation_accepts_is_found_out() {
        assert_eq!(dtypes_of("add").as_deref(), Some("b u i f c"));
        assert_eq!(dtypes_of("hypot").as_deref(), Some("f"));
        assert_eq!(dtypes_of("bitwise_and").as_deref(), Some("b u i"));
        assert_eq!(dtypes_of("gelu").as_deref(), Some("f"));
        assert_eq!(dtypes_of("complex").as_deref(), Some("float32 float64"));
        assert_eq!(dtypes_of("no_such_operation"), None);
    }
}
