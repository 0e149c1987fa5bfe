//! Losses as modules: what [`functional`](crate::nn::functional) computes, with options that are set once.

use super::functional::{self, Classes, Reduction};
use super::{Module, Parts};
use crate::{Result, Tensor};

macro_rules! losses {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $field_doc:literal])+ $field:ident: $ty:ty = $default:expr,)* }
            |$this:ident, $x:ident, $y:ident| $call:expr,
        of $a:literal, $b:literal => $cost:literal;
    )*) => { $(
        $(#[doc = $doc])+
        ///
        /// ```
        /// # use osteon::Tensor;
        #[doc = concat!("use osteon::nn::", stringify!($name), ";")]
        #[doc = concat!("let (x, y) = (Tensor::new(", $a, ")?, Tensor::new(", $b, ")?);")]
        #[doc = concat!("let loss = ", stringify!($name), "::default().forward(&x, &y)?;")]
        #[doc = concat!("assert!((loss.item::<f64>()? - ", $cost, ").abs() < 1e-6);")]
        /// # Ok::<(), osteon::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[doc = $field_doc])+ pub $field: $ty,)*
            /// How the costs become one number; their mean at first.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::Mean }
            }
        }

        impl $name {
            /// What the prediction costs.
            ///
            /// # Errors
            /// Shapes or dtypes that do not fit; out of memory.
            #[track_caller]
            pub fn forward(&self, $x: &Tensor, $y: &Tensor) -> Result<Tensor> {
                let $this = self;
                $call
            }
        }

        impl Module for $name {
            fn visit(&self, _: &mut Parts<'_>) {}
        }
    )* };
}

losses! {
    /// [`functional::mse_loss`] as a module.
    MSELoss {} |this, x, y| functional::mse_loss(x, y, this.reduction),
    of "[1f64, 2.0]", "[1f64, 4.0]" => "2.0";
    /// [`functional::l1_loss`] as a module.
    L1Loss {} |this, x, y| functional::l1_loss(x, y, this.reduction),
    of "[1f64, 2.0]", "[1f64, 4.0]" => "1.0";
    /// [`functional::smooth_l1_loss`] as a module.
    SmoothL1Loss {
        /// Where the square ends; 1 at first.
        beta: f64 = 1.0,
    } |this, x, y| functional::smooth_l1_loss(x, y, this.beta, this.reduction),
    of "[1f64, 2.0]", "[1f64, 4.0]" => "0.75";
    /// [`functional::huber_loss`] as a module.
    HuberLoss {
        /// Where the square ends; 1 at first.
        delta: f64 = 1.0,
    } |this, x, y| functional::huber_loss(x, y, this.delta, this.reduction),
    of "[1f64, 2.0]", "[1f64, 4.0]" => "0.75";
    /// [`functional::kl_div`] as a module.
    KLDivLoss {
        /// Whether targets are logarithms; not at first.
        log_target: bool = false,
    } |this, x, y| functional::kl_div(x, y, this.log_target, this.reduction),
    of "[0f64, 0.0]", "[1f64, 1.0]" => "0.0";
    /// [`functional::binary_cross_entropy`] as a module.
    BCELoss {} |this, x, y| functional::binary_cross_entropy(x, y, None, this.reduction),
    of "[0.5f64, 0.5]", "[1f64, 0.0]" => "0.6931471805599453";
    /// [`functional::binary_cross_entropy_with_logits`] as a module.
    BCEWithLogitsLoss {} |this, x, y| functional::binary_cross_entropy_with_logits(x, y, None, None, this.reduction),
    of "[0f64, 0.0]", "[1f64, 0.0]" => "0.6931471805599453";
    /// [`functional::nll_loss`] as a module.
    NLLLoss {
        /// The class that costs nothing; -100 at first.
        ignore_index: i64 = -100,
    } |this, x, y| functional::nll_loss(x, y, &Classes {
        ignore_index: this.ignore_index,
        reduction: this.reduction,
        ..Classes::default()
    }),
    of "[[-1f64, -2.0]]", "[1i64]" => "2.0";
    /// [`functional::cross_entropy`] as a module.
    CrossEntropyLoss {
        /// The class that costs nothing; -100 at first.
        ignore_index: i64 = -100,
        /// The share of the target that all classes get alike; 0 at first.
        label_smoothing: f64 = 0.0,
    } |this, x, y| functional::cross_entropy(x, y, &Classes {
        ignore_index: this.ignore_index,
        label_smoothing: this.label_smoothing,
        reduction: this.reduction,
        ..Classes::default()
    }),
    of "[[0f64, 0.0]]", "[1i64]" => "0.6931471805599453";
}
