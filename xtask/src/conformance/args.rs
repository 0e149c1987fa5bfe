//! The arguments of a recorded call, as JSON has them and as a call wants them.

use std::collections::BTreeMap;

use osteon::{DType, MemoryFormat, Operand, Scalar, Tensor};
use serde_json::{Map, Value};

use super::call::Stop;
use super::tensors::make;
use super::value::{Number, parse_numbers};

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// The tensor of this number.
    Tensor(usize),
    Bool(bool),
    Int(isize),
    Number(Number),
    Text(String),
    None,
    List(Vec<Arg>),
    DType(DType),
    MemoryFormat(String),
    Slice(Option<isize>, Option<isize>, Option<isize>),
    Ellipsis,
}

/// A recorded tensor argument: its whole storage, and the layout over it.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub dtype: DType,
    pub shape: Vec<isize>,
    pub stride: Vec<isize>,
    pub offset: isize,
    pub storage: Vec<Number>,
}

impl Recorded {
    fn parse(map: &Map<String, Value>) -> Option<Recorded> {
        let integers = |name: &str| {
            map.get(name)?
                .as_array()?
                .iter()
                .map(integer)
                .collect::<Option<Vec<_>>>()
        };
        Some(Recorded {
            dtype: DType::from_name(map.get("dtype")?.as_str()?)?,
            shape: integers("shape")?,
            stride: integers("stride")?,
            offset: integer(map.get("offset")?)?,
            storage: parse_numbers(map.get("storage")?.as_array()?)?,
        })
    }

    /// The tensor itself.
    pub fn build(&self) -> osteon::Result<Tensor> {
        make(&self.storage, &[self.storage.len()], self.dtype)?.as_strided(
            &self.shape,
            &self.stride,
            Some(self.offset),
        )
    }
}

impl Arg {
    /// Reads an argument; tensors are put into the list of tensors.
    pub fn parse(value: &Value, tensors: &mut Vec<Recorded>) -> Option<Arg> {
        Some(match value {
            Value::Null => Arg::None,
            Value::Bool(b) => Arg::Bool(*b),
            Value::String(s) => Arg::Text(s.clone()),
            Value::Number(_) => integer(value).map_or(Arg::Number(Number::parse(value)?), Arg::Int),
            Value::Array(list) => Arg::List(
                list.iter()
                    .map(|v| Arg::parse(v, tensors))
                    .collect::<Option<_>>()?,
            ),
            Value::Object(map) => {
                let (kind, inner) = map.iter().next()?;
                match kind.as_str() {
                    "tensor" => {
                        tensors.push(Recorded::parse(inner.as_object()?)?);
                        Arg::Tensor(tensors.len() - 1)
                    }
                    "same" => Arg::Tensor(usize::try_from(inner.as_u64()?).ok()?),
                    "float" | "complex" => Arg::Number(Number::parse(value)?),
                    "dtype" => Arg::DType(DType::from_name(inner.as_str()?)?),
                    "memory_format" => Arg::MemoryFormat(inner.as_str()?.to_owned()),
                    "ellipsis" => Arg::Ellipsis,
                    "slice" => match &inner.as_array()?[..] {
                        [start, end, step] => {
                            Arg::Slice(integer(start), integer(end), integer(step))
                        }
                        _ => return None,
                    },
                    _ => return None,
                }
            }
        })
    }
}

/// A call: what is asked for by place or by name. Where an argument has another kind than the call
/// needs, Rust's types exclude the call.
#[derive(Debug)]
pub struct Call<'a> {
    pub args: &'a [Arg],
    pub kwargs: &'a BTreeMap<String, Arg>,
    pub tensors: &'a [Tensor],
}

