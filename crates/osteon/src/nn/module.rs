//! What has parameters: modules, their parts, and what can be done with all of them.

use super::info::extends;
use super::{Info, StateDict, Unmatched, state};
use crate::{Result, Tensor};
use std::path::Path;
use std::sync::Arc;

/// Something that has parameters, buffers or such parts: a layer, a model, a part of one.
///
/// One method says all: [`Module::visit`] names the parts. [`nn::module!`](crate::nn::module) writes it; by hand it is a
/// line for each part. A [`Tensor`] is the smallest module, a parameter; options, vectors and boxes of
/// modules are modules; numbers are modules without parts.
///
/// ```
/// use osteon::nn::{Linear, Module, Parts};
/// use osteon::{Result, Tensor};
///
/// struct Gated {
///     inner: Linear,
///     gain: Tensor,
/// }
///
/// impl Module for Gated {
///     fn visit(&self, parts: &mut Parts<'_>) {
///         parts.add("inner", &self.inner);
///         parts.add("gain", &self.gain);
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let model = Gated { inner: Linear::new(3, 2)?, gain: Tensor::new([1f32, 1.0])? };
/// let names: Vec<_> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["inner.weight", "inner.bias", "gain"]);
/// assert_eq!(model.num_parameters(), 10);
/// # Ok(())
/// # }
/// ```
pub trait Module: Send + Sync {
    /// Shows each part with its name, always the same ones.
    fn visit(&self, parts: &mut Parts<'_>);

    /// The type's name, which [`Module::summary`] shows; empty for what has no line of its own there.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// assert_eq!(Linear::new(2, 2)?.kind(), "Linear");
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn kind(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Every parameter with its dotted name. A parameter that several parts share comes once, under its first name.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let (name, weight) = Linear::new(3, 2)?.named_parameters().remove(0);
    /// assert_eq!((&*name, weight.shape(), weight.requires_grad()), ("weight", &[2, 3][..], true));
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut found: Vec<(String, Tensor)> = Vec::new();
        walk(self, &mut |name, part| {
            if let Part::Parameter(tensor) = part
                && !found.iter().any(|(_, known)| known.is(tensor))
            {
                found.push((name.to_owned(), tensor.clone()));
            }
        });
        found
    }

    /// Every parameter once: what an optimiser takes.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// assert_eq!(Linear::new(3, 2)?.parameters().len(), 2);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters()
            .into_iter()
            .map(|(_, t)| t)
            .collect()
    }

