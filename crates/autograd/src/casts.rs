//! Casts by the names of PyTorch's methods.

use crate::Tensor;
use crate::graph::{record, same};
use osteon_spec::{DType, MemoryFormat, Result};

macro_rules! casts {
    ($($(#[doc = $doc:literal])+ $name:ident => $dtype:ident, $example:literal;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Itself where it has that dtype, else a copy.
            ///
            /// # Errors
            /// A guard in the way; out of memory.
            ///
            /// ```
            /// # use osteon_autograd::Tensor;
            #[doc = $example]
            /// # Ok::<(), osteon_spec::Error>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                self.to(DType::$dtype)
            }
        )* }
    };
}

casts! {
    /// As `bool`: whether it is not zero.
    bool => Bool,
        "assert_eq!(Tensor::new([0f32, -0.5])?.bool()?.to_vec::<bool>()?, [false, true]);";
    /// As `uint8`.
    byte => U8,
        "assert_eq!(Tensor::new([258i64, -1])?.byte()?.to_vec::<u8>()?, [2, 255]);";
    /// As `int8`.
    char => I8,
        "assert_eq!(Tensor::new([130i64, -1])?.char()?.to_vec::<i8>()?, [-126, -1]);";
    /// As `int16`.
    short => I16,
        "assert_eq!(Tensor::new([2.9f32, -2.9])?.short()?.to_vec::<i16>()?, [2, -2]);";
    /// As `int32`.
    int => I32,
        "assert_eq!(Tensor::new([2.9f32, -2.9])?.int()?.to_vec::<i32>()?, [2, -2]);";
    /// As `int64`.
    long => I64,
        "assert_eq!(Tensor::new([true, false])?.long()?.to_vec::<i64>()?, [1, 0]);";
    /// As `float16`.
    half => F16,
        "assert_eq!(Tensor::new([2049i64])?.half()?.item::<f64>()?, 2048.0);";
    /// As `bfloat16`.
    bfloat16 => BF16,
        "assert_eq!(Tensor::new([257i64])?.bfloat16()?.item::<f64>()?, 256.0);";
    /// As `float32`.
    float => F32,
        "assert_eq!(Tensor::new([1i64, -2])?.float()?.to_vec::<f32>()?, [1.0, -2.0]);";
    /// As `float64`.
    double => F64,
        "assert_eq!(Tensor::new([0.5f32])?.double()?.to_vec::<f64>()?, [0.5]);";
    /// As `complex64`.
    cfloat => C64,
        "assert_eq!(Tensor::new([2i64])?.cfloat()?.view_as_real()?.to_vec::<f32>()?, [2.0, 0.0]);";
    /// As `complex128`.
    cdouble => C128,
        "assert_eq!(Tensor::new([2i64])?.cdouble()?.view_as_real()?.to_vec::<f64>()?, [2.0, 0.0]);";
}

impl Tensor {
    /// Cast to a dtype and laid out in a format: itself where it has the dtype and its strides suggest the format
    /// (a permuted tensor without channels-last strides counts as contiguous here, PyTorch's rule), else a copy.
    ///
    /// # Errors
    /// A format of another rank; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::{DType, MemoryFormat};
    /// let x = Tensor::arange(0, 8, 1)?.view([1, 2, 2, 2])?;
    /// let y = x.to_in(DType::F32, MemoryFormat::ChannelsLast)?;
    /// assert_eq!(y.stride(), [8, 1, 4, 2]);
    /// assert!(y.to_in(DType::F32, MemoryFormat::ChannelsLast)?.is(&y));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn to_in(&self, dtype: DType, format: MemoryFormat) -> Result<Tensor> {
        let fits =
            format == MemoryFormat::Preserve || self.layout().suggest_memory_format() == format;
        if dtype == self.dtype() && fits {
            return Ok(self.clone());
        }
        record(
            self.as_view().to_dtype_in(dtype, format)?,
            &[self],
            |_, _| Ok(same()),
        )
    }
}