impl<'a> Call<'a> {
    /// The argument at this place or of this name; `None` counts as absent.
    pub fn get(&self, place: usize, name: &str) -> Option<&'a Arg> {
        self.args
            .get(place)
            .or_else(|| self.kwargs.get(name))
            .filter(|a| !matches!(a, Arg::None))
    }

    /// A keyword argument.
    pub fn named(&self, name: &str) -> Option<&'a Arg> {
        self.get(usize::MAX, name)
    }

    pub fn need(&self, place: usize, name: &str) -> Result<&'a Arg, Stop> {
        self.get(place, name)
            .ok_or_else(|| Stop::Unwritable(format!("{name} is missing")))
    }

    /// A tensor.
    pub fn tensor(&self, place: usize, name: &str) -> Result<&'a Tensor, Stop> {
        self.as_tensor(self.need(place, name)?, name)
    }

    /// The tensor that an argument is.
    pub fn as_tensor(&self, arg: &Arg, name: &str) -> Result<&'a Tensor, Stop> {
        match arg {
            Arg::Tensor(n) => self
                .tensors
                .get(*n)
                .ok_or_else(|| Stop::Unreadable(format!("there is no tensor {n}"))),
            other => Err(unwritable(name, "a tensor", other)),
        }
    }

    /// An integer.
    pub fn int(&self, place: usize, name: &str) -> Result<isize, Stop> {
        as_int(self.need(place, name)?, name)
    }

    /// An integer, or what PyTorch takes in its absence.
    pub fn int_or(&self, place: usize, name: &str, absent: isize) -> Result<isize, Stop> {
        Ok(self.int_or_none(place, name)?.unwrap_or(absent))
    }

    /// An integer that may be absent.
    pub fn int_or_none(&self, place: usize, name: &str) -> Result<Option<isize>, Stop> {
        self.get(place, name).map(|a| as_int(a, name)).transpose()
    }

    /// Integers: a list, or a single one.
    pub fn ints(&self, place: usize, name: &str) -> Result<Vec<isize>, Stop> {
        as_ints(self.need(place, name)?, name)
    }

    /// Integers that may be absent.
    pub fn ints_or_none(&self, place: usize, name: &str) -> Result<Option<Vec<isize>>, Stop> {
        self.get(place, name).map(|a| as_ints(a, name)).transpose()
    }

    /// A tensor, or a number in its place.
    pub fn operand(&self, place: usize, name: &str) -> Result<Operand<'a>, Stop> {
        match self.need(place, name)? {
            Arg::Tensor(_) => Ok(self.tensor(place, name)?.into()),
            number => Ok(as_scalar(number, name)?.into()),
        }
    }

    /// Sizes: integers that are not negative.
    pub fn sizes(&self, place: usize, name: &str) -> Result<Vec<usize>, Stop> {
        let sizes: Option<Vec<usize>> = self
            .ints(place, name)?
            .into_iter()
            .map(|n| usize::try_from(n).ok())
            .collect();
        sizes.ok_or_else(|| Stop::Unwritable(format!("{name} is negative somewhere")))
    }

    /// A number for a float parameter.
    pub fn float(&self, place: usize, name: &str) -> Result<f64, Stop> {
        as_float(self.need(place, name)?, name)
    }

    /// A number of any kind.
    pub fn scalar(&self, place: usize, name: &str) -> Result<Scalar, Stop> {
        as_scalar(self.need(place, name)?, name)
    }

    /// A number of any kind, or what PyTorch takes in its absence.
    pub fn scalar_or(
        &self,
        place: usize,
        name: &str,
        absent: impl Into<Scalar>,
    ) -> Result<Scalar, Stop> {
        self.get(place, name)
            .map_or(Ok(absent.into()), |a| as_scalar(a, name))
    }

    /// A truth value; false in its absence.
    pub fn flag(&self, place: usize, name: &str) -> Result<bool, Stop> {
        self.flag_or(place, name, false)
    }

    /// A truth value, or what PyTorch takes in its absence.
    pub fn flag_or(&self, place: usize, name: &str, absent: bool) -> Result<bool, Stop> {
        match self.get(place, name) {
            None => Ok(absent),
            Some(Arg::Bool(b)) => Ok(*b),
            Some(Arg::Int(n)) => Ok(*n != 0),
            Some(other) => Err(unwritable(name, "a bool", other)),
        }
    }

    /// A memory format that may be absent.
    pub fn memory_format(&self, name: &str) -> Result<Option<MemoryFormat>, Stop> {
        Ok(Some(match self.named(name) {
            None => return Ok(None),
            Some(Arg::MemoryFormat(format)) => match format.as_str() {
                "contiguous_format" => MemoryFormat::Contiguous,
                "channels_last" => MemoryFormat::ChannelsLast,
                "channels_last_3d" => MemoryFormat::ChannelsLast3d,
                "preserve_format" => MemoryFormat::Preserve,
                other => return Err(Stop::Unreadable(format!("no memory format {other}"))),
            },
            Some(other) => return Err(unwritable(name, "a memory format", other)),
        }))
    }

    /// A text that may be absent.
    pub fn text(&self, place: usize, name: &str) -> Result<Option<&'a str>, Stop> {
        match self.get(place, name) {
            None => Ok(None),
            Some(Arg::Text(text)) => Ok(Some(text)),
            Some(other) => Err(unwritable(name, "a text", other)),
        }
    }

    /// A number for a float parameter, or what PyTorch takes in its absence.
    pub fn float_or(&self, place: usize, name: &str, absent: f64) -> Result<f64, Stop> {
        self.get(place, name)
            .map_or(Ok(absent), |a| as_float(a, name))
    }

    /// A tensor that may be absent.
    pub fn tensor_or_none(&self, place: usize, name: &str) -> Result<Option<&'a Tensor>, Stop> {
        self.get(place, name)
            .map(|a| self.as_tensor(a, name))
            .transpose()
    }

    /// `N` integers, of which a single one stands for all; or what PyTorch takes in their absence.
    pub fn each_or<const N: usize>(
        &self,
        place: usize,
        name: &str,
        absent: [isize; N],
    ) -> Result<[isize; N], Stop> {
        match self.ints_or_none(place, name)?.as_deref() {
            None | Some([]) => Ok(absent),
            Some(&[one]) => Ok([one; N]),
            Some(list) => list
                .try_into()
                .map_err(|_| Stop::Unwritable(format!("{name} must be {N} integers"))),
        }
    }

    /// A dtype that may be absent.
    pub fn dtype(&self, place: usize, name: &str) -> Result<Option<DType>, Stop> {
        match self.get(place, name) {
            None => Ok(None),
            Some(Arg::DType(d)) => Ok(Some(*d)),
            Some(other) => Err(unwritable(name, "a dtype", other)),
        }
    }
}

