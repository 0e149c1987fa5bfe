//! Products.

use osteon::Tensor;

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::{Made, one};

/// Products of two tensors.
pub fn products(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        ($($name:ident)*) => {
            match op {
                $(stringify!($name) => one(c.tensor(0, "input")?.$name(c.tensor(1, "other")?)?),)*
                _ => Err(Stop::Missing),
            }
        };
    }
    by_name! { bmm dot inner kron matmul mm mv outer vdot }
}

/// Products that are added to a tensor.
pub fn added(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        ($($name:literal $scaled:ident;)*) => {
            match op {
                $($name => one(c.tensor(0, "input")?.$scaled(
                    c.tensor(1, "mat1")?,
                    c.tensor(2, "mat2")?,
                    c.scalar_or(usize::MAX, "beta", 1)?,
                    c.scalar_or(usize::MAX, "alpha", 1)?,
                )?),)*
                _ => Err(Stop::Missing),
            }
        };
    }
    by_name! {
        "addbmm" addbmm_scaled;
        "addmm" addmm_scaled;
        "addmv" addmv_scaled;
        "addr" addr;
        "baddbmm" baddbmm_scaled;
    }
}

/// Products with more to say.
pub fn other(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "cross" => one(x()?.cross(c.tensor(1, "other")?, cross_dim(c)?)?),
        "einsum" => {
            let equation = c.text(1, "equation")?.unwrap_or_default();
            one(Tensor::einsum(equation, &tensors(c, 0)?)?)
        }
        "linalg.cross" => one(x()?.cross(c.tensor(1, "other")?, c.int_or(2, "dim", -1)?)?),
        "linalg.matrix_power" => one(x()?.matrix_power(c.int(1, "n")? as i64)?),
        "linalg.multi_dot" => one(Tensor::multi_dot(&tensors(c, 0)?)?),
        "linalg.vecdot" => one(x()?.vecdot(c.tensor(1, "other")?, c.int_or(2, "dim", -1)?)?),
        "tensordot" => {
            let (left, right) = match c.get(2, "dims") {
                Some(Arg::List(lists)) => {
                    let of = |n: usize| match lists.get(n) {
                        Some(Arg::List(list)) => list
                            .iter()
                            .map(|a| match a {
                                Arg::Int(d) => Ok(*d),
                                _ => Err(Stop::Unwritable("a dim is no integer".to_owned())),
                            })
                            .collect::<Result<Vec<isize>, Stop>>(),
                        _ => Err(Stop::Unwritable("two lists of dims are needed".to_owned())),
                    };
                    (of(0)?, of(1)?)
                }
                _ => {
                    let n = c.int_or(2, "dims", 2)?;
                    ((-n..0).collect(), (0..n).collect())
                }
            };
            one(x()?.tensordot(c.tensor(1, "other")?, left, right)?)
        }
        _ => Err(Stop::Missing),
    }
}

/// PyTorch's default: the first dim of size 3.
fn cross_dim(c: &Call<'_>) -> Result<isize, Stop> {
    match c.int_or_none(2, "dim")? {
        Some(dim) => Ok(dim),
        None => {
            let first = c.tensor(0, "input")?.shape().iter().position(|&n| n == 3);
            Ok(first.map_or(-1, |d| d as isize))
        }
    }
}

/// A list of tensors.
fn tensors<'a>(c: &Call<'a>, place: usize) -> Result<Vec<&'a Tensor>, Stop> {
    match c.get(place, "tensors") {
        Some(Arg::List(list)) => list.iter().map(|a| c.as_tensor(a, "tensors")).collect(),
        _ => Err(Stop::Unwritable("a list of tensors is needed".to_owned())),
    }
}
