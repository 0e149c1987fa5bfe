//! Averages of windows over the last dims of images, and what an average gives back to its window.

use crate::View;
use crate::backend::backend;
use crate::conv::at_least;
use crate::create::reserved;
use crate::pooling::{Images, Pool, Windows, images, windows};
use osteon_kernels::{Divisor, Span};
use osteon_memory::here;
use osteon_spec::{Dims, Error, Kind, Layout, MemoryFormat, Result};

/// What averages of windows are divided by, where that is not the number of their elements.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// Whether the padding counts as elements.
    pub count_include_pad: bool,
    /// A number to divide by instead, not 0.
    pub divisor: Option<i64>,
}

impl Default for Average {
    fn default() -> Average {
        Average {
            count_include_pad: true,
            divisor: None,
        }
    }
}

/// Windows over images of one size, to average over.
#[derive(Clone, Debug)]
pub struct Averages {
    op: &'static str,
    windows: Windows,
    divisor: Divisor,
    /// The sizes of an image.
    sizes: [usize; 2],
    is_adaptive: bool,
}

impl Averages {
    /// Windows as a pool has them.
    ///
    /// # Errors
    /// Other ranks than 3 and 4; windows that do not fit; a divisor of zero.
    pub fn new(input: &View, how: &Pool<2>, average: Average) -> Result<Averages> {
        let divisor = match average {
            Average {
                divisor: Some(0), ..
            } => {
                return Err(Error::new(Kind::Value, "the divisor must not be zero"));
            }
            Average {
                divisor: Some(n), ..
            } => Divisor::Fixed(n),
            Average {
                count_include_pad: true,
                ..
            } => Divisor::Full,
            _ => Divisor::Present,
        };
        let images = images(input)?;
        Ok(Averages {
            op: "avg_pool2d",
            windows: windows(&images, how)?,
            divisor,
            sizes: sizes_of(&images),
            is_adaptive: false,
        })
    }

    /// As many windows as the result has elements; `None` keeps a size.
    ///
    /// # Errors
    /// Other ranks than 3 and 4; other dtypes than floats; negative sizes.
    pub fn adaptive(input: &View, sizes: [Option<isize>; 2]) -> Result<Averages> {
        let op = "adaptive_avg_pool2d";
        let images = images(input)?;
        if !input.dtype().is_float() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", input.dtype()),
            ));
        }
        let [rows, cols] = sizes_of(&images);
        let sizes = at_least(
            "output_size",
            [
                sizes[0].unwrap_or(rows as isize),
                sizes[1].unwrap_or(cols as isize),
            ],
            0,
        )?;
        let along = |size: usize, n: usize| -> Result<Vec<Span>> {
            let mut list = reserved(n, op)?;
            for i in 0..n {
                let at = |i: usize| i as u128 * size as u128;
                let (start, end) = (at(i) / n as u128, at(i + 1).div_ceil(n as u128));
                let count = (end - start) as usize;
                list.push(Span {
                    skipped: 0,
                    start: start as usize,
                    count,
                    full: count,
                });
            }
            Ok(list)
        };
        Ok(Averages {
            op,
            windows: Windows {
                spans: [along(rows, sizes[0])?, along(cols, sizes[1])?],
                step: [1, 1],
            },
            divisor: Divisor::Present,
            sizes: [rows, cols],
            is_adaptive: true,
        })
    }

    fn counts(&self) -> [usize; 2] {
        let [rows, cols] = &self.windows.spans;
        [rows.len(), cols.len()]
    }

    /// Whether this is the mean of each image, asked for as one adaptive window: PyTorch has it as a mean.
    pub fn is_mean(&self) -> bool {
        self.is_adaptive && self.counts() == [1, 1]
    }

    /// The average of each window.
    ///
    /// # Errors
    /// Another dtype than floats and `int64`; guards; out of memory.
    #[track_caller]
    pub fn pool(&self, input: &View) -> Result<View> {
        let images = images(input)?;
        let out = if self.is_mean() && images.format == MemoryFormat::ChannelsLast {
            // PyTorch gives the mean other strides afterwards, and counts that as a write.
            let (n, c) = (images.view.shape()[0], images.view.shape()[1]);
            let layout = Layout::new(
                Dims::from_slice(&[n, c, 1, 1]),
                Dims::from_slice(&[c, 1, c, c]),
                0,
            )?;
            let out = View::alloc(layout, input.dtype(), &input.device(), self.op)?;
            out.storage().record_write(self.op, here());
            out
        } else {
            images.alloc(self.counts(), input.dtype(), self.op)?
        };
        let Windows { spans, step } = &self.windows;
        let pooling = images.pooling(spans, *step, &out, None);
        backend(input.device()).avg_pool(&out, &images.view, &pooling, self.divisor)?;
        images.finish(out)
    }

    /// The transpose of [`Averages::pool`]: each element, divided, added to all elements of its window.
    ///
    /// # Errors
    /// Another dtype than floats; guards; out of memory.
    #[track_caller]
    pub fn spread(&self, averages: &View) -> Result<View> {
        let given = Images::of(averages)?;
        let out = given.alloc(self.sizes, averages.dtype(), self.op)?;
        let backend = backend(averages.device());
        backend.fill(&out, osteon_spec::Scalar::Bool(false))?;
        let images = Images {
            view: out.clone(),
            single: given.single,
            format: given.format,
        };
        let Windows { spans, step } = &self.windows;
        let pooling = images.pooling(spans, *step, &given.view, None);
        backend.avg_spread(&out, &given.view, &pooling, self.divisor)?;
        images.finish(out)
    }
}

fn sizes_of(images: &Images) -> [usize; 2] {
    [images.view.shape()[2], images.view.shape()[3]]
}
