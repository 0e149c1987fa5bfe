//! Casts by the names of PyTorch's methods.

use crate::Tensor;
use osteon_spec::{DType, Result};

macro_rules! casts {
    ($($name:ident $dtype:ident;)*) => {
        impl Tensor { $(
            #[doc = concat!(
                "[`Tensor::to`] [`DType::", stringify!($dtype), "`]: itself where it has that dtype, else a copy."
            )]
            ///
            /// # Errors
            /// A guard in the way; out of memory.
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                self.to(DType::$dtype)
            }
        )* }
    };
}

casts! {
    bool Bool;
    byte U8;
    char I8;
    short I16;
    int I32;
    long I64;
    half F16;
    bfloat16 BF16;
    float F32;
    double F64;
    cfloat C64;
    cdouble C128;
}
