//! Elements in another order, joined, repeated, or some of them.

use crate::check::{check, complex, layouts, numbers};
use osteon_autograd::Tensor;
use osteon_spec::Result;

fn each(name: &str, f: impl Fn(&Tensor) -> Result<Tensor>) {
    for (k, x) in layouts(&numbers([2, 3])).into_iter().enumerate() {
        check(&format!("{name}, layout {k}"), &[x], |x| f(&x[0]));
    }
    check(
        &format!("{name}, complex"),
        &[complex([2, 3])],
        |x| f(&x[0]),
    );
}

#[test]
fn one_tensor() {
    each("flip", |x| x.flip([0, -1]));
    each("fliplr", Tensor::fliplr);
    each("roll", |x| x.roll([2, -7], [1, 0]));
    each("roll", |x| x.roll([4], []));
    each("repeat", |x| x.repeat([2, 1, 3]));
    each("repeat never", |x| x.repeat([2, 0]));
    each("tile", |x| x.tile([2]));
    each("repeat_interleave", |x| x.repeat_interleave(2, Some(-1)));
    each("repeat_interleave", |x| x.repeat_interleave(3, None));
    each("repeat_interleave_each", |x| {
        x.repeat_interleave_each(&Tensor::new([2i64, 0, 1])?, Some(1))
    });
    each("tril", |x| x.tril(-1));
    each("triu", |x| x.triu(1));
    each("triu_", |x| {
        let y = x.copy()?;
        y.t()?.triu_(0)?;
        Ok(y)
    });
}

#[test]
fn several_tensors() {
    let x = [numbers([2, 3]), numbers([2, 2]), numbers([0])];
    check("cat", &x, |x| Tensor::cat(&[&x[0], &x[2], &x[1]], -1));
    let x = [numbers([2, 3]), complex([2, 3])];
    check("cat", &x, |x| Tensor::cat(&[&x[0], &x[1], &x[0]], 0));
    check("stack", &x, |x| Tensor::stack(&[&x[0], &x[1]], 1));
    check("stack", &x, |x| Tensor::stack(&[&x[0], &x[1]], -1));
    check("hstack", &x, |x| Tensor::hstack(&[&x[0], &x[1]]));
    check("dstack", &x, |x| Tensor::dstack(&[&x[0], &x[1]]));
    let x = [numbers([2, 3]), numbers([2]), numbers([])];
    check("block_diag", &x, |x| {
        Tensor::block_diag(&[&x[0], &x[1], &x[2]])
    });
    check("column_stack", &[numbers([2]), numbers([2, 2])], |x| {
        Tensor::column_stack(&[&x[0], &x[1]])
    });
    let mask = Tensor::new([[true, false, true], [false, false, true]]).unwrap();
    check("where", &[numbers([2, 3]), numbers([3])], |x| {
        x[0].r#where(&mask, &x[1])
    });
    check("where", &[numbers([2, 1]), complex([3])], |x| {
        x[0].r#where(&mask, &x[1])
    });
    check("where", &[numbers([3])], |x| {
        Tensor::where_numbers(&mask, 2.0, &x[0])
    });
    check("where", &[numbers([3])], |x| x[0].r#where(&mask, 2.0));
}
