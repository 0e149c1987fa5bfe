//! Casts by the names of PyTorch's methods.

use crate::Tensor;
use osteon_spec::{DType, MemoryFormat, Result};

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

impl Tensor {
    /// Cast to a dtype and laid out in a format: itself where it has the dtype and its strides suggest the format
    /// (a permuted tensor without channels-last strides counts as contiguous here, PyTorch's rule), else a copy.
    ///
    /// # Errors
    /// A format of another rank; a guard in the way; out of memory.
    #[track_caller]
    pub fn to_in(&self, dtype: DType, format: MemoryFormat) -> Result<Tensor> {
        let fits =
            format == MemoryFormat::Preserve || self.layout().suggest_memory_format() == format;
        if dtype == self.dtype() && fits {
            return Ok(self.clone());
        }
        self.as_view()
            .to_dtype_in(dtype, format)
            .map(Tensor::from_view)
    }
}
