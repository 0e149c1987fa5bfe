//! Functions of users with derivatives of their own.

use crate::Tensor;
use crate::graph::{Back, CUSTOM, Edge, Geometry, Grads, Recorder, rule, wanted};
use crate::no_grad;
use osteon_memory::here;
use osteon_spec::{Error, Kind, Result};

/// An operation with a derivative of its own, of `IN` tensors, with `OUT` results: PyTorch's `autograd.Function`.
///
/// ```
/// # use osteon_autograd::{BackwardContext, ForwardContext, Function, Tensor};
/// # use osteon_spec::Result;
/// /// `x³`, with a derivative that keeps `x²`.
/// struct Cube;
///
/// impl Function<1> for Cube {
///     fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
///         let square = x.mul(x)?;
///         let cube = square.mul(x)?;
///         ctx.save(&square);
///         Ok([cube])
///     }
///
///     fn backward(&self, ctx: &BackwardContext<'_>, [grad]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
///         Ok([Some(grad.mul(&ctx.saved(0)?)?.mul(3)?)])
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let x = Tensor::new([2f64])?;
/// x.requires_grad_(true)?;
/// let [y] = Cube.apply([&x])?;
/// y.backward()?;
/// assert_eq!((y.item::<f64>()?, x.grad().unwrap().item::<f64>()?), (8.0, 12.0));
/// # Ok(())
/// # }
/// ```
pub trait Function<const IN: usize, const OUT: usize = 1>: Send + Sync {
    /// The results. Runs without recording; says what the derivative needs. Must not write the inputs in place.
    ///
    /// # Errors
    /// Those of its operations.
    fn forward(&self, ctx: &mut ForwardContext, inputs: [&Tensor; IN]) -> Result<[Tensor; OUT]>;

    /// The gradients of the inputs from those of the results (zeros where none flowed); `None` for an input that none flows to.
    /// Runs recorded where gradients of gradients are wanted: what is saved has its history then.
    ///
    /// # Errors
    /// Those of its operations.
    fn backward(
        &self,
        ctx: &BackwardContext<'_>,
        grads: [Tensor; OUT],
    ) -> Result<[Option<Tensor>; IN]>;

