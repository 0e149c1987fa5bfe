//! Elements by index tensors and masks, read and written.

use crate::check::{check, complex, layouts, numbers, pairs};
use osteon_autograd::{Reduce, Tensor, s};
use osteon_spec::Result;

fn each(name: &str, f: impl Fn(&Tensor) -> Result<Tensor>) {
    for (k, x) in layouts(&numbers([3, 4])).into_iter().enumerate() {
        check(&format!("{name}, layout {k}"), &[x], |x| f(&x[0]));
    }
    check(
        &format!("{name}, complex"),
        &[complex([3, 4])],
        |x| f(&x[0]),
    );
}

/// A copy of the first input, written with the second.
fn written(name: &str, from: Tensor, f: impl Fn(&Tensor, &Tensor) -> Result<()>) {
    pairs(&numbers([3, 4]), &from, |k, pair| {
        check(&format!("{name}, layouts {k}"), pair, |x| {
            let y = x[0].copy()?;
            f(&y, &x[1])?;
            Ok(y)
        });
    });
}

fn list<const N: usize>(values: [i64; N]) -> Tensor {
    Tensor::new(values).expect("memory")
}

fn mask() -> Tensor {
    let rows = [
        [true, false, true, true],
        [false; 4],
        [false, true, false, true],
    ];
    Tensor::new(rows).expect("memory")
}

#[test]
fn read() -> Result<()> {
    each("index_select", |x| x.index_select(1, &list([3, 0, 3])));
    let index = Tensor::new([[0i64, 2, 2], [1, 1, 0]])?;
    each("gather", |x| x.gather(0, &index));
    each("gather", |x| x.gather(1, &index));
    each("take", |x| x.take(&Tensor::new([[0i64, -1], [5, 0]])?));
    each("take_along_dim", |x| {
        x.take_along_dim(&Tensor::new([[-1i64], [0], [2]])?, Some(1))
    });
    each("take_along_dim", |x| {
        x.take_along_dim(&list([11, 3, 3]), None)
    });
    each("masked_select", |x| x.masked_select(&mask()));
    check("masked_select", &[numbers([4])], |x| {
        x[0].masked_select(&mask())
    });
    check("index_select", &[numbers([])], |x| {
        x[0].index_select(0, &list([0]))
    });
    each("index", |x| x.i(s![1..3, 0..;2]));
    each("index", |x| x.i(s![&list([0, 2, 0])]));
    each("index", |x| x.i(s![1.., &list([0, 2, 0, -1])]));
    each("index", |x| x.i(s![&list([0, 2]), None, &list([1, 1])]));
    each("index", |x| x.i(s![&mask()]));
    each("index", |x| x.i(s![true, -1]));
    Ok(())
}

#[test]
fn rows() {
    written("index_fill_", numbers([]), |x, v| {
        x.index_fill_(1, &list([0, 2, 0]), v)
    });
    each("index_fill", |x| x.index_fill(0, &list([0, 2]), 7.0));
    written("index_add_", numbers([2, 4]), |x, y| {
        x.index_add_(0, &list([2, 2]), y, 3.0)
    });
    written("index_copy_", numbers([3, 2]), |x, y| {
        x.index_copy_(1, &list([3, 0]), y)
    });
    let x = [complex([2, 3]), complex([2, 2])];
    let i = num_complex::Complex::new(0.0, 1.0);
    check("index_add", &x, |x| {
        x[0].index_add(1, &list([0, 2]), &x[1], i)
    });
    check("index_copy", &x, |x| {
        x[0].index_copy(1, &list([0, 2]), &x[1])
    });
    check("index_fill of a number", &[numbers([]), numbers([])], |x| {
        x[0].index_fill(0, &list([0]), &x[1])
    });
}

