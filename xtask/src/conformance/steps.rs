//! The operations of the programs, by the names that the files give them.

use std::ops::Bound;

use osteon::{Category, DType, Device, Index, MemoryFormat, Scalar, Tensor};
use serde_json::{Map, Value};

use super::args::integer;
use super::call::Stop;
use super::tensors::make;
use super::value::Number;

type Made = Result<Vec<Tensor>, Stop>;

/// Runs one step. Operations on metadata in place change `inputs[0]`.
pub fn apply(op: &str, inputs: &mut [Tensor], args: &Map<String, Value>) -> Made {
    let a = Args(args);
    match inputs {
        _ if matches!(op, "cat" | "stack") => joined(op, inputs, &a),
        [] => create(op, &a),
        [x] => {
            for table in [
                views,
                pieces,
                copies,
                arranged,
                elementwise,
                reductions,
                in_place,
                metadata,
            ] {
                match table(op, x, &a) {
                    Err(Stop::Missing) => {}
                    made => return made,
                }
            }
            Err(Stop::Missing)
        }
        _ => several(op, inputs, &a),
    }
}

/// Several tensors as one: any number of them, also one.
fn joined(op: &str, inputs: &[Tensor], a: &Args<'_>) -> Made {
    let list: Vec<&Tensor> = inputs.iter().collect();
    match op {
        "cat" => one(Tensor::cat(&list, a.int("dim")?)?),
        "stack" => one(Tensor::stack(&list, a.int("dim")?)?),
        _ => Err(Stop::Missing),
    }
}

fn arranged(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "flip" => one(x.flip(a.ints("dims")?)?),
        "index_select" => one(x.index_select(a.int("dim")?, &a.index()?)?),
        "index_tensor" => one(x.i([Index::Tensor(a.index()?)])?),
        "nonzero" => one(x.nonzero()?),
        "repeat" => one(x.repeat(a.ints("repeats")?)?),
        "repeat_interleave" => one(x.repeat_interleave(a.int("repeats")?, Some(a.int("dim")?))?),
        "roll" => one(x.roll([a.int("shift")?], [a.int("dim")?])?),
        "sort" => {
            let (values, indices) = x.sort(a.int("dim")?, false)?;
            Ok(vec![values, indices])
        }
        "tile" => one(x.tile(a.ints("repeats")?)?),
        "tril" => one(x.tril(a.int("diagonal")?)?),
        _ => Err(Stop::Missing),
    }
}

fn one(tensor: Tensor) -> Made {
    Ok(vec![tensor])
}

/// An in-place operation binds nothing.
fn none((): ()) -> Made {
    Ok(Vec::new())
}

fn create(op: &str, a: &Args<'_>) -> Made {
    let (shape, dtype, cpu) = (a.sizes("shape")?, a.dtype()?, Device::cpu());
    match op {
        "arange" => one(arange(&shape, dtype, a.int("start")?)?),
        "zeros" => one(Tensor::zeros(&shape, dtype, &cpu)?),
        "ones" => one(Tensor::ones(&shape, dtype, &cpu)?),
        "full" => one(Tensor::full(&shape, a.scalar("value")?, dtype, &cpu)?),
        _ => Err(Stop::Missing),
    }
}

/// `start`, `start + 1`, …, converted: for bool the multiples of three, for complex x - xi.
fn arange(shape: &[usize], dtype: DType, start: isize) -> Result<Tensor, Stop> {
    let numel: usize = shape.iter().product();
    let numbers = (start..).take(numel).map(|x| match dtype.category() {
        Category::Bool => Number::Int(i128::from(x % 3 == 0)),
        Category::Complex => Number::Complex(x as f64, -(x as f64)),
        _ => Number::Int(x as i128),
    });
    // Shaped afterwards, as it was recorded: it is a view.
    let flat = make(&numbers.collect::<Vec<_>>(), &[numel], dtype)?;
    let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
    Ok(flat.reshape(shape)?)
}

