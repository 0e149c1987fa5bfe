//! A recorded call of a single operation.

use std::collections::BTreeMap;
use std::fmt;

use osteon::{DType, Tensor};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;

use super::args::{Arg, Call, Recorded};
use super::call::Stop;
use super::exceptions::Difference;
use super::observe::Observed;
use super::report::Verdict;
use super::tensors::values;
use super::value::{Number, Tolerance, parse_numbers};
use super::{choice, ops};

/// One line of a file of single operations.
#[derive(Debug)]
pub struct Case {
    /// PyTorch's name of the operation.
    pub op: String,
    args: Vec<Arg>,
    kwargs: BTreeMap<String, Arg>,
    tensors: Vec<Recorded>,
    outcome: Outcome,
    /// The gradients of the sum of all results, by the number of the tensor.
    grads: BTreeMap<usize, Option<Vec<Number>>>,
}

#[derive(Debug)]
enum Outcome {
    Results(Vec<Expected>),
    /// The class of PyTorch's error.
    Error(String),
}

/// A recorded result.
#[derive(Debug)]
pub enum Expected {
    Scalar(Number),
    Tensor {
        dtype: DType,
        shape: Vec<usize>,
        stride: Vec<usize>,
        offset: usize,
        alias_of: Option<usize>,
        values: Vec<Number>,
    },
}

/// A result of a call.
#[derive(Debug)]
pub enum Output {
    Tensor(Tensor),
    Scalar(Number),
}

#[derive(Deserialize)]
struct Record {
    op: String,
    args: Vec<Value>,
    kwargs: Pairs,
    out: Option<Value>,
    error: Option<String>,
    #[serde(default)]
    grads: BTreeMap<usize, Option<Vec<Value>>>,
}

