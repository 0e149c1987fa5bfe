//! The device without memory: shapes, layouts, accounting and errors, and no elements.

use crate::View;
use crate::attention::Attention;
use crate::backend::{Arg, Backend, Body, Peek, To};
use crate::index::{Indexed, Move};
use crate::reduce::Reduction;
use osteon_kernels::{Axis, Divisor, Pick, Pooling, Random, RowOp, Sequence, SoftmaxOp, Triangle};
use osteon_spec::{DType, Error, Kind, Result, Scalar};

pub(crate) struct Meta;

#[cold]
fn no_elements() -> Error {
    Error::new(Kind::Device, "a tensor on meta has no elements to read")
}

impl Backend for Meta {
    fn copy(&self, _dst: &View, _src: &View) -> Result<()> {
        Ok(())
    }

    fn fill(&self, _dst: &View, _value: Scalar) -> Result<()> {
        Ok(())
    }

    fn upload(&self, _dst: &View, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn generate(&self, _dst: &View, _item: &dyn Fn(usize) -> Scalar) -> Result<()> {
        Ok(())
    }

    fn sequence(&self, _dst: &View, _how: Sequence) -> Result<()> {
        Ok(())
    }

    fn download(&self, _src: &View, _bytes: &mut [u8]) -> Result<()> {
        Err(no_elements())
    }

    fn peek(&self, _src: &View, _look: &mut dyn FnMut(&Peek<'_>)) -> Result<()> {
        Err(no_elements())
    }

    fn elementwise(&self, _body: &Body, _dst: To<'_>, _args: &[Arg<'_>]) -> Result<()> {
        Ok(())
    }

    fn any_zero(&self, _src: Arg<'_>) -> Result<bool> {
        Ok(false)
    }

    fn random(&self, _dst: &View, _how: &Random) -> Result<()> {
        Ok(())
    }

    fn shuffled(&self, _dst: &View, _how: &Random) -> Result<()> {
        Ok(())
    }

    fn indexed(
        &self,
        _what: Move<'_>,
        _dst: &View,
        _src: Arg<'_>,
        _how: &Indexed<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn select(&self, _dst: &View, _condition: &View, _a: Arg<'_>, _b: Arg<'_>) -> Result<()> {
        Ok(())
    }

    fn max_pool(
        &self,
        _dst: &View,
        _positions: Option<&View>,
        _src: &View,
        _how: &Pooling<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn avg_pool(
        &self,
        _dst: &View,
        _src: &View,
        _how: &Pooling<'_>,
        _divisor: Divisor,
    ) -> Result<()> {
        Ok(())
    }

    fn avg_spread(
        &self,
        _dst: &View,
        _src: &View,
        _how: &Pooling<'_>,
        _divisor: Divisor,
    ) -> Result<()> {
        Ok(())
    }

    fn weighted(
        &self,
        _dst: &View,
        _src: &View,
        _weight: &View,
        _how: &Pooling<'_>,
        _backwards: bool,
    ) -> Result<()> {
        Ok(())
    }

    fn contract(
        &self,
        _dst: &View,
        _lhs: &View,
        _rhs: &View,
        _axes: &[Axis],
        _summed: &[Axis],
    ) -> Result<()> {
        Ok(())
    }

    fn attention(&self, _dst: &View, _of: [&View; 3], _how: &Attention<'_>) -> Result<()> {
        Ok(())
    }

    fn flip(&self, _dst: &View, _src: &View, _dims: &[usize]) -> Result<()> {
        Ok(())
    }

    fn triangle(&self, _keep: Triangle, _dst: &View, _src: &View) -> Result<()> {
        Ok(())
    }

    fn sort(&self, _pick: &Pick, _out: [&View; 2], _src: &View, _dim: usize) -> Result<()> {
        Ok(())
    }

    fn keys(&self, _src: &View, _out: &mut [u64]) -> Result<()> {
        Err(no_elements())
    }

    fn classes(&self, _src: &View, _consecutive: bool) -> Result<[View; 3]> {
        Err(no_elements())
    }

    fn count_true(&self, _src: &View) -> Result<usize> {
        Err(no_elements())
    }

    fn nonzero(&self, _dst: &View, _src: &View) -> Result<bool> {
        Err(no_elements())
    }

    fn masked_select(&self, _dst: &View, _src: &View, _mask: &View) -> Result<bool> {
        Err(no_elements())
    }

    fn masked_scatter(&self, _dst: &View, _mask: &View, _src: &View) -> Result<()> {
        Ok(())
    }

    fn reduce(&self, _how: &Reduction<'_>, _dst: [Option<&View>; 2], _src: &View) -> Result<()> {
        Ok(())
    }

    fn scan(&self, _how: &Reduction<'_>, _dst: [Option<&View>; 2], _src: &View) -> Result<()> {
        Ok(())
    }

    fn recurrence(&self, _dst: &View, _from: [&View; 2], _dim: usize, _back: bool) -> Result<()> {
        Ok(())
    }

    fn rows(&self, _: RowOp, _: (DType, f64), _: &[Arg<'_>], _: &[usize]) -> Result<bool> {
        Ok(true)
    }

    fn softmax(
        &self,
        _op: SoftmaxOp,
        _dtype: DType,
        _dst: &View,
        _args: [Arg<'_>; 3],
    ) -> Result<()> {
        Ok(())
    }

    fn normalize(&self, _dtype: DType, _dst: &View, _args: [Arg<'_>; 5]) -> Result<()> {
        Ok(())
    }
}