#[test]
fn indexed_assignment() {
    written("index_put_", numbers([2]), |x, y| {
        x.index_put_(s![1..3, &list([0, 2])], y)
    });
    written("index_put_", numbers([1, 2, 2]), |x, y| {
        x.index_put_(s![1..3, 0..;2], y)
    });
    written("index_put_", numbers([5]), |x, y| {
        x.index_put_(s![&mask()], y)
    });
    written("index_put_accumulate_", numbers([3, 1]), |x, y| {
        x.index_put_accumulate_(s![&list([0, 0, 2])], y)
    });
    let x = [complex([3, 2]), complex([2])];
    check("index_put", &x, |x| {
        x[0].index_put(s![&list([0, 2])], &x[1])
    });
}

#[test]
fn scattered() -> Result<()> {
    let index = Tensor::new([[0i64, 1, 2], [2, 0, 1]])?;
    written("scatter_", numbers([2, 3]), |x, y| x.scatter_(1, &index, y));
    written("scatter_, larger source", numbers([3, 4]), |x, y| {
        x.scatter_(0, &index, y)
    });
    each("scatter, number", |x| x.scatter(0, &index, 5.0));
    let again = Tensor::new([[0i64, 0, 2], [2, 0, 1]])?;
    written("scatter_add_", numbers([2, 4]), |x, y| {
        x.scatter_add_(0, &again, y)
    });
    written("masked_scatter_", numbers([7]), |x, y| {
        x.masked_scatter_(&mask(), y)
    });
    check("masked_scatter", &[numbers([4]), numbers([5])], |x| {
        x[0].masked_scatter(&mask(), &x[1])
    });
    written("put_", numbers([2, 2]), |x, y| {
        x.put_(&Tensor::new([[0i64, -1], [5, 3]])?, y, false)
    });
    written("put_", numbers([4]), |x, y| {
        x.put_(&list([0, -1, 5, 0]), y, true)
    });
    let nothing = Tensor::zeros([0, 4], osteon_spec::DType::I64, &osteon_spec::Device::cpu())?;
    written("scatter_ of nothing", numbers([2, 4]), |x, y| {
        x.scatter_(0, &nothing, y)
    });
    Ok(())
}

#[test]
fn reduced() -> Result<()> {
    let index = Tensor::new([[0i64, 1, 2, 0], [0, 0, 1, 2]])?;
    for reduce in [
        Reduce::Sum,
        Reduce::Prod,
        Reduce::Mean,
        Reduce::Amax,
        Reduce::Amin,
    ] {
        for own in [true, false] {
            let name = format!("scatter_reduce {reduce:?}, with itself: {own}");
            // Equal numbers, as an expanded tensor has them, share an extreme: no differences there.
            if !matches!(reduce, Reduce::Amax | Reduce::Amin) {
                written(&name, numbers([3, 4]), |x, y| {
                    x.scatter_reduce_(0, &index, y, reduce, own)
                });
            }
            // No two are equal.
            let x = [numbers([3, 4]), numbers([2, 4]).mul(1.37)?];
            check(&name, &x, |x| {
                x[0].scatter_reduce(0, &index, &x[1], reduce, own)
            });
        }
    }
    Ok(())
}

#[test]
fn views_written() {
    written("select_scatter", numbers([3]), |x, y| {
        x.copy_(&x.select_scatter(y, 1, 2)?)
    });
    let x = [numbers([3, 4]), numbers([3, 2])];
    for x in [
        x.clone(),
        [layouts(&x[0])[2].clone(), layouts(&x[1])[1].clone()],
    ] {
        check("slice_scatter", &x, |x| {
            x[0].slice_scatter(&x[1], 1, 1.., 2)
        });
        check("diagonal_scatter", &[x[0].clone(), numbers([3])], |x| {
            x[0].diagonal_scatter(&x[1], 1, 0, 1)
        });
    }
    check(
        "as_strided_scatter",
        &[numbers([3, 3]), numbers([2, 2])],
        |x| x[0].as_strided_scatter(&x[1], [2, 2], [1, 2], Some(1)),
    );
}

