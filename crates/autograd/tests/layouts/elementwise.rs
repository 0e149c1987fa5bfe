//! Element by element, copies and views.

use crate::rows::{Row, plain, rows};
use osteon_autograd::{Rounding, Tensor, functional};
use osteon_spec::{DType, MemoryFormat};

pub const UNARY: &[Row] = plain! { (x):
    neg abs square sign sgn relu sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh sigmoid floor ceil round trunc frac isnan isinf isfinite signbit logical_not
    isposinf isneginf isreal deg2rad rad2deg sinc erf erfc erfinv lgamma digamma angle bitwise_not relu6 gelu
    gelu_tanh silu mish selu hardswish hardsigmoid logsigmoid softsign tanhshrink conj mH adjoint resolve_conj
    positive alias detach real imag mT atleast_1d atleast_2d atleast_3d squeeze copy contiguous compact ravel
    bfloat16 bool byte cdouble cfloat char double float half int long short
};

pub const MATRIX: &[Row] = plain! { (s): H T t };

pub const BINARY: &[Row] = plain! { (x y):
    add sub mul div floor_divide remainder fmod float_power bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift copysign xlogy maximum minimum fmax fmin atan2 hypot nextafter heaviside logaddexp logaddexp2
    eq ne lt le gt ge logical_and logical_or logical_xor pow clamp_min clamp_max expand_as
};

pub const REST: &[Row] = rows! {
    "add": x => x.add(2);
    "add": x h => x.add(&h.unsqueeze(1)?);
    "sub": x v => v.sub(x);
    "mul": x => x.mul(0.5);
    "pow": x => x.pow(2);
    "lt": x => x.lt(0.5);
    "add_scaled": x y => x.add_scaled(y, 2);
    "sub_scaled": x y => x.sub_scaled(y, 2);
    "rsub": x y => x.rsub(y, 2);
    "rpow": x => x.rpow(2);
    "div_rounding": x y => x.div_rounding(y, Rounding::Trunc);
    "div_rounding": x y => x.div_rounding(y, Rounding::Floor);
    "addcmul": x y z => x.addcmul(y, z, 2);
    "addcdiv": x y z => x.addcdiv(y, z, 2);
    "lerp": x y => x.lerp(y, 0.25);
    "lerp": x y e => x.lerp(y, e);
    "round_decimals": x => x.round_decimals(1);
    "logit": e => e.logit(Some(0.1));
    "nan_to_num": x => x.nan_to_num(Some(1.0), None, None);
    "clamp": x => x.clamp(-1, 2);
    "clamp": x y z => x.clamp(y, z);
    "isclose": x y => x.isclose(y, 0.1, 0.5, true);
    "complex": x y => Tensor::complex(x, y);
    "polar": x y => Tensor::polar(x, y);
    "masked_fill": x m => x.masked_fill(m, 1);
    "masked_fill": v m => v.masked_fill(m, 1);
    "fill": x => x.fill(1);
    "elu": x => x.elu(1.5);
    "celu": x => x.celu(1.5);
    "leaky_relu": x => x.leaky_relu(0.25);
    "hardshrink": x => x.hardshrink(0.5);
    "softshrink": x => x.softshrink(0.5);
    "softplus": x => x.softplus(2.0, 4.0);
    "hardtanh": x => x.hardtanh(-1, 2);
    "threshold": x => x.threshold(1, 3);
    "functional::prelu": x h => functional::prelu(x, h);
    "functional::glu": x => functional::glu(x, -1);
    "functional::dropout": x => functional::dropout(x, 0.5, false);

    "copy_in": image => image.copy_in(MemoryFormat::ChannelsLast);
    "contiguous_in": image => image.contiguous_in(MemoryFormat::ChannelsLast);
    "to_copy": x => x.to_copy(DType::F32);
    "to": x => x.to(DType::I32);
    "to": x => x.to(DType::F16);
    "to_in": image => image.to_in(DType::F64, MemoryFormat::ChannelsLast);
    "flatten": x => x.flatten(1, 2);
    "reshape": x => x.reshape([-1, 2]);
    "reshape_as": x p => x.reshape([2, 3, 8])?.slice(2, ..4)?.reshape_as(p);

    "broadcast_to": x => x.broadcast_to([2, 4, 3, 4]);
    "expand": x => x.expand([2, -1, -1, -1]);
    "chunk": x => x.chunk(3, 2);
    "diagonal": x => x.diagonal(1, 0, 2);
    "split": x => x.split(3, 0);
    "split_with_sizes": x => x.split_with_sizes([1, 2], 1);
    "tensor_split": x => x.tensor_split(3, 0);
    "hsplit": x => x.hsplit(3);
    "vsplit": x => x.vsplit(2);
    "dsplit": x => x.dsplit(2);
    "moveaxis": x => x.moveaxis([0], [2]);
    "movedim": x => x.movedim([0], [2]);
    "narrow": x => x.narrow(0, 1, 2);
    "permute": x => x.permute([1, 2, 0]);
    "select": x => x.select(1, -1);
    "slice": x => x.slice(0, ..-1);
    "slice_step": x => x.slice_step(0, 1.., 2);
    "squeeze_dims": x => x.slice(1, 1..2)?.squeeze_dims([1, 2]);
    "swapaxes": x => x.swapaxes(0, 2);
    "swapdims": x => x.swapdims(0, 2);
    "transpose": x => x.transpose(0, 1);
    "unbind": x => x.unbind(1);
    "unflatten": x => x.unflatten(0, [2, -1]);
    "unfold": x => x.unfold(0, 2, 1);
    "unsqueeze": x => x.unsqueeze(1);
    "view_as_real": x => x.view_as_real();
};