    /// Every buffer with its dotted name: tensors that belong to the module's state but are not trained.
    ///
    /// ```
    /// use osteon::nn::{BatchNorm1d, Module};
    /// let names: Vec<_> = BatchNorm1d::new(4)?.named_buffers().into_iter().map(|(n, _)| n).collect();
    /// assert_eq!(names, ["running_mean", "running_var", "num_batches_tracked"]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        let mut found = Vec::new();
        walk(self, &mut |name, part| {
            if let Part::Buffer(tensor) = part {
                found.push((name.to_owned(), tensor.clone()));
            }
        });
        found
    }

    /// The number of elements of all parameters.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// assert_eq!(Linear::new(3, 2)?.num_parameters(), 3 * 2 + 2);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(Tensor::numel).sum()
    }

    /// Switches the module and all its parts to training: dropout drops, batch norm gathers statistics.
    /// Modules begin so.
    ///
    /// ```
    /// use osteon::{Tensor, nn::{Dropout, Layer, Module}};
    /// let (dropout, x) = (Dropout::new(1.0), Tensor::new([1f32])?);
    /// dropout.eval();
    /// assert_eq!(dropout.forward(&x)?.item::<f32>()?, 1.0);
    /// dropout.train();
    /// assert_eq!(dropout.forward(&x)?.item::<f32>()?, 0.0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn train(&self) {
        set_training(self, true);
    }

    /// Switches the module and all its parts to evaluation.
    ///
    /// ```
    /// use osteon::{Tensor, nn::{BatchNorm1d, Layer, Module}};
    /// let norm = BatchNorm1d::new(1)?;
    /// norm.eval(); // running statistics: a mean of 0, a variance of 1
    /// assert!((norm.forward(&Tensor::new([[3f32]])?)?.item::<f32>()? - 3.0).abs() < 1e-4);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn eval(&self) {
        set_training(self, false);
    }

    /// Says for every parameter whether its gradient is wanted; `false` freezes the module.
    ///
    /// # Errors
    /// A parameter that is the result of a recorded operation.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let frozen = Linear::new(3, 2)?;
    /// frozen.requires_grad_(false)?;
    /// assert!(!frozen.weight.requires_grad());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        let each = |p: &Tensor| p.requires_grad_(requires_grad);
        self.parameters().iter().try_for_each(each)
    }

    /// Lets go of every parameter's gradient.
    ///
    /// # Errors
    /// None; it returns what [`Tensor::set_grad`] does.
    ///
    /// ```
    /// use osteon::{Tensor, nn::{Layer, Linear, Module}};
    /// let layer = Linear::new(1, 1)?;
    /// layer.weight.set_grad(Some(&Tensor::new([[1f32]])?))?;
    /// layer.zero_grad()?;
    /// assert!(layer.weight.grad().is_none());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn zero_grad(&self) -> Result<()> {
        self.parameters().iter().try_for_each(|p| p.set_grad(None))
    }

    /// Every parameter and buffer by its dotted name: handles, not copies. A tensor that several parts share is there
    /// under each of its names.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2)?;
    /// assert!(layer.state_dict()["weight"].is(&layer.weight));
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn state_dict(&self) -> StateDict {
        state::entries(self).into_iter().collect()
    }

    /// Copies tensors into the parameters and buffers of these names, cast to their dtypes. Parts that share a tensor
    /// keep sharing it; one of its names is enough.
    ///
    /// # Errors
    /// Names that are missing, or that the module does not have; other shapes; two names of one tensor with different
    /// values; one name of two tensors; tensors that cannot be written: all of it is named, and nothing has been changed then.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let (from, to) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    /// to.load_state_dict(&from.state_dict())?;
    /// assert!(to.weight.equal(&from.weight)?);
    /// let error = Linear::new(4, 2)?.load_state_dict(&from.state_dict()).unwrap_err();
    /// assert!(error.to_string().contains("weight has shape [2, 4] here and [2, 3] there"));
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        state::load(self, state, true).map(drop)
    }

    /// [`Module::load_state_dict`] for what both sides have, and the names that only one has.
    ///
    /// # Errors
    /// As [`Module::load_state_dict`], names apart.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let (from, to) = (Linear::new(3, 2)?.without_bias(), Linear::new(3, 2)?);
    /// assert_eq!(to.load_matching(&from.state_dict())?.missing, ["bias"]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn load_matching(&self, state: &StateDict) -> Result<Unmatched> {
        state::load(self, state, false)
    }

    /// Writes [`Module::state_dict`] to a file, as [`osteon::save`](crate::save): `.pt` or `.safetensors`. A tensor of
    /// several names is written once: under all of them in `.pt`, else under its first.
    ///
    /// # Errors
    /// As [`osteon::save`](crate::save).
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// let (layer, other) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    /// let path = std::env::temp_dir().join(format!("osteon-module-{}.safetensors", std::process::id()));
    /// layer.save(&path)?;
    /// other.load(&path)?;
    /// assert!(other.weight.equal(&layer.weight)?);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    fn save(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        state::save(self, path.as_ref())
    }

    /// [`Module::load_state_dict`] of a file, as [`osteon::load`](crate::load) reads it.
    ///
    /// # Errors
    /// As both.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// assert!(Linear::new(3, 2)?.load("no such file.pt").is_err());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    fn load(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict(&crate::load(path)?)
    }

    /// The module as text: a line for each part with its type and the shapes of its parameters.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module, Sequential};
    /// let model = Sequential::new().then(Linear::new(3, 2)?);
    /// assert_eq!(model.summary(), "Sequential (8 parameters)\n  0: Linear, weight [2, 3], bias [2]\n");
    /// # Ok::<(), osteon::Error>(())
    /// ```
    fn summary(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{} ({} parameters)", self.kind(), self.num_parameters());
        let mut line = String::new();
        walk(self, &mut |path, part| {
            let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
            let indent = 2 * path.split('.').count();
            // Writing to a string cannot fail.
            let _ = match part {
                Part::Parameter(t) | Part::Buffer(t) if *line == *outer => {
                    write!(text, ", {name} {:?}", t.shape())
                }
                Part::Parameter(t) | Part::Buffer(t) => {
                    write!(text, "\n{:indent$}{name} {:?}", "", t.shape())
                }
                Part::Module(kind) => {
                    path.clone_into(&mut line);
                    write!(text, "\n{:indent$}{name}: {kind}", "")
                }
                Part::Info(_) => Ok(()),
            };
        });
        text.push('\n');
        text
    }
}

