//! Casts by the names of PyTorch's methods.

use crate::Tensor;
use osteon_spec::{DType, MemoryFormat, Result};

macro_rules! casts {
    ($($(#[doc = $doc:literal])+ $name:ident => $dtype:ident;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Itself where it has that dtype, else a copy.
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
    /// As `bool`: whether it is not zero.
    bool => Bool;
    /// As `uint8`.
    byte => U8;
    /// As `int8`.
    char => I8;
    /// As `int16`.
    short => I16;
    /// As `int32`.
    int => I32;
    /// As `int64`.
    long => I64;
    /// As `float16`.
    half => F16;
    /// As `bfloat16`.
    bfloat16 => BF16;
    /// As `float32`.
    float => F32;
    /// As `float64`.
    double => F64;
    /// As `complex64`.
    cfloat => C64;
    /// As `complex128`.
    cdouble => C128;
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
