//! Initial values of parameters: PyTorch's `nn.init`. Each function writes a tensor in place without recording it, with
//! random numbers from [`manual_seed`](crate::manual_seed)'s stream.

use crate::{DType, Device, Error, Kind, Result, Tensor, no_grad};
use std::cell::Cell;

thread_local! {
    static DEFAULTS: Cell<(DType, Device)> = const { Cell::new((DType::F32, Device::cpu())) };
}

/// The dtype and device of new parameters on this thread: those of [`build_in`].
///
/// ```
/// use osteon::{DType, Device, nn};
/// assert_eq!(nn::defaults(), (DType::F32, Device::cpu()));
/// ```
pub fn defaults() -> (DType, Device) {
    DEFAULTS.get()
}

/// Runs `f`, in which new modules have parameters of this dtype on this device, instead of `float32` on the CPU.
/// On the device `meta` a model of any size takes no memory: its shapes can be asked, and what it would take.
///
/// ```
/// use osteon::{DType, Device, nn::{self, Linear, Module}};
/// let big = nn::build_in(DType::BF16, &Device::meta(), || Linear::new(1 << 20, 1 << 20))?;
/// assert_eq!(big.weight.nbytes(), 2 << 40);
/// # Ok::<(), osteon::Error>(())
/// ```
pub fn build_in<R>(dtype: DType, device: &Device, f: impl FnOnce() -> R) -> R {
    struct Restore((DType, Device));
    impl Drop for Restore {
        fn drop(&mut self) {
            DEFAULTS.set(self.0);
        }
    }
    let _restore = Restore(DEFAULTS.replace((dtype, *device)));
    f()
}

/// A tensor for a parameter that is about to be initialised.
#[track_caller]
pub(crate) fn empty(shape: impl AsRef<[usize]>) -> Result<Tensor> {
    let (dtype, device) = defaults();
    Tensor::empty(shape, dtype, &device)
}

/// A tensor for a parameter with one number everywhere.
#[track_caller]
pub(crate) fn full(shape: &[usize], value: f64) -> Result<Tensor> {
    let (dtype, device) = defaults();
    Tensor::full(shape, value, dtype, &device)
}

/// A bias of PyTorch's linear layers and convolutions: uniform within `±1/√inputs`.
#[track_caller]
pub(crate) fn bias(outputs: usize, inputs: usize) -> Result<Tensor> {
    let bias = empty([outputs])?;
    if inputs > 0 {
        let bound = 1.0 / (inputs as f64).sqrt();
        uniform_(&bias, -bound, bound)?;
    }
    Ok(bias)
}

/// What an activation does to the size of numbers on their way; see [`Gain::value`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// No activation, or `sigmoid`: 1.
    Linear,
    /// `tanh`: 5/3.
    Tanh,
    /// `relu`: √2.
    Relu,
    /// `leaky_relu` with this slope: √(2 / (1 + slope²)).
    LeakyRelu(f64),
    /// `selu`: 3/4.
    Selu,
}

impl Gain {
    /// The factor by which initial weights make up for it: PyTorch's `calculate_gain`.
    ///
    /// ```
    /// use osteon::nn::init::Gain;
    /// assert_eq!(Gain::Relu.value(), 2f64.sqrt());
    /// ```
    pub fn value(self) -> f64 {
        match self {
            Gain::Linear => 1.0,
            Gain::Tanh => 5.0 / 3.0,
            Gain::Relu => 2f64.sqrt(),
            Gain::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Gain::Selu => 0.75,
        }
    }
}

/// Which numbers are kept near 1 on their way through a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Those of the forward pass: counts inputs.
    #[default]
    In,
    /// Those of the backward pass: counts outputs.
    Out,
}

/// Inputs that an output sees, and outputs that an input reaches.
fn fans(tensor: &Tensor) -> Result<(f64, f64)> {
    match tensor.shape() {
        [outputs, inputs, window @ ..] => {
            let window: f64 = window.iter().map(|&n| n as f64).product();
            Ok((*inputs as f64 * window, *outputs as f64 * window))
        }
        shape => Err(Error::new(
            Kind::Shape,
            format!(
                "inputs and outputs are counted for weights of at least 2 dims, got shape {shape:?}"
            ),
        )),
    }
}

/// Writes a tensor outside of the graph, unless it has no elements.
fn write(op: &'static str, tensor: &Tensor, f: impl FnOnce() -> Result<()>) -> Result<()> {
    if tensor.numel() == 0 {
        return Ok(());
    }
    no_grad(f).map_err(|e| e.op(op))
}