fn views(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "view" => one(x.view(a.ints("shape")?)?),
        "view_dtype" => one(x.view_dtype(a.dtype()?)?),
        "alias" => one(x.view_as(&*x)?),
        "detach" => one(x.detach()?),
        "slice" => {
            let (start, end) = (a.maybe("start")?, a.maybe("end")?);
            one(x.slice_step(a.int("dim")?, range(start, end), a.int("step")?)?)
        }
        "narrow" => one(x.narrow(a.int("dim")?, a.int("start")?, a.int("length")?)?),
        "select" => one(x.select(a.int("dim")?, a.int("index")?)?),
        "permute" => one(x.permute(a.ints("dims")?)?),
        "transpose" => one(x.transpose(a.int("dim0")?, a.int("dim1")?)?),
        "swapaxes" => one(x.swapaxes(a.int("dim0")?, a.int("dim1")?)?),
        "movedim" => one(x.movedim(a.ints("source")?, a.ints("destination")?)?),
        "t" => one(x.t()?),
        "mT" => one(x.mT()?),
        "expand" => one(x.expand(a.ints("shape")?)?),
        "broadcast_to" => one(x.broadcast_to(a.ints("shape")?)?),
        "squeeze" => one(x.squeeze()?),
        "squeeze_dim" => one(x.squeeze_dims([a.int("dim")?])?),
        "unsqueeze" => one(x.unsqueeze(a.int("dim")?)?),
        "unflatten" => one(x.unflatten(a.int("dim")?, a.ints("sizes")?)?),
        "unfold" => one(x.unfold(a.int("dim")?, a.int("size")?, a.int("step")?)?),
        "diagonal" => one(x.diagonal(a.int("offset")?, a.int("dim1")?, a.int("dim2")?)?),
        "as_strided" => {
            one(x.as_strided(a.ints("shape")?, a.ints("stride")?, Some(a.int("offset")?))?)
        }
        "real" => one(x.real()?),
        "view_as_real" => one(x.view_as_real()?),
        "view_as_complex" => one(x.view_as_complex()?),
        _ => Err(Stop::Missing),
    }
}

fn pieces(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    Ok(match op {
        "chunk" => x.chunk(a.int("chunks")?, a.int("dim")?)?,
        "split" => x.split(a.int("size")?, a.int("dim")?)?,
        "split_sizes" => x.split_with_sizes(a.ints("sizes")?, a.int("dim")?)?,
        "tensor_split" => x.tensor_split(a.int("sections")?, a.int("dim")?)?,
        "unbind" => x.unbind(a.int("dim")?)?,
        _ => return Err(Stop::Missing),
    })
}

fn copies(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "clone" => one(x.copy()?),
        "clone_contiguous" => one(x.copy_in(MemoryFormat::Contiguous)?),
        "contiguous" => one(x.contiguous()?),
        "contiguous_channels_last" => one(x.contiguous_in(MemoryFormat::ChannelsLast)?),
        "reshape" => one(x.reshape(a.ints("shape")?)?),
        "flatten" => one(x.flatten(a.int("start_dim")?, a.int("end_dim")?)?),
        "ravel" => one(x.ravel()?),
        "to_dtype" => one(x.to(a.dtype()?)?),
        "to_dtype_copy" => one(x.to_copy(a.dtype()?)?),
        "empty_like_fill" => {
            let made = x.empty_like()?;
            made.fill_(a.scalar("value")?)?;
            one(made)
        }
        _ => Err(Stop::Missing),
    }
}

fn elementwise(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "abs" => one(x.abs()?),
        "neg" => one(x.neg()?),
        "relu" => one(x.relu()?),
        "square" => one(x.mul(&*x)?),
        "add_scalar" => one(x.add(a.scalar("value")?)?),
        "mul_scalar" => one(x.mul(a.scalar("value")?)?),
        _ => Err(Stop::Missing),
    }
}

fn reductions(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "sum" => one(x.sum()?),
        "sum_dims" => one(x.sum_dims(a.ints("dims")?, a.flag("keepdim")?)?),
        "amax_dims" => one(x.amax(a.ints("dims")?, a.flag("keepdim")?)?),
        "any_dim" => one(x.any_dims([a.int("dim")?], a.flag("keepdim")?)?),
        "argmax" => one(match a.maybe("dim")? {
            None => x.argmax()?,
            Some(dim) => x.argmax_dim(dim, a.flag("keepdim")?)?,
        }),
        "cumsum" => one(x.cumsum(a.int("dim")?)?),
        _ => Err(Stop::Missing),
    }
}

fn in_place(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "fill_" => none(x.fill_(a.scalar("value")?)?),
        "zero_" => none(x.zero_()?),
        "index_fill_" => none(x.index_fill_(a.int("dim")?, &a.index()?, a.scalar("value")?)?),
        "requires_grad_" => none(x.requires_grad_(a.flag("value")?)?),
        "backward" => none(x.sum()?.backward()?),
        "add_scalar_" => none(x.add_(a.scalar("value")?)?),
        "mul_scalar_" => none(x.mul_(a.scalar("value")?)?),
        _ => Err(Stop::Missing),
    }
}