/// A module that makes one tensor of one tensor: what [`Sequential`](crate::nn::Sequential) chains.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, Linear, Sequential, func}};
/// let model = Sequential::new()
///     .then(Linear::new(4, 8)?)
///     .then(func(Tensor::relu))
///     .then(Linear::new(8, 2)?);
/// assert_eq!(model.forward(&Tensor::new([[0f32; 4]; 3])?)?.shape(), [3, 2]);
/// # Ok::<(), osteon::Error>(())
/// ```
pub trait Layer: Module {
    /// The module's result.
    ///
    /// # Errors
    /// Those of its operations.
    fn forward(&self, input: &Tensor) -> Result<Tensor>;
}

/// Where a module shows its parts; see [`Module::visit`].
pub struct Parts<'a> {
    path: String,
    see: &'a mut dyn FnMut(&str, Part<'_>),
}

impl std::fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("path", &self.path).finish()
    }
}

/// A part of a module.
pub(crate) enum Part<'a> {
    /// A module inside it, by its type's name.
    Module(&'static str),
    Parameter(&'a Tensor),
    Buffer(&'a Tensor),
    Info(&'a Info),
}

impl Parts<'_> {
    /// A part: a module, or a tensor, which is a parameter.
    ///
    /// ```
    /// use osteon::{Tensor, nn::{Module, Parts}};
    /// struct Scale(Tensor);
    /// impl Module for Scale {
    ///     fn visit(&self, parts: &mut Parts<'_>) {
    ///         parts.add("scale", &self.0);
    ///     }
    /// }
    /// assert_eq!(Scale(Tensor::new([1f32])?).named_parameters()[0].0, "scale");
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn add<M: Module + ?Sized>(&mut self, name: &str, part: &M) {
        self.within(name, |parts| {
            let kind = part.kind();
            if !kind.is_empty() {
                (parts.see)(&parts.path, Part::Module(kind));
            }
            part.visit(parts);
        });
    }

    /// A tensor that belongs to the module's state but is not trained.
    ///
    /// ```
    /// use osteon::{Tensor, nn::{Module, Parts}};
    /// struct Mean(Tensor);
    /// impl Module for Mean {
    ///     fn visit(&self, parts: &mut Parts<'_>) {
    ///         parts.buffer("mean", &self.0);
    ///     }
    /// }
    /// assert_eq!(Mean(Tensor::new([1f32])?).state_dict().len(), 1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn buffer(&mut self, name: &str, tensor: &Tensor) {
        self.within(name, |parts| (parts.see)(&parts.path, Part::Buffer(tensor)));
    }

    /// What the module knows of itself, to be told its name and mode.
    ///
    /// ```
    /// use osteon::nn::{Info, Module, Parts};
    /// struct Quiet(Info);
    /// impl Module for Quiet {
    ///     fn visit(&self, parts: &mut Parts<'_>) {
    ///         parts.info(&self.0);
    ///     }
    /// }
    /// let quiet = Quiet(Info::default());
    /// quiet.eval();
    /// assert!(!quiet.0.is_training());
    /// ```
    pub fn info(&mut self, info: &Info) {
        (self.see)(&self.path, Part::Info(info));
    }

    fn within(&mut self, name: &str, f: impl FnOnce(&mut Self)) {
        let outer = self.path.len();
        if outer > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        f(self);
        self.path.truncate(outer);
    }
}

/// Shows all parts of a module, at any depth, and gives them their names: labels of tensors, names of scopes. One that
/// has a name from a model further out keeps it.
pub(crate) fn walk<M: Module + ?Sized>(module: &M, see: &mut dyn FnMut(&str, Part<'_>)) {
    let mut named = |path: &str, part: Part<'_>| {
        match &part {
            Part::Info(info) => info.set_path(path),
            Part::Parameter(tensor) | Part::Buffer(tensor) => {
                if tensor.name().is_none_or(|own| extends(path, &own)) {
                    tensor.named(path);
                }
            }
            Part::Module(_) => {}
        }
        see(path, part);
    };
    let mut parts = Parts {
        path: String::new(),
        see: &mut named,
    };
    module.visit(&mut parts);
}

/// Gives every part its name: the labels of parameters and buffers in every report, and the scopes of modules. The
/// modules of this crate and of [`nn::module!`](crate::nn::module) do so when they are made, and so does every method that lists
/// parts. A part that has a name from a model further out keeps it, and so does a tensor that was named by hand.
///
/// ```
/// use osteon::{Tensor, nn::{self, Module, Parts}};
/// struct Scale(Tensor);
/// impl Module for Scale {
///     fn visit(&self, parts: &mut Parts<'_>) {
///         parts.add("scale", &self.0);
///     }
/// }
/// let module = Scale(Tensor::new([1f32])?);
/// nn::name_parts(&module);
/// assert_eq!(module.0.name().as_deref(), Some("scale"));
/// # Ok::<(), osteon::Error>(())
/// ```
pub fn name_parts<M: Module + ?Sized>(module: &M) {
    walk(module, &mut |_, _| ());
}

/// A new module, its parts named.
pub(crate) fn built<M: Module>(module: M) -> M {
    name_parts(&module);
    module
}

fn set_training<M: Module + ?Sized>(module: &M, training: bool) {
    walk(module, &mut |_, part| {
        if let Part::Info(info) = part {
            info.set_training(training);
        }
    });
}

impl Module for Tensor {
    fn visit(&self, parts: &mut Parts<'_>) {
        (parts.see)(&parts.path, Part::Parameter(self));
    }

    fn kind(&self) -> &'static str {
        ""
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, parts: &mut Parts<'_>) {
        if let Some(module) = self {
            module.visit(parts);
        }
    }

    fn kind(&self) -> &'static str {
        self.as_ref().map_or("", Module::kind)
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, parts: &mut Parts<'_>) {
        for (i, module) in self.iter().enumerate() {
            parts.add(&i.to_string(), module);
        }
    }
}