/// A JSON object in the order of its text: tensors are numbered as they appear.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Case {
    /// Reads a line.
    ///
    /// # Errors
    /// A message for a line that is not of the format.
    pub fn parse(line: &str) -> Result<Case, String> {
        let record: Record = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let mut tensors = Vec::new();
        let mut argument = |value: &Value| {
            Arg::parse(value, &mut tensors)
                .ok_or_else(|| format!("an argument that makes no sense: {value}"))
        };
        let args = record
            .args
            .iter()
            .map(&mut argument)
            .collect::<Result<_, _>>()?;
        let mut kwargs = BTreeMap::new();
        for (name, value) in &record.kwargs.0 {
            kwargs.insert(name.clone(), argument(value)?);
        }
        let outcome = match (record.out, record.error) {
            (Some(out), None) => {
                let results = match &out {
                    Value::Array(list) => list.iter().map(Expected::parse).collect(),
                    single => Expected::parse(single).map(|e| vec![e]),
                };
                Outcome::Results(results.ok_or("a result that makes no sense")?)
            }
            (None, Some(error)) => Outcome::Error(error),
            _ => return Err("needs either out or error".to_owned()),
        };
        let mut grads = BTreeMap::new();
        for (tensor, grad) in record.grads {
            let read = |g: Vec<Value>| parse_numbers(&g).ok_or("a gradient that makes no sense");
            grads.insert(tensor, grad.map(read).transpose()?);
        }
        Ok(Case {
            op: record.op,
            args,
            kwargs,
            tensors,
            outcome,
            grads,
        })
    }

    /// Makes the arguments, calls, and compares everything that can be seen.
    pub fn run(&self, watch: &mut dyn FnMut(&str)) -> Verdict {
        let dtype = self.tensors.first().map(|t| t.dtype);
        let failed = |detail: String| {
            Difference {
                op: self.op.clone(),
                dtype,
                detail,
            }
            .verdict()
        };
        let built = self
            .tensors
            .iter()
            .map(Recorded::build)
            .collect::<osteon::Result<Vec<Tensor>>>();
        let tensors = match built {
            Ok(tensors) => tensors,
            // A call that must fail fails already on a tensor that cannot be made.
            Err(_) if matches!(self.outcome, Outcome::Error(_)) => return Verdict::Passed,
            Err(e) => return Verdict::Failed("(arguments)".to_owned(), e.to_string()),
        };
        let call = self.call(&tensors);
        let before = snapshot(&tensors);
        let result = Stop::catch(|| ops::apply(&self.op, &call));
        watch(&format!("{} {:?} {:?}", self.op, self.args, self.kwargs));
        for (n, shown) in before.iter().flatten().enumerate() {
            watch(&format!("tensor {n}: {shown}"));
        }
        match &result {
            Ok(outputs) => outputs.iter().for_each(|o| watch(&format!("result: {o}"))),
            Err(stop) => watch(&stop.to_string()),
        }
        match (&self.outcome, result) {
            (_, Err(Stop::Missing)) => Verdict::Missing(self.op.clone()),
            (_, Err(stop @ (Stop::Panicked(_) | Stop::Unreadable(_)))) => failed(stop.to_string()),
            (Outcome::Error(class), Err(Stop::Unwritable(_))) if class == "TypeError" => {
                Verdict::Unwritable
            }
            (Outcome::Error(_), Err(Stop::Failed(_))) if before != snapshot(&tensors) => {
                failed("fails, and changes an argument".to_owned())
            }
            (Outcome::Error(_), Err(_)) => Verdict::Passed,
            (Outcome::Error(class), Ok(_)) => {
                failed(format!("succeeds where it must fail ({class})"))
            }
            (Outcome::Results(_), Err(stop)) => failed(stop.to_string()),
            (Outcome::Results(expected), Ok(outputs)) => {
                match self.compare(expected, &outputs, &tensors, true) {
                    Ok(()) => match self.compare_grads(expected, watch) {
                        Ok(()) => Verdict::Passed,
                        Err(detail) => failed(detail),
                    },
                    Err(detail) => failed(detail),
                }
            }
        }
    }

    fn compare(
        &self,
        expected: &[Expected],
        outputs: &[Output],
        tensors: &[Tensor],
        layouts: bool,
    ) -> Result<(), String> {
        if expected.len() != outputs.len() {
            return Err(format!(
                "{} results, want {}",
                outputs.len(),
                expected.len()
            ));
        }
        for (n, (want, got)) in expected.iter().zip(outputs).enumerate() {
            let place = if expected.len() > 1 {
                format!("result {n}: ")
            } else {
                String::new()
            };
            match want.difference(got, tensors, layouts)? {
                Some(_) if choice::equally_right(self, n, want, got, tensors) => {}
                Some(difference) => return Err(place + &difference),
                None => {}
            }
        }
        Ok(())
    }

    /// Calls once more, with tensors that require gradients; compares the results again, and the gradients.
    fn compare_grads(
        &self,
        expected: &[Expected],
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        if self.grads.is_empty() {
            return Ok(());
        }
        let tensors = self
            .leaves()
            .map_err(|e| format!("the leaves cannot be made: {e}"))?;
        let outputs = Stop::catch(|| ops::apply(&self.op, &self.call(&tensors)))
            .map_err(|stop| format!("with leaves that require gradients: {stop}"))?;
        // Values alone: the layouts were recorded without gradients, on which a product's can depend.
        self.compare(expected, &outputs, &tensors, false)
            .map_err(|detail| format!("with leaves that require gradients: {detail}"))?;
        Stop::catch(|| Ok(backward(&outputs)?)).map_err(|stop| format!("backward: {stop}"))?;
        for (n, want) in &self.grads {
            let said = |detail: String| format!("gradient of tensor {n}: {detail}");
            let tensor = tensors
                .get(*n)
                .ok_or_else(|| said("no such tensor".to_owned()))?;
            let got = tensor.grad().map(|g| values(&g)).transpose();
            let got = got.map_err(|e| said(format!("cannot be read: {e}")))?;
            watch(&format!("gradient {n}: {got:?}"));
            let difference = match (want, &got) {
                (None, None) => None,
                (None, Some(_)) => Some("is there, and should not".to_owned()),
                (Some(_), None) => Some("is missing".to_owned()),
                (Some(want), Some(got)) => Tolerance::OPS
                    .difference(tensor.dtype(), want, got)
                    .filter(|_| !cancels(want, got)),
            };
            difference.map_or(Ok(()), |detail| Err(said(detail)))?;
        }
        Ok(())
    }

    /// The arguments as leaves, those that gradients were recorded for requiring them.
    fn leaves(&self) -> osteon::Result<Vec<Tensor>> {
        let leaf = |(n, recorded): (usize, &Recorded)| {
            let tensor = recorded.build()?.detach()?;
            tensor.requires_grad_(self.grads.contains_key(&n))?;
            Ok(tensor)
        };
        self.tensors.iter().enumerate().map(leaf).collect()
    }

    /// The call's arguments, over these tensors.
    pub(super) fn call<'a>(&'a self, tensors: &'a [Tensor]) -> Call<'a> {
        Call {
            args: &self.args,
            kwargs: &self.kwargs,
            tensors,
        }
    }
}