    /// Its name in reports and messages: the type's.
    ///
    /// ```
    /// # use osteon_autograd::{BackwardContext, ForwardContext, Function, Tensor};
    /// # use osteon_spec::Result;
    /// struct Same;
    /// impl Function<1> for Same {
    ///     fn forward(&self, _: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
    ///         Ok([x.clone()])
    ///     }
    ///     fn backward(&self, _: &BackwardContext<'_>, [grad]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
    ///         Ok([Some(grad)])
    ///     }
    /// }
    /// assert_eq!(Same.name(), "Same");
    /// ```
    fn name(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Runs the function, and records it where an input requires a gradient.
    ///
    /// # Errors
    /// Those of [`Function::forward`]; an input that it wrote in place.
    ///
    /// ```
    /// # use osteon_autograd::{BackwardContext, ForwardContext, Function, Tensor};
    /// # use osteon_spec::Result;
    /// /// Turns gradients round: the forward pass does nothing.
    /// struct Reverse;
    /// impl Function<1> for Reverse {
    ///     fn forward(&self, _: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
    ///         Ok([x.clone()])
    ///     }
    ///     fn backward(&self, _: &BackwardContext<'_>, [grad]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
    ///         Ok([Some(grad.neg()?)])
    ///     }
    /// }
    /// # fn main() -> Result<()> {
    /// let x = Tensor::new([2f64])?;
    /// x.requires_grad_(true)?;
    /// let [y] = Reverse.apply([&x])?;
    /// y.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().item::<f64>()?, -1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    fn apply(self, inputs: [&Tensor; IN]) -> Result<[Tensor; OUT]>
    where
        Self: Sized + 'static,
    {
        let (name, site) = (self.name(), here());
        let named = |e: Error| e.op(name);
        let records = wanted(&inputs);
        let mut ctx = ForwardContext {
            needs: inputs.map(Tensor::requires_grad).to_vec(),
            saved: Vec::new(),
            constant: vec![false; OUT],
        };
        let versions = inputs.map(Tensor::version);
        let results = no_grad(|| self.forward(&mut ctx, inputs)).map_err(named)?;
        if let Some(i) = (0..IN).find(|&i| inputs[i].version() != versions[i]) {
            let message = format!("wrote its input {i} in place; it must write a copy()");
            return Err(named(Error::new(Kind::Autograd, message)));
        }
        // A result that somebody else holds (an input, a parameter, what it returned before), or that comes twice, gets a
        // place of its own in the graph; theirs stays what it is.
        let is_old = |t: &Tensor| t.requires_grad() || inputs.iter().any(|i| i.is(t));
        let place = |t: &Tensor| results.iter().position(|out| out.is(t));
        let is_fresh = |k: usize, out: &Tensor| {
            let is_saved = ctx.saved.iter().any(|t| t.is(out));
            let is_first = place(out) == Some(k);
            is_first && (out.as_view().viewer().is_unique() || is_saved && !is_old(out))
        };
        let fresh = results.iter().enumerate().map(|(k, out)| {
            if is_fresh(k, out) {
                Ok(out.clone())
            } else {
                no_grad(|| out.alias())
            }
        });
        let fresh = fresh.collect::<Result<Vec<_>>>().map_err(named)?;
        let outputs = <[Tensor; OUT]>::try_from(fresh)
            .map_err(|_| named(Error::new(Kind::Autograd, "a result was lost")))?;
        if !records {
            return Ok(outputs);
        }
        let mut recorder = Recorder::new(name, site, &inputs)?;
        for tensor in &ctx.saved {
            match place(tensor).filter(|_| !is_old(tensor)) {
                Some(k) => recorder.save_output_of(tensor.as_view(), k)?,
                None => recorder.save(tensor)?,
            }
        }
        let geometries = outputs.iter().map(Geometry::of).collect();
        let derivative = rule(move |b| backward(&self, b));
        let node = recorder.node(geometries, Box::new(derivative));
        for (k, out) in outputs.iter().enumerate() {
            let differentiable = out.dtype().is_float() || out.dtype().is_complex();
            if differentiable && !ctx.constant[k] {
                let viewer = out.as_view().viewer();
                if viewer.base().get().is_some() {
                    viewer.mark(CUSTOM);
                }
                out.meta_or_new()
                    .set_edge(Some(Edge::Node(node.clone(), k as u32)), None);
            }
        }
        Ok(outputs)
    }
}

fn backward<const IN: usize, const OUT: usize>(
    function: &impl Function<IN, OUT>,
    back: &Back<'_>,
) -> Result<Grads> {
    let grads = (0..OUT)
        .map(|k| back.grad_or_zeros(k))
        .collect::<Result<Vec<_>>>()?;
    let grads = <[Tensor; OUT]>::try_from(grads)
        .map_err(|_| Error::new(Kind::Autograd, "a gradient was lost"))?;
    let found = function.backward(&BackwardContext { back }, grads)?;
    Ok(found.into_iter().collect())
}

/// What a function says of itself while it runs.
#[derive(Debug)]
pub struct ForwardContext {
    needs: Vec<bool>,
    saved: Vec<Tensor>,
    constant: Vec<bool>,
}

impl ForwardContext {
    /// Saves a tensor for the derivative: an input, a result, or any other. It is checked then that nobody wrote it.
    ///
    /// ```
    /// # use osteon_autograd::{BackwardContext, ForwardContext, Function, Tensor};
    /// # use osteon_spec::Result;
    /// struct Exp;
    /// impl Function<1> for Exp {
    ///     fn forward(&self, ctx: &mut ForwardContext, [x]: [&Tensor; 1]) -> Result<[Tensor; 1]> {
    ///         let y = x.exp()?;
    ///         ctx.save(&y);
    ///         Ok([y])
    ///     }
    ///     fn backward(&self, ctx: &BackwardContext<'_>, [grad]: [Tensor; 1]) -> Result<[Option<Tensor>; 1]> {
    ///         Ok([Some(grad.mul(&ctx.saved(0)?)?)])
    ///     }
    /// }
    /// let x = Tensor::new([0f64])?;
    /// x.requires_grad_(true)?;
    /// let [y] = Exp.apply([&x])?;
    /// y.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().item::<f64>()?, 1.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn save(&mut self, tensor: &Tensor) {
        self.saved.push(tensor.clone());
    }

    /// Whether an input requires a gradient: else what its gradient would need, need not be saved.
    ///
    /// ```
    /// # use osteon_autograd::ForwardContext;
    /// fn needs_second(ctx: &ForwardContext) -> bool {
    ///     ctx.needs(1)
    /// }
    /// ```
    pub fn needs(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or(false)
    }

    /// Says that a result has no derivative.
    ///
    /// ```
    /// # use osteon_autograd::ForwardContext;
    /// fn second_is_constant(ctx: &mut ForwardContext) {
    ///     ctx.mark_non_differentiable(1);
    /// }
    /// ```
    pub fn mark_non_differentiable(&mut self, output: usize) {
        if let Some(constant) = self.constant.get_mut(output) {
            *constant = true;
        }
    }
}

/// What a function finds in its backward pass.
#[derive(Clone, Copy)]
pub struct BackwardContext<'a> {
    back: &'a Back<'a>,
}

impl std::fmt::Debug for BackwardContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackwardContext")
    }
}

impl BackwardContext<'_> {
    /// The saved tensor of this number.
    ///
    /// # Errors
    /// A tensor that was written in place since, or freed by an earlier backward pass; no such number.
    ///
    /// ```
    /// # use osteon_autograd::{BackwardContext, Tensor};
    /// # use osteon_spec::Result;
    /// fn gradient(ctx: &BackwardContext<'_>, grad: &Tensor) -> Result<Tensor> {
    ///     grad.mul(&ctx.saved(0)?)
    /// }
    /// ```
    pub fn saved(&self, number: usize) -> Result<Tensor> {
        self.back.saved(number)
    }

    /// Whether a gradient of this input is wanted: else it need not be computed.
    ///
    /// ```
    /// # use osteon_autograd::{BackwardContext, Tensor};
    /// # use osteon_spec::Result;
    /// fn gradient(ctx: &BackwardContext<'_>, grad: &Tensor) -> Result<Option<Tensor>> {
    ///     ctx.needs(0).then(|| grad.neg()).transpose()
    /// }
    /// ```
    pub fn needs(&self, input: usize) -> bool {
        self.back.needs(input)
    }
}