/// Uniform numbers from `from` to `to`.
///
/// # Errors
/// Integers; bounds that cross; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 4]; 4])?;
/// init::uniform_(&w, 1.0, 2.0)?;
/// assert!(w.min()?.item::<f32>()? >= 1.0);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn uniform_(tensor: &Tensor, from: f64, to: f64) -> Result<()> {
    no_grad(|| tensor.uniform_(from, to))
}

/// Normal numbers.
///
/// # Errors
/// Integers; a negative deviation; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 4]; 4])?;
/// init::normal_(&w, 5.0, 0.01)?;
/// assert!(w.min()?.item::<f32>()? > 4.0);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn normal_(tensor: &Tensor, mean: f64, std: f64) -> Result<()> {
    no_grad(|| tensor.normal_(mean, std))
}

/// Normal numbers of which those beyond `a` and `b` are drawn anew.
///
/// # Errors
/// As [`normal_`]; bounds that cross.
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 4]; 4])?;
/// init::trunc_normal_(&w, 0.0, 1.0, -0.5, 2.0)?;
/// assert!(w.min()?.item::<f32>()? >= -0.5);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn trunc_normal_(tensor: &Tensor, mean: f64, std: f64, a: f64, b: f64) -> Result<()> {
    let op = "trunc_normal_";
    if !(a <= b && std >= 0.0 && mean.is_finite()) {
        let message =
            format!("no normal numbers of mean {mean} and deviation {std} from {a} to {b}");
        return Err(Error::new(Kind::Value, message).op(op));
    }
    write(op, tensor, || {
        // The distribution function's inverse, of uniform numbers between its values at the bounds.
        let at = |x: f64| {
            Tensor::new((x - mean) / std / 2f64.sqrt())?
                .erf()?
                .item::<f64>()
        };
        tensor.uniform_(at(a)?, at(b)?)?;
        tensor.erfinv_()?;
        tensor.mul_(std * 2f64.sqrt())?;
        tensor.add_(mean)?;
        tensor.clamp_(a, b)
    })
}

/// One number everywhere.
///
/// # Errors
/// A number that the dtype cannot hold; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 2]; 2])?;
/// init::constant_(&w, 0.5)?;
/// assert_eq!(w.to_vec::<f32>()?, [0.5; 4]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn constant_(tensor: &Tensor, value: f64) -> Result<()> {
    no_grad(|| tensor.fill_(value))
}

/// The identity matrix.
///
/// # Errors
/// Other ranks than 2; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[5f32; 2]; 3])?;
/// init::eye_(&w)?;
/// assert_eq!(w.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn eye_(tensor: &Tensor) -> Result<()> {
    if tensor.dim() != 2 {
        let message = format!("expected 2 dims, got shape {:?}", tensor.shape());
        return Err(Error::new(Kind::Shape, message).op("eye_"));
    }
    write("eye_", tensor, || {
        tensor.zero_()?;
        tensor.diagonal(0, 0, 1)?.fill_(1)
    })
}

/// Glorot's uniform numbers: within `±gain·√(6 / (inputs + outputs))`.
///
/// # Errors
/// Fewer than 2 dims; as [`uniform_`].
///
/// ```
/// use osteon::{Tensor, nn::init::{self, Gain}};
/// let w = Tensor::new([[0f32; 3]; 3])?;
/// init::xavier_uniform_(&w, Gain::Linear)?;
/// assert!(w.abs()?.max()?.item::<f32>()? <= 1.0);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn xavier_uniform_(tensor: &Tensor, gain: Gain) -> Result<()> {
    let op = "xavier_uniform_";
    let (inputs, outputs) = fans(tensor).map_err(|e| e.op(op))?;
    let bound = gain.value() * (6.0 / (inputs + outputs)).sqrt();
    write(op, tensor, || tensor.uniform_(-bound, bound))
}

/// Glorot's normal numbers, of deviation `gain·√(2 / (inputs + outputs))`.
///
/// # Errors
/// Fewer than 2 dims; as [`normal_`].
///
/// ```
/// use osteon::{Tensor, nn::init::{self, Gain}};
/// let w = Tensor::new([[0f32; 3]; 3])?;
/// init::xavier_normal_(&w, Gain::Tanh)?;
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn xavier_normal_(tensor: &Tensor, gain: Gain) -> Result<()> {
    let op = "xavier_normal_";
    let (inputs, outputs) = fans(tensor).map_err(|e| e.op(op))?;
    let std = gain.value() * (2.0 / (inputs + outputs)).sqrt();
    write(op, tensor, || tensor.normal_(0.0, std))
}

fn he(op: &'static str, tensor: &Tensor, gain: Gain, fan: Fan) -> Result<f64> {
    let (inputs, outputs) = fans(tensor).map_err(|e| e.op(op))?;
    let count = if fan == Fan::In { inputs } else { outputs };
    Ok(gain.value() / count.sqrt())
}

