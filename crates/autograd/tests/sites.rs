//! Writes in place know the operation and the line that called it.

use osteon_autograd::{Reduce, Tensor, s};
use osteon_memory::Storage;
use osteon_spec::Result;

/// Runs each call, one a line, on a fresh `[[1, 2], [3, 4]]` of floats and looks who wrote last: the method, from
/// its line.
macro_rules! wrote {
    ($($name:literal: |$x:ident| $call:expr;)*) => { let mut line = line!(); $({
        let mut $x = Tensor::new([[1f32, 2.], [3., 4.]])?;
        assert_eq!($x.storage().last_write(), None);
        let _ = $x.mutable();
        $call;
        line += 1;
        let (op, site) = $x.storage().last_write().expect($name);
        assert_eq!((op, site.file(), site.line()), ($name, file!(), line));
    })* };
}

/// So that every row may borrow mutably.
trait Mutable {
    fn mutable(&mut self) -> &mut Self {
        self
    }
}
impl Mutable for Tensor {}

#[test]
fn every_family_of_writes_names_its_line() -> Result<()> {
    let (row, at) = (Tensor::new([5f32, 6.])?, Tensor::new([0i64])?);
    let one = Tensor::new([[7f32, 8.]])?;
    let places = Tensor::new([[0i64, 0]])?;
    let mask = Tensor::new([[true, false], [false, true]])?;
    let empty = Storage::clone(Tensor::new([0f32; 8])?.storage());
    wrote! {
        "add_": |x| x.add_(&row)?;
        "exp_": |x| x.exp_()?;
        "relu_": |x| x.relu_()?;
        "pow_": |x| x.pow_(2)?;
        "clamp_": |x| x.clamp_(1, 2)?;
        "add_scaled_": |x| x.add_scaled_(&row, 2)?;
        "fill_": |x| x.fill_(1)?;
        "zero_": |x| x.zero_()?;
        "copy_": |x| x.copy_(&row)?;
        "copy_": |x| x.copy_(&x.clone())?;
        "masked_fill_": |x| x.masked_fill_(&mask, 0)?;
        "masked_scatter_": |x| x.masked_scatter_(&mask, &row)?;
        "index_fill_": |x| x.index_fill_(0, &at, 0)?;
        "index_add_": |x| x.index_add_(0, &at, &one, 1)?;
        "index_copy_": |x| x.index_copy_(0, &at, &one)?;
        "copy_": |x| x.index_put_(s![0], &row)?; // an assignment to a view is a copy into it
        "index_put_": |x| x.index_put_(s![&at], &one)?;
        "scatter_": |x| x.scatter_(0, &places, &one)?;
        "scatter_add_": |x| x.scatter_add_(0, &places, &one)?;
        "scatter_reduce_": |x| x.scatter_reduce_(0, &places, &one, Reduce::Mean, true)?;
        "put_": |x| x.put_(&at, &Tensor::new([9f32])?, false)?;
        "cumsum_": |x| x.cumsum_(0)?;
        "tril_": |x| x.tril_(0)?;
        "normal_": |x| x.normal_(0., 1.)?;
        "uniform_": |x| x.uniform_(0., 1.)?;
        "transpose_": |x| x.transpose_(0, 1)?;
        "resize_": |x| x.resize_([8])?;
        "set_": |x| x.set_storage_(&empty, 0, [2], [1])?;
        "write": |x| drop(x.write::<f32>()?);
    }
    let out = Tensor::new([0f32, 0.])?;
    row.add_out(&row, &out)?;
    assert_eq!(
        out.storage().last_write().map(|(op, _)| op),
        Some("add_out")
    );
    Ok(())
}

#[test]
fn a_write_through_one_view_is_seen_at_the_other() -> Result<()> {
    let x = Tensor::new([[1i64, 2], [3, 4]])?;
    let row = x.select(0, 0)?;
    row.mul_(3)?;
    x.t()?.add_(1)?;
    let line = line!() - 1;
    let (op, site) = row.storage().last_write().expect("it was written");
    assert_eq!((op, site.line(), row.version()), ("add_", line, 2));
    assert!(row.mul_(&Tensor::new([1i64, 2, 3])?).is_err());
    assert_eq!(row.storage().last_write(), Some((op, site)));
    Ok(())
}