fn metadata(op: &str, x: &mut Tensor, a: &Args<'_>) -> Made {
    match op {
        "transpose_" => none(x.transpose_(a.int("dim0")?, a.int("dim1")?)?),
        "squeeze_" => none(x.squeeze_()?),
        "unsqueeze_" => none(x.unsqueeze_(a.int("dim")?)?),
        "resize_" => none(x.resize_(a.sizes("shape")?)?),
        _ => Err(Stop::Missing),
    }
}

fn several(op: &str, inputs: &mut [Tensor], a: &Args<'_>) -> Made {
    match (op, &*inputs) {
        ("add", [x, y]) => one(x.add(y)?),
        ("sub", [x, y]) => one(x.sub(y)?),
        ("mul", [x, y]) => one(x.mul(y)?),
        ("maximum", [x, y]) => one(x.maximum(y)?),
        ("lt", [x, y]) => one(x.lt(y)?),
        ("eq", [x, y]) => one(x.eq(y)?),
        ("matmul", [x, y]) => one(x.matmul(y)?),
        ("gather", [x, index]) => one(x.gather(a.int("dim")?, index)?),
        ("masked_select", [x, mask]) => one(x.masked_select(mask)?),
        ("where", [condition, x, y]) => one(x.r#where(condition, y)?),
        ("copy_", [x, y]) => none(x.copy_(y)?),
        ("add_", [x, y]) => none(x.add_(y)?),
        ("mul_", [x, y]) => none(x.mul_(y)?),
        ("index_add_", [x, source]) => none(x.index_add_(a.int("dim")?, &a.index()?, source, 1)?),
        ("masked_fill_", [x, mask]) => none(x.masked_fill_(mask, a.scalar("value")?)?),
        _ => Err(Stop::Missing),
    }
}

/// Python's `start:end`, where either may be absent.
pub fn range(start: Option<isize>, end: Option<isize>) -> (Bound<isize>, Bound<isize>) {
    (
        start.map_or(Bound::Unbounded, Bound::Included),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    )
}

/// The arguments of a step.
struct Args<'a>(&'a Map<String, Value>);

impl Args<'_> {
    fn get(&self, name: &str) -> Result<&Value, Stop> {
        self.0
            .get(name)
            .ok_or_else(|| Stop::Unreadable(format!("{name} is missing")))
    }

    fn int(&self, name: &str) -> Result<isize, Stop> {
        integer(self.get(name)?).ok_or_else(|| Stop::Unreadable(format!("{name} is no integer")))
    }

    /// An integer, or null for none.
    fn maybe(&self, name: &str) -> Result<Option<isize>, Stop> {
        if self.get(name)?.is_null() {
            Ok(None)
        } else {
            self.int(name).map(Some)
        }
    }

    fn ints(&self, name: &str) -> Result<Vec<isize>, Stop> {
        let list = self
            .get(name)?
            .as_array()
            .and_then(|l| l.iter().map(integer).collect());
        list.ok_or_else(|| Stop::Unreadable(format!("{name} is no list of integers")))
    }

    fn flag(&self, name: &str) -> Result<bool, Stop> {
        let flag = self.get(name)?.as_bool();
        flag.ok_or_else(|| Stop::Unreadable(format!("{name} is no truth value")))
    }

    fn sizes(&self, name: &str) -> Result<Vec<usize>, Stop> {
        let list: Option<Vec<usize>> = self
            .ints(name)?
            .into_iter()
            .map(|n| usize::try_from(n).ok())
            .collect();
        list.ok_or_else(|| Stop::Unwritable(format!("{name} is negative somewhere")))
    }

    fn dtype(&self) -> Result<DType, Stop> {
        let name = self.get("dtype")?.as_str().unwrap_or_default();
        DType::from_name(name).ok_or_else(|| Stop::Unreadable(format!("no dtype {name:?}")))
    }

    fn scalar(&self, name: &str) -> Result<Scalar, Stop> {
        let number = Number::parse(self.get(name)?);
        Ok(number
            .ok_or_else(|| Stop::Unreadable(format!("{name} is no number")))?
            .scalar())
    }

    /// The list `index`, as the int64 tensor that the call takes.
    fn index(&self) -> Result<Tensor, Stop> {
        let numbers: Vec<Number> = self
            .ints("index")?
            .into_iter()
            .map(|n| Number::Int(n as i128))
            .collect();
        Ok(make(&numbers, &[numbers.len()], DType::I64)?)
    }
}
