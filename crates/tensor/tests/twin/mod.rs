//! The naive twin of operations that arrange elements: values under a shape, read by index.

use osteon_spec::{DType, Device};
use osteon_tensor::View;

/// A tensor as a shape and its values in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// All indices of a shape, in row-major order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let numel: usize = shape.iter().product();
    (0..numel)
        .map(|mut n| {
            let mut index: Vec<usize> = Vec::new();
            for &size in shape.iter().rev() {
                index.insert(0, n % size);
                n /= size;
            }
            index
        })
        .collect()
}

impl Twin {
    /// What a view holds.
    pub fn of(view: &View) -> Twin {
        let values = view.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        Twin {
            shape: view.shape().to_vec(),
            values,
        }
    }

    /// A tensor of this shape, each element by its index.
    pub fn make(shape: &[usize], item: impl Fn(&[usize]) -> f64) -> Twin {
        let values = indices(shape).iter().map(|i| item(i)).collect();
        Twin {
            shape: shape.to_vec(),
            values,
        }
    }

    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        let place = index
            .iter()
            .zip(&self.shape)
            .fold(0, |n, (i, size)| n * size + i);
        self.values[place]
    }

    /// The same values in a contiguous view.
    pub fn view(&self, dtype: DType) -> View {
        let view = View::from_slice(&self.values, &self.shape, &Device::cpu()).unwrap();
        view.to_dtype(dtype).unwrap()
    }
}

/// Views of every kind of layout and of several dtypes, with small whole numbers in them.
pub fn views() -> Vec<View> {
    let dtypes = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I8,
        DType::U8,
    ];
    let number = |n: usize| ((n * 7 + 3) % 11) as f64;
    let dense = |shape: &[usize], dtype: DType| {
        let values: Vec<f64> = (0..shape.iter().product()).map(number).collect();
        Twin {
            shape: shape.to_vec(),
            values,
        }
        .view(dtype)
    };
    let mut all = Vec::new();
    for dtype in dtypes {
        all.push(dense(&[2, 3, 4], dtype));
        all.push(dense(&[4, 2, 3], dtype).permute(&[1, 2, 0]).unwrap());
        all.push(dense(&[4, 7], dtype).slice(1, Some(1), None, 2).unwrap());
        all.push(dense(&[1, 3], dtype).expand(&[2, 3]).unwrap());
        all.push(dense(&[6, 2], dtype).narrow(0, 2, 3).unwrap().t().unwrap());
        all.push(dense(&[5], dtype));
        all.push(dense(&[2, 0, 3], dtype));
        all.push(dense(&[], dtype));
    }
    all
}
