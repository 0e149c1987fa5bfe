//! Reductions of elements into the places that an index tensor names.

use crate::graph::{Back, Recorder, Rule, record, rule, two};
use crate::scatter::{read, taken};
use crate::{Operand, Tensor};
use osteon_spec::{MemoryFormat, Result};
use osteon_tensor::{Arg, Reduce, View};

impl Tensor {
    /// Reduces each element of `source`, or one number, into the place along a dim that `index`, of the same rank, names.
    /// Without `include_self` what was there does not count.
    ///
    /// # Errors
    /// As [`Tensor::scatter_`]; complex numbers have no largest.
    ///
    /// ```
    /// # use osteon_autograd::{Reduce, Tensor};
    /// let x = Tensor::new([1i64, 2])?;
    /// x.scatter_reduce_(0, &Tensor::new([0i64, 0])?, &Tensor::new([5i64, 7])?, Reduce::Amax, true)?;
    /// assert_eq!(x.to_vec::<i64>()?, [7, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_reduce_<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        source: impl Into<Operand<'a>>,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        let how = Reduced {
            dim,
            reduce,
            include_self,
        };
        let source = source.into();
        let read = source.tensor().map(|t| read(t, index)).transpose()?;
        let source = read.as_ref().map_or(source, Operand::Tensor);
        let mut inputs = vec![self];
        inputs.extend(&read);
        let save = |r: &mut Recorder| {
            // The elements as they are before the write, with their history.
            let own = if how.reads() {
                self.copy()?
            } else {
                self.clone()
            };
            how.save(r, &own, index, read.as_ref())
        };
        let run = || how.run(self.as_view(), index, source.arg());
        Recorder::in_place("scatter_reduce_", &inputs, save, run, |_| {
            Ok(how.rule(source))
        })
    }

    /// [`Tensor::scatter_reduce_`] of a row-major copy.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{Reduce, Tensor};
    /// let (x, index) = (Tensor::new([2i64, 2])?, Tensor::new([0i64, 0])?);
    /// let y = x.scatter_reduce(0, &index, &Tensor::new([3i64, 5])?, Reduce::Prod, false)?;
    /// assert_eq!(y.to_vec::<i64>()?, [15, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_reduce<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        source: impl Into<Operand<'a>>,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<Tensor> {
        let how = Reduced {
            dim,
            reduce,
            include_self,
        };
        let source = source.into();
        let read = source.tensor().map(|t| read(t, index)).transpose()?;
        let source = read.as_ref().map_or(source, Operand::Tensor);
        let mut inputs = vec![self];
        inputs.extend(&read);
        let out = self.as_view().copy(MemoryFormat::Contiguous)?;
        how.run(&out, index, source.arg())?;
        record(out, &inputs, |r, _| {
            how.save(r, self, index, read.as_ref())?;
            Ok(how.rule(source))
        })
    }
}

/// How elements are reduced.
#[derive(Clone, Copy)]
struct Reduced {
    dim: isize,
    reduce: Reduce,
    include_self: bool,
}

impl Reduced {
    #[track_caller]
    fn run(self, target: &View, index: &Tensor, source: Arg<'_>) -> Result<()> {
        let index = index.as_view();
        target.scatter_reduce_(self.dim, index, source, self.reduce, self.include_self)
    }

    /// Whether the derivative reads what was reduced.
    fn reads(self) -> bool {
        !matches!(self.reduce, Reduce::Sum | Reduce::Mean)
    }

    fn save(
        self,
        r: &mut Recorder,
        own: &Tensor,
        index: &Tensor,
        source: Option<&Tensor>,
    ) -> Result<()> {
        r.save_view(index.as_view())?;
        if self.reads() {
            r.save(own)?;
            source.map_or(Ok(()), |source| r.save(source))?;
        }
        Ok(())
    }

    /// The result again.
    fn again(self, own: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        own.scatter_reduce(self.dim, index, source, self.reduce, self.include_self)
    }

    fn rule(self, source: Operand<'_>) -> impl Rule + use<> {
        let number = match source {
            Operand::Tensor(_) => None,
            Operand::Number(n) => Some(n),
        };
        rule(move |b| {
            let (g, index) = (b.grad()?, b.saved(0)?);
            if index.numel() == 0 {
                let nothing = b.want(1, || g.new_zeros(b.sizes(1)))?;
                return two(Some(g), nothing);
            }
            let source = || match number {
                Some(n) => Tensor::full(index.shape(), n, b.saved(1)?.dtype(), &index.device()),
                None => b.saved(2),
            };
            let [own, written] = match self.reduce {
                Reduce::Sum => self.spread(b, &g, &g, &index)?,
                Reduce::Mean => {
                    let count = if self.include_self {
                        g.ones_like(None)?
                    } else {
                        g.zeros_like(None)?
                    };
                    count.scatter_add_(self.dim, &index, &g.new_ones(index.shape())?)?;
                    let each = g.div(&count.clamp_min(1)?)?;
                    self.spread(b, &each, &each, &index)?
                }
                Reduce::Prod => self.of_product(b, &g, &index, &source()?)?,
                Reduce::Amax | Reduce::Amin => self.of_extreme(b, &g, &index, &source()?)?,
            };
            let own = match own {
                Some(own) if !self.include_self => Some(own.scatter(self.dim, &index, 0)?),
                own => own,
            };
            two(own, written)
        })
    }

    /// These gradients, where they are wanted: of the tensor, and of what lies where the index says.
    fn spread(
        self,
        b: &Back<'_>,
        own: &Tensor,
        places: &Tensor,
        index: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        Ok([
            b.want(0, || Ok(own.clone()))?,
            b.want(1, || taken(b, places, self.dim, index))?,
        ])
    }

    /// Each factor gets the product of the others, also where one of them is zero.
    fn of_product(
        self,
        b: &Back<'_>,
        g: &Tensor,
        index: &Tensor,
        source: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let own = b.saved(1)?;
        let of_own = b.want(0, || {
            let filled = own.masked_fill(&own.eq(0)?, 1)?;
            g.mul(&self.again(&filled, index, source)?)?.div(&filled)
        })?;
        let written = b.want(1, || {
            let zero = source.eq(0)?;
            let zeros = g.zeros_like(None)?;
            zeros.scatter_add_(self.dim, index, &zero.to(g.dtype())?)?;
            let alone = zero.logical_and(&zeros.gather(self.dim, index)?.eq(1)?)?;
            let others = self.again(&own, index, &source.masked_fill(&alone, 1)?)?;
            let without = g.mul(&others)?.gather(self.dim, index)?;
            let result = self.again(&own, index, source)?;
            let shared = g.mul(&result)?.gather(self.dim, index)?;
            let divided = shared.div(&source.masked_fill(&zero, 1)?)?;
            without.r#where(&alone, &divided)
        })?;
        Ok([of_own, written])
    }

    /// Equal extremes share the gradient evenly.
    fn of_extreme(
        self,
        b: &Back<'_>,
        g: &Tensor,
        index: &Tensor,
        source: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let own = b.saved(1)?;
        let result = self.again(&own, index, source)?;
        let is_own = own.eq(&result)?.to(g.dtype())?;
        let is_source = source.eq(&result.gather(self.dim, index)?)?.to(g.dtype())?;
        let count = is_own.scatter_add(self.dim, index, &is_source)?;
        let each = g.div(&count)?;
        let of_own = b.want(0, || each.mul(&is_own))?;
        let written = b.want(1, || each.gather(self.dim, index)?.mul(&is_source))?;
        Ok([of_own, written])
    }
}