macro_rules! transparent {
    ($($pointer:ident)*) => { $(
        impl<M: Module + ?Sized> Module for $pointer<M> {
            fn visit(&self, parts: &mut Parts<'_>) {
                (**self).visit(parts);
            }

            fn kind(&self) -> &'static str {
                (**self).kind()
            }
        }

        impl<L: Layer + ?Sized> Layer for $pointer<L> {
            #[track_caller]
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                (**self).forward(input)
            }
        }
    )* };
}

transparent!(Box Arc);

macro_rules! without_parts {
    ($($ty:ty)*) => { $(
        impl Module for $ty {
            fn visit(&self, _: &mut Parts<'_>) {}

            fn kind(&self) -> &'static str {
                ""
            }
        }
    )* };
}

without_parts!(bool usize isize i64 f32 f64);

/// A function as a layer; see [`func`].
#[derive(Clone, Copy)]
pub struct Func<F>(F);

impl<F> std::fmt::Debug for Func<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Func")
    }
}

/// A function or closure as a layer.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, Sequential, func}};
/// let model = Sequential::new().then(func(Tensor::relu)).then(func(|x| x.mul(0.5)));
/// assert_eq!(model.forward(&Tensor::new([-1f32, 4.0])?)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), osteon::Error>(())
/// ```
pub fn func<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync>(f: F) -> Func<F> {
    Func(f)
}

impl<F: Send + Sync> Module for Func<F> {
    fn visit(&self, _: &mut Parts<'_>) {}
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync> Layer for Func<F> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (self.0)(input)
    }
}

/// A tensor as a parameter: the same one, with its gradient wanted.
///
/// # Errors
/// A tensor without derivatives: integers.
///
/// ```
/// use osteon::{Tensor, nn};
/// assert!(nn::parameter(Tensor::new([1f32])?)?.requires_grad());
/// # Ok::<(), osteon::Error>(())
/// ```
pub fn parameter(tensor: Tensor) -> Result<Tensor> {
    tensor.requires_grad_(true)?;
    Ok(tensor)
}