/// Whether a gradient is nothing but rounding on both sides: sums of terms as large as the gradient that a pass begins
/// with, 1, that cancel. What is left of them depends on the order of the sum.
fn cancels(want: &[Number], got: &[Number]) -> bool {
    const ROUNDING: f64 = 4.0 * f64::EPSILON;
    let is_small = |n: &Number| n.re().abs() <= ROUNDING && n.im().abs() <= ROUNDING;
    want.len() == got.len() && want.iter().chain(got).all(is_small)
}

/// The backward pass of the sum of all results.
fn backward(outputs: &[Output]) -> osteon::Result<()> {
    let mut total: Option<Tensor> = None;
    for output in outputs {
        if let Output::Tensor(tensor) = output
            && tensor.requires_grad()
        {
            let sum = tensor.sum()?;
            total = Some(match total {
                None => sum,
                Some(total) => total.add(&sum)?,
            });
        }
    }
    total.map_or(Ok(()), |total| total.backward())
}

fn snapshot(tensors: &[Tensor]) -> Vec<Option<Observed>> {
    tensors.iter().map(|t| Observed::of(t).ok()).collect()
}

impl Expected {
    /// Reads a result.
    pub fn parse(value: &Value) -> Option<Expected> {
        if let Some(scalar) = value.get("scalar") {
            return Some(Expected::Scalar(Number::parse(scalar)?));
        }
        let sizes = |name: &str| {
            let list = value.get(name)?.as_array()?.iter();
            list.map(|n| n.as_u64()?.try_into().ok())
                .collect::<Option<Vec<usize>>>()
        };
        Some(Expected::Tensor {
            dtype: DType::from_name(value.get("dtype")?.as_str()?)?,
            shape: sizes("shape")?,
            stride: sizes("stride")?,
            offset: value.get("offset")?.as_u64()?.try_into().ok()?,
            alias_of: value
                .get("alias_of")?
                .as_u64()
                .and_then(|n| n.try_into().ok()),
            values: parse_numbers(value.get("values")?.as_array()?)?,
        })
    }

    /// What differs; an error where the result cannot be read.
    fn difference(
        &self,
        got: &Output,
        tensors: &[Tensor],
        layouts: bool,
    ) -> Result<Option<String>, String> {
        match (self, got) {
            (Expected::Scalar(want), Output::Scalar(got)) => {
                let dtype = if matches!(want, Number::Complex(..)) {
                    DType::C64
                } else {
                    DType::F32
                };
                Ok(Tolerance::OPS.difference(dtype, &[*want], &[*got]))
            }
            (
                Expected::Tensor {
                    dtype,
                    shape,
                    stride,
                    offset,
                    alias_of,
                    values,
                },
                Output::Tensor(tensor),
            ) => {
                let got = Observed::of(tensor).map_err(|e| format!("cannot be read: {e}"))?;
                let shared = tensors.iter().position(|t| t.storage().id() == got.storage);
                // The record goes by addresses, and a storage without bytes has none.
                let alias = shared.filter(|_| got.storage_nbytes > 0);
                let lies = || {
                    differ("stride", stride, &got.stride)
                        .or_else(|| differ("storage (the argument it shares)", alias_of, &alias))
                        .or_else(|| differ("offset", offset, &got.offset))
                };
                Ok(differ("dtype", dtype, &got.dtype)
                    .or_else(|| differ("shape", shape, &got.shape))
                    .or_else(|| if layouts { lies() } else { None })
                    .or_else(|| Tolerance::OPS.difference(*dtype, values, &got.values)))
            }
            _ => Ok(Some(
                "a tensor for a scalar, or the other way round".to_owned(),
            )),
        }
    }
}

fn differ<T: PartialEq + fmt::Debug>(what: &str, want: &T, got: &T) -> Option<String> {
    (want != got).then(|| format!("{what} is {got:?}, want {want:?}"))
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Scalar(number) => write!(f, "{number:?}"),
            Output::Tensor(tensor) => match Observed::of(tensor) {
                Ok(observed) => observed.fmt(f),
                Err(e) => write!(f, "cannot be read: {e}"),
            },
        }
    }
}

impl From<Tensor> for Output {
    fn from(tensor: Tensor) -> Output {
        Output::Tensor(tensor)
    }
}