/// He's uniform numbers for layers before a `leaky_relu` of slope `a` (0: `relu`): within `±√(6 / ((1 + a²)·inputs))`.
///
/// # Errors
/// Fewer than 2 dims; as [`uniform_`].
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 6]; 3])?;
/// init::kaiming_uniform_(&w, 0.0)?;
/// assert!(w.abs()?.max()?.item::<f32>()? <= 1.0);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn kaiming_uniform_(tensor: &Tensor, a: f64) -> Result<()> {
    kaiming_uniform_with_(tensor, Gain::LeakyRelu(a), Fan::In)
}

/// [`kaiming_uniform_`] for any activation, counting inputs or outputs.
///
/// # Errors
/// As [`kaiming_uniform_`].
///
/// ```
/// use osteon::{Tensor, nn::init::{self, Fan, Gain}};
/// let w = Tensor::new([[0f32; 6]; 3])?;
/// init::kaiming_uniform_with_(&w, Gain::Linear, Fan::Out)?;
/// assert!(w.abs()?.max()?.item::<f32>()? <= 1.0);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn kaiming_uniform_with_(tensor: &Tensor, gain: Gain, fan: Fan) -> Result<()> {
    let op = "kaiming_uniform_";
    let bound = 3f64.sqrt() * he(op, tensor, gain, fan)?;
    write(op, tensor, || tensor.uniform_(-bound, bound))
}

/// He's normal numbers for layers before a `leaky_relu` of slope `a`: of deviation `√(2 / ((1 + a²)·inputs))`.
///
/// # Errors
/// Fewer than 2 dims; as [`normal_`].
///
/// ```
/// use osteon::{Tensor, nn::init};
/// let w = Tensor::new([[0f32; 6]; 3])?;
/// init::kaiming_normal_(&w, 0.0)?;
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn kaiming_normal_(tensor: &Tensor, a: f64) -> Result<()> {
    kaiming_normal_with_(tensor, Gain::LeakyRelu(a), Fan::In)
}

/// [`kaiming_normal_`] for any activation, counting inputs or outputs.
///
/// # Errors
/// As [`kaiming_normal_`].
///
/// ```
/// use osteon::{Tensor, nn::init::{self, Fan, Gain}};
/// let w = Tensor::new([[0f32; 6]; 3])?;
/// init::kaiming_normal_with_(&w, Gain::Relu, Fan::Out)?;
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn kaiming_normal_with_(tensor: &Tensor, gain: Gain, fan: Fan) -> Result<()> {
    let op = "kaiming_normal_";
    let std = he(op, tensor, gain, fan)?;
    write(op, tensor, || tensor.normal_(0.0, std))
}

/// Rows, or columns where there are more rows than columns, that are orthogonal and as long as the gain says; dims
/// after the second belong to columns.
///
/// # Errors
/// Fewer than 2 dims; as [`normal_`]; out of memory.
///
/// ```
/// use osteon::{DType, Device, Tensor, nn::init::{self, Gain}};
/// let w = Tensor::empty([3, 5], DType::F64, &Device::cpu())?;
/// init::orthogonal_(&w, Gain::Linear)?;
/// let product = w.matmul(&w.t()?)?;
/// assert!(product.allclose(&Tensor::eye(3, DType::F64, &Device::cpu())?, 0.0, 1e-12)?);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn orthogonal_(tensor: &Tensor, gain: Gain) -> Result<()> {
    let op = "orthogonal_";
    fans(tensor).map_err(|e| e.op(op))?;
    if tensor.device().is_meta() || tensor.numel() == 0 {
        return Ok(());
    }
    write(op, tensor, || {
        let rows = tensor.shape()[0];
        let columns = tensor.numel() / rows;
        let shape = [rows.min(columns), rows.max(columns)];
        let basis = Tensor::randn(shape, DType::F64, &tensor.device())?;
        for i in 0..shape[0] as isize {
            let row = basis.select(0, i)?;
            let before = basis.slice(0, ..i)?;
            // Gram and Schmidt's way, twice: the second time takes what rounding left of the first.
            for _ in 0..2 {
                row.sub_(&before.t()?.mv(&before.mv(&row)?)?)?;
            }
            row.div_(&row.norm(2.0)?)?;
        }
        basis.mul_(gain.value())?;
        let basis = if rows > columns { basis.t()? } else { basis };
        let sizes: Vec<isize> = tensor.shape().iter().map(|&n| n as isize).collect();
        tensor.copy_(&basis.reshape(sizes)?)
    })
}
