//! Where a second pass over the same graph is refused: where PyTorch 2.15 keeps something.

use crate::check::numbers;
use osteon_autograd::functional::{self as f, Attention, Average, Conv, Pool};
use osteon_autograd::{Indexing, PadMode, Reduce, Tensor, s};
use osteon_spec::{Result, Scalar};

/// A name, what requires gradients, and what is made of it.
type Case<'a> = (&'a str, &'a [&'a Tensor], &'a dyn Fn() -> Result<Tensor>);

/// Whether the result can be gone through twice.
fn twice(requires: &[&Tensor], of: impl Fn() -> Result<Tensor>) -> Result<bool> {
    requires.iter().try_for_each(|t| t.requires_grad_(true))?;
    let y = of()?.sum()?;
    y.backward()?;
    let second = y.backward();
    requires.iter().try_for_each(|t| t.requires_grad_(false))?;
    Ok(second.is_ok())
}

#[test]
fn results_that_keep_nothing() -> Result<()> {
    let (x, y, row) = (numbers([3, 3]), numbers([3, 3]), numbers([3]));
    let image = numbers([1, 4, 2, 2]);
    let list = Tensor::new([0i64, 1])?;
    let places = Tensor::new([[0i64, 1, 2]])?;
    let one = || f::adaptive_avg_pool2d(&image, [Some(1), Some(1)]);
    let cases: &[Case<'_>] = &[
        ("adaptive_avg_pool2d to one", &[&image], &one),
        ("unfold", &[&image], &|| {
            f::unfold(&image, [2, 2], [1, 1], [0, 0], [1, 1])
        }),
        ("pixel_shuffle", &[&image], &|| image.pixel_shuffle(2)),
        ("pad", &[&x], &|| {
            x.pad([1, 1], PadMode::Constant(Scalar::Float(2.0)))
        }),
        ("addmm of the sum alone", &[&x], &|| x.addmm(&y, &y)),
        ("linear of the bias alone", &[&row], &|| {
            f::linear(&x, &y, Some(&row))
        }),
        ("diag_embed", &[&row], &|| row.diag_embed(0, 0, 1)),
        ("block_diag", &[&x], &|| Tensor::block_diag(&[&x, &x])),
        ("matrix_power 1", &[&x], &|| x.matrix_power(1)),
        ("select_scatter", &[&x, &row], &|| {
            x.select_scatter(&row, 0, 1)
        }),
        ("diagonal_scatter", &[&x, &row], &|| {
            x.diagonal_scatter(&row, 0, 0, 1)
        }),
        ("index_add of the tensor alone", &[&x], &|| {
            x.index_add(0, &list, &y.slice(0, ..2)?, 1)
        }),
        ("scatter_add of the tensor alone", &[&x], &|| {
            x.scatter_add(0, &places, &y.slice(0, ..1)?)
        }),
        ("diff", &[&x], &|| x.diff(1, 0, None, None)),
        ("rot90", &[&x], &|| x.rot90(1, [0, 1])),
        ("cartesian_prod", &[&row], &|| {
            Tensor::cartesian_prod(&[&row, &row])
        }),
        ("meshgrid", &[&row], &|| {
            Tensor::cat(
                &Tensor::meshgrid(&[&row, &row], Indexing::Ij)?
                    .iter()
                    .collect::<Vec<_>>(),
                0,
            )
        }),
        ("einsum of a transpose", &[&x], &|| {
            Tensor::einsum("ij->ji", &[&x])
        }),
        ("einsum of a trace", &[&x], &|| Tensor::einsum("ii", &[&x])),
        ("roll", &[&x], &|| x.roll([1], [0])),
        ("repeat", &[&x], &|| x.repeat([2, 2])),
    ];
    for (name, requires, of) in cases {
        assert!(twice(requires, of)?, "{name}");
    }
    Ok(())
}

#[test]
fn results_that_keep_something() -> Result<()> {
    let (x, y, row) = (numbers([3, 3]), numbers([3, 3]), numbers([3]));
    let image = numbers([1, 1, 4, 4]);
    let kernel = numbers([1, 1, 2, 2]);
    let bias = numbers([1]);
    let list = Tensor::new([0i64, 1])?;
    let places = Tensor::new([[0i64, 1, 2]])?;
    let mask = x.gt(0.0)?;
    let pool = Pool::new([2, 2]);
    let cases: &[Case<'_>] = &[
        ("avg_pool2d", &[&image], &|| {
            f::avg_pool2d(&image, &pool, Average::default())
        }),
        ("adaptive_avg_pool2d", &[&image], &|| {
            f::adaptive_avg_pool2d(&image, [Some(2), Some(2)])
        }),
        ("max_pool2d", &[&image], &|| f::max_pool2d(&image, &pool)),
        ("pad", &[&x], &|| x.pad([1, 1], PadMode::Reflect)),
        ("conv2d of the bias alone", &[&bias], &|| {
            f::conv2d(&image, &kernel, Some(&bias), &Conv::default())
        }),
        ("matrix_power", &[&x], &|| x.matrix_power(2)),
        ("cross", &[&x], &|| x.cross(&y, 0)),
        ("index_copy", &[&x], &|| {
            x.index_copy(0, &list, &y.slice(0, ..2)?)
        }),
        ("index_add of the source", &[&y], &|| {
            x.index_add(0, &list, &y.slice(0, ..2)?, 1)
        }),
        ("scatter", &[&x], &|| {
            x.scatter(0, &places, &y.slice(0, ..1)?)
        }),
        ("scatter_reduce", &[&x], &|| {
            x.scatter_reduce(0, &places, &y, Reduce::Sum, true)
        }),
        ("put", &[&x], &|| x.put(&list, &row.slice(0, ..2)?, true)),
        ("index_put", &[&x], &|| {
            x.index_put_accumulate(s![&list], &y.slice(0, ..2)?)
        }),
        ("masked_scatter", &[&x], &|| x.masked_scatter(&mask, &y)),
        ("masked_select", &[&x], &|| x.masked_select(&mask)),
        ("where", &[&x], &|| x.r#where(&mask, 0.0)),
        ("repeat_interleave_each", &[&row], &|| {
            row.repeat_interleave_each(&Tensor::new([1i64, 2, 0])?, Some(0))
        }),
        ("combinations", &[&row], &|| row.combinations(2, false)),
        ("take_along_dim", &[&x], &|| {
            x.take_along_dim(&places, Some(0))
        }),
        ("embedding", &[&x], &|| f::embedding(&list, &x)),
        ("attention", &[&x], &|| {
            f::scaled_dot_product_attention(&x, &x, &x, &Attention::default())
        }),
    ];
    for (name, requires, of) in cases {
        assert!(!twice(requires, of)?, "{name}");
    }
    Ok(())
}
