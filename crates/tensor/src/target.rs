//! Where results go: to new tensors, or to ones that are given (PyTorch's `out=`).

use crate::View;
use crate::copy::transfer;
use crate::elementwise::other_device;
use crate::write;
use osteon_memory::{CopyReason, attribute, copies, here, hold};
use osteon_spec::{DType, Device, Error, Kind, Layout, Result};
use smallvec::SmallVec;

/// Where the results of one call go, and the name that it has: `sum`, or `sum_out`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) op: &'static str,
    outs: [Option<&'a View>; 2],
    /// Whether an `out` may hold another dtype than the result has, of the same category or a higher one.
    casts: bool,
}

/// What an operation reads, and how it may lie to what is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// Elements that are read in another order than results are written: they share no byte.
    Apart(&'a [&'a View]),
    /// Elements that are each read before the result takes their place: those of `out` itself, or others.
    Each(&'a [&'a View]),
}

impl<'a> Target<'a> {
    /// New tensors.
    pub(crate) fn fresh(op: &'static str) -> Target<'a> {
        Target::given(op, [None, None])
    }

    /// These tensors; new ones for none.
    pub(crate) fn given(op: &'static str, outs: [Option<&'a View>; 2]) -> Target<'a> {
        Target {
            op,
            outs,
            casts: false,
        }
    }

    /// The same under the name of what a user called: the first where the result is new, else the second.
    pub(crate) fn named(self, [fresh, given]: [&'static str; 2]) -> Target<'a> {
        let op = if self.is_given() { given } else { fresh };
        Target { op, ..self }
    }

    /// The same, but the result may be cast.
    pub(crate) fn casting(self) -> Target<'a> {
        Target {
            casts: true,
            ..self
        }
    }

    /// The same for the second result of an operation, whose first nobody wants.
    pub(crate) fn second(self) -> Target<'a> {
        let outs = [None, self.outs[0]];
        Target { outs, ..self }
    }

    /// Whether a tensor is given.
    pub(crate) fn is_given(&self) -> bool {
        self.outs.iter().any(Option::is_some)
    }

    /// The first tensor that is given.
    pub(crate) fn out(&self) -> Option<&'a View> {
        self.outs[0]
    }

    /// The dtype of the first tensor that is given: what PyTorch computes sums in.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.out().map(View::dtype)
    }

    /// A result of this layout: made new, or the given tensor, if that suits; written by `run`, and counted as one
    /// write.
    #[track_caller]
    pub(crate) fn write(
        &self,
        layout: Layout,
        (dtype, device): (DType, Device),
        reads: Reads<'_>,
        run: impl FnOnce(&View) -> Result<()>,
    ) -> Result<View> {
        let out = self.place(0, layout, (dtype, device), reads)?;
        attribute(here(), || run(&out)).map_err(|e| e.op(self.op))?;
        self.count();
        Ok(out)
    }

    /// Two results of one layout, those that have a dtype.
    #[track_caller]
    pub(crate) fn write_both(
        &self,
        layout: &Layout,
        (dtypes, device): ([Option<DType>; 2], Device),
        reads: Reads<'_>,
        run: impl FnOnce([Option<&View>; 2]) -> Result<()>,
    ) -> Result<[Option<View>; 2]> {
        let site = here();
        let place = |k: usize| {
            let place = |dtype| self.place(k, layout.clone(), (dtype, device), reads);
            attribute(site, || dtypes[k].map(place).transpose())
        };
        let views = [place(0)?, place(1)?];
        if let [Some(a), Some(b)] = self.outs {
            write::check_apart(a, b, self.op)?;
        }
        attribute(site, || run(views.each_ref().map(Option::as_ref))).map_err(|e| e.op(self.op))?;
        self.count();
        Ok(views)
    }

    /// A result that had to be made as a new tensor: itself, or a logged copy of it in the given tensor.
    #[track_caller]
    pub(crate) fn put(&self, made: View) -> Result<View> {
        if self.out().is_none() {
            return Ok(made);
        }
        let kind = (made.dtype(), made.device());
        let reason = CopyReason::Materialized;
        let layout = made.layout();
        copies::check(
            reason,
            self.op,
            format_args!("{} {layout} to out", made.dtype()),
        )?;
        let site = here();
        self.write(layout.clone(), kind, Reads::Each(&[]), |out| {
            transfer(out, &made, reason, self.op, site)
        })
    }

    /// A new tensor, or the given one: of the result's shape, device and dtype, no two elements at one place, and none where
    /// something is read that is still wanted.
    #[track_caller]
    fn place(
        &self,
        k: usize,
        layout: Layout,
        (dtype, device): (DType, Device),
        reads: Reads<'_>,
    ) -> Result<View> {
        let op = self.op;
        let Some(out) = self.outs[k] else {
            return View::alloc(layout, dtype, &device, op);
        };
        if out.device() != device {
            return Err(other_device(device, out.device()).op(op));
        }
        let suits = if self.casts {
            dtype.can_cast(out.dtype())
        } else {
            dtype == out.dtype()
        };
        if !suits {
            let message = format!("the result is {dtype}, but out holds {}", out.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        if out.shape() != layout.sizes() {
            let message = format!(
                "the result has shape {:?}, but out has {:?}; resize_() it first",
                layout.sizes(),
                out.shape()
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        let (Reads::Apart(read) | Reads::Each(read)) = reads;
        // What stands in the way shows here, before the first of perhaps several kernels writes.
        let storages: SmallVec<[_; 4]> = read.iter().map(|v| v.storage()).collect();
        drop(hold(&storages, &[out.storage()]).map_err(|e| e.op(op))?);
        match reads {
            Reads::Apart(views) => {
                write::check_itself(out, op)?;
                for view in views {
                    write::check_apart(out, view, op)?;
                }
            }
            Reads::Each(views) => {
                let sources: SmallVec<[_; 4]> = views.iter().map(|&v| v.into()).collect();
                write::check(out, &sources, op)?;
            }
        }
        Ok(out.clone())
    }

    #[track_caller]
    fn count(&self) {
        for out in self.outs.iter().flatten() {
            out.storage().record_write(self.op, here());
        }
    }
}

impl View {
    /// This view, which nobody else has seen, as the result that goes into `out`: a logged copy, which may cast to another
    /// dtype of the same category or a higher one where `casts` says so. Returns `out`.
    ///
    /// # Errors
    /// An `out` of another shape or dtype, or that overlaps itself; an implicit copy where those are forbidden; a guard in
    /// the way.
    #[track_caller]
    pub fn put_into(self, out: &View, casts: bool, op: &'static str) -> Result<View> {
        let to = Target::given(op, [Some(out), None]);
        Target { casts, ..to }.put(self)
    }
}

/// Defines operations in pairs: the first gives a new tensor, the second writes into `out`. Both have one body, which
/// is told where the result goes.
macro_rules! with_out {
    ($to:ident; $(
        $(#[doc = $doc:literal])+
        $name:ident $out:ident($($params:tt)*) -> $result:tt $body:block
    )*) => {
        impl View { $(
            $(#[doc = $doc])+
            #[track_caller]
            pub fn $name($($params)*) -> Result<$result> {
                let $to = $crate::target::Target::fresh(stringify!($name));
                $body
            }

            #[doc = concat!("[`View::", stringify!($name), "`] into `out`, which is returned.")]
            ///
            /// # Errors
            /// As there; an `out` of another shape or dtype, or that overlaps itself or what is read.
            #[track_caller]
            pub fn $out($($params)*, out: with_out!(@given $result)) -> Result<$result> {
                let $to = $crate::target::Target::given(stringify!($out), with_out!(@list out $result));
                $body
            }
        )* }
    };
    (@given View) => { &View };
    (@given (View, View)) => { (&View, &View) };
    (@list $out:ident View) => { [Some($out), None] };
    (@list $out:ident (View, View)) => { [Some($out.0), Some($out.1)] };
}
pub(crate) use with_out;