/// PyTorch 2.15's gradients of `x.scatter_reduce(0, [0, 1, 1, 0], source, …)·[2, 3, 7]` for `x = [1, 5, 3]`, where numbers
/// are equal or zero: of `x`, then of the source. What `x` has counts among equals also where it is not included.
#[test]
fn equal_extremes_share_and_zeros_are_factors() -> Result<()> {
    let equal = [1.0, 5.0, 5.0, 2.0];
    let zeros = [0.0, 2.0, 0.0, 0.0];
    let one_zero = [5.0, 5.0, 3.0, 0.0];
    for (reduce, own, source, of_own, of_source) in [
        (
            Reduce::Amax,
            true,
            equal,
            [0.0, 1.0, 7.0],
            [0.0, 1.0, 1.0, 2.0],
        ),
        (
            Reduce::Amax,
            true,
            one_zero,
            [0.0, 1.5, 7.0],
            [2.0, 1.5, 0.0, 0.0],
        ),
        (
            Reduce::Amax,
            false,
            zeros,
            [0.0, 0.0, 7.0],
            [1.0, 3.0, 0.0, 1.0],
        ),
        (
            Reduce::Amin,
            false,
            equal,
            [0.0, 0.0, 7.0],
            [1.0, 1.0, 1.0, 0.0],
        ),
        (
            Reduce::Amin,
            true,
            zeros,
            [0.0, 0.0, 7.0],
            [1.0, 0.0, 3.0, 1.0],
        ),
        (
            Reduce::Prod,
            true,
            one_zero,
            [0.0, 45.0, 7.0],
            [0.0, 45.0, 75.0, 10.0],
        ),
        (
            Reduce::Prod,
            true,
            zeros,
            [0.0, 0.0, 7.0],
            [0.0, 0.0, 30.0, 0.0],
        ),
        (
            Reduce::Prod,
            false,
            zeros,
            [0.0, 0.0, 7.0],
            [0.0, 0.0, 6.0, 0.0],
        ),
        (
            Reduce::Mean,
            false,
            equal,
            [0.0, 0.0, 7.0],
            [1.0, 1.5, 1.5, 1.0],
        ),
    ] {
        let (x, y) = (Tensor::new([1.0, 5.0, 3.0])?, Tensor::new(source)?);
        x.requires_grad_(true)?;
        y.requires_grad_(true)?;
        let made = x.scatter_reduce(0, &list([0, 1, 1, 0]), &y, reduce, own)?;
        made.mul(&Tensor::new([2.0, 3.0, 7.0])?)?
            .sum()?
            .backward()?;
        let found = |t: &Tensor| t.grad().map(|g| g.to_vec::<f64>()).transpose();
        let case = format!("{reduce:?} {own} {source:?}");
        assert_eq!(found(&x)?, Some(of_own.to_vec()), "{case}");
        assert_eq!(found(&y)?, Some(of_source.to_vec()), "{case}");
    }
    Ok(())
}

/// What PyTorch refuses: a second pass over what was freed, and what was saved and then overwritten.
#[test]
fn indices_are_saved() -> Result<()> {
    let (x, index) = (numbers([3]), list([2, 0]));
    x.requires_grad_(true)?;
    let y = x.index_select(0, &index)?.sum()?;
    y.backward()?;
    assert!(
        y.backward()
            .unwrap_err()
            .to_string()
            .contains("second time")
    );
    let y = x.i(s![&index])?.sum()?;
    index.fill_(1)?;
    let message = y.backward().unwrap_err().to_string();
    assert!(
        message.contains("modified by an in-place operation"),
        "{message}"
    );
    // A join keeps nothing, and can be gone through again.
    let y = Tensor::cat(&[&x, &x], 0)?.flip([0])?.sum()?;
    y.backward()?;
    y.backward()?;
    Ok(())
}
