//! What checkpoints of tensors and plain values refer to. Everything else is reported.

use crate::catalog::{Warning, WarningKind};
use crate::pickle::{Graph, Node};
use osteon_spec::DType;
use std::collections::HashMap;

/// Names that neither run foreign code nor need it, by module.
const HARMLESS: [(&str, &[&str]); 11] = [
    ("builtins", BUILTINS),
    ("__builtin__", BUILTINS),
    (
        "collections",
        &["OrderedDict", "defaultdict", "Counter", "deque"],
    ),
    ("_codecs", &["encode"]),
    (
        "torch",
        &[
            "Size",
            "Tensor",
            "device",
            "strided",
            "sparse_coo",
            "sparse_csr",
        ],
    ),
    ("torch.serialization", &["_get_layout"]),
    ("torch._tensor", &["_rebuild_from_type_v2"]),
    ("torch.nn.parameter", &["Parameter", "Buffer"]),
    ("torch.storage", &["UntypedStorage", "TypedStorage"]),
    ("torch._C", &["device"]),
    (
        "torch._utils",
        &[
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
            "_rebuild_qtensor",
            "_rebuild_sparse_tensor",
            "_rebuild_meta_tensor_no_storage",
            "_rebuild_wrapper_subclass",
            "_rebuild_device_tensor_from_numpy",
            "_rebuild_device_tensor_from_cpu_tensor",
        ],
    ),
];

const BUILTINS: &[&str] = &[
    "set",
    "frozenset",
    "list",
    "dict",
    "tuple",
    "bytearray",
    "complex",
    "int",
    "float",
    "str",
    "bool",
    "slice",
    "range",
    "object",
];

/// PyTorch's storage classes: the elements' dtype, where it is one of ours, and their size.
const STORAGES: [(&str, Option<DType>, u64); 18] = [
    ("DoubleStorage", Some(DType::F64), 8),
    ("FloatStorage", Some(DType::F32), 4),
    ("HalfStorage", Some(DType::F16), 2),
    ("BFloat16Storage", Some(DType::BF16), 2),
    ("LongStorage", Some(DType::I64), 8),
    ("IntStorage", Some(DType::I32), 4),
    ("ShortStorage", Some(DType::I16), 2),
    ("CharStorage", Some(DType::I8), 1),
    ("ByteStorage", Some(DType::U8), 1),
    ("BoolStorage", Some(DType::Bool), 1),
    ("ComplexFloatStorage", Some(DType::C64), 8),
    ("ComplexDoubleStorage", Some(DType::C128), 16),
    ("UntypedStorage", Some(DType::U8), 1),
    ("QInt8Storage", None, 1),
    ("QUInt8Storage", None, 1),
    ("QInt32Storage", None, 4),
    ("QUInt4x2Storage", None, 1),
    ("QUInt2x4Storage", None, 1),
];

/// Distinct names that are reported one by one.
const REPORTED: usize = 100;

/// The elements of a storage class, by its name in any of PyTorch's modules.
pub(super) fn storage_class(module: &str, name: &str) -> Option<(Option<DType>, u64)> {
    let known = STORAGES.iter().find(|(n, _, _)| *n == name);
    known
        .filter(|_| is_torch(module))
        .map(|&(_, dtype, size)| (dtype, size))
}

/// The name of the storage class of a dtype that has one; the newer dtypes have none.
pub(super) fn storage_class_name(dtype: DType) -> Option<&'static str> {
    let found = STORAGES
        .iter()
        .find(|(n, d, _)| *d == Some(dtype) && *n != "UntypedStorage");
    found.map(|(name, _, _)| *name)
}

fn is_torch(module: &str) -> bool {
    module == "torch" || module.starts_with("torch.")
}

fn is_harmless(module: &str, name: &str) -> bool {
    HARMLESS
        .iter()
        .any(|(m, names)| *m == module && names.contains(&name))
        || (module == "torch" && is_dtype(name))
        || storage_class(module, name).is_some()
}

/// A dtype of PyTorch's, supported here or not.
fn is_dtype(name: &str) -> bool {
    let kinds = [
        "float", "int", "uint", "complex", "bfloat", "qint", "quint", "bits",
    ];
    name == "bool"
        || kinds.iter().any(|k| {
            name.strip_prefix(k)
                .is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        })
}

/// One warning for each name that is not known to be harmless, in the order of the pickle.
pub(super) fn warnings(graph: &Graph) -> Vec<Warning> {
    let mut called = vec![false; graph.len()];
    for id in graph.ids() {
        if let Some(o) = graph.object(id) {
            called[o.callable as usize] = true;
        }
    }
    let mut found: Vec<(&str, &str, bool)> = Vec::new();
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    for id in graph.ids() {
        let Node::Global { module, name } = graph.node(id) else {
            continue;
        };
        if is_harmless(module, name) {
            continue;
        }
        let at = *seen.entry((module, name)).or_insert(found.len());
        if at == found.len() {
            found.push((module, name, false));
        }
        found[at].2 |= called[id as usize];
    }
    let rest = found.len().saturating_sub(REPORTED);
    let mut warnings: Vec<Warning> = found
        .iter()
        .take(REPORTED)
        .map(|(module, name, called)| {
            let would = if *called { "call" } else { "import" };
            Warning::new(
                WarningKind::Code,
                format!(
                    "unpickling would {would} {}.{}; it is read as data here",
                    shown(module),
                    shown(name)
                ),
            )
        })
        .collect();
    if rest > 0 {
        warnings.push(Warning::new(
            WarningKind::Code,
            format!("unpickling would import {rest} more names that are not known to be harmless"),
        ));
    }
    warnings
}

/// A name from a file, made fit for a terminal.
fn shown(name: &str) -> String {
    let mut text: String = name
        .chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(200).is_some() {
        text.push('…');
    }
    text
}