/// A JSON integer.
pub fn integer(value: &Value) -> Option<isize> {
    value.as_i64().and_then(|n| isize::try_from(n).ok())
}

fn unwritable(name: &str, wanted: &str, got: &Arg) -> Stop {
    Stop::Unwritable(format!("{name} must be {wanted}, and is {got:?}"))
}

fn as_int(arg: &Arg, name: &str) -> Result<isize, Stop> {
    match arg {
        Arg::Int(n) => Ok(*n),
        Arg::Bool(b) => Ok(isize::from(*b)),
        other => Err(unwritable(name, "an integer", other)),
    }
}

fn as_ints(arg: &Arg, name: &str) -> Result<Vec<isize>, Stop> {
    match arg {
        Arg::List(list) => list.iter().map(|a| as_int(a, name)).collect(),
        single => Ok(vec![as_int(single, name)?]),
    }
}

fn as_float(arg: &Arg, name: &str) -> Result<f64, Stop> {
    match arg {
        Arg::Int(n) => Ok(*n as f64),
        Arg::Bool(b) => Ok(f64::from(u8::from(*b))),
        Arg::Number(number @ (Number::Real(_) | Number::Int(_))) => Ok(number.re()),
        other => Err(unwritable(name, "a float", other)),
    }
}

fn as_scalar(arg: &Arg, name: &str) -> Result<Scalar, Stop> {
    match arg {
        Arg::Int(n) => Ok(Scalar::Int(*n as i64)),
        Arg::Bool(b) => Ok(Scalar::Bool(*b)),
        Arg::Number(n) => Ok(n.scalar()),
        other => Err(unwritable(name, "a number", other)),
    }
}
