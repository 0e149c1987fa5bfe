//! The rows: how each operation is called. An input's name says what it is (`inputs.rs`).

use osteon_autograd::{Tensor, UniqueTensors};
use osteon_spec::Result;

/// An operation, the inputs that it is given, and how it is called with them.
pub struct Row {
    pub name: &'static str,
    pub inputs: &'static [&'static str],
    pub run: fn(&[Tensor]) -> Result<Vec<Tensor>>,
}

/// Whatever an operation answers, as a list.
pub trait Results {
    fn list(self) -> Result<Vec<Tensor>>;
}

impl Results for Tensor {
    fn list(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}

impl Results for Result<Tensor> {
    fn list(self) -> Result<Vec<Tensor>> {
        Ok(vec![self?])
    }
}

impl Results for Result<(Tensor, Tensor)> {
    fn list(self) -> Result<Vec<Tensor>> {
        self.map(|(a, b)| vec![a, b])
    }
}

impl Results for Result<Vec<Tensor>> {
    fn list(self) -> Result<Vec<Tensor>> {
        self
    }
}

impl Results for Result<UniqueTensors> {
    fn list(self) -> Result<Vec<Tensor>> {
        self.map(|u| vec![u.values, u.inverse, u.counts])
    }
}

/// `name: inputs => call;` each.
macro_rules! rows {
    ($($name:literal: $($x:ident)+ => $call:expr;)*) => {
        &[$($crate::rows::Row {
            name: $name,
            inputs: &[$(stringify!($x)),+],
            run: |inputs| {
                let [$($x),+] = inputs else { unreachable!("a row gets the inputs that it names") };
                $crate::rows::Results::list($call)
            },
        }),*]
    };
}

/// Methods that take nothing but these inputs.
macro_rules! plain {
    ($inputs:tt: $($name:ident)*) => { &[$(plain!(@row $inputs $name)),*] };
    (@row (x) $name:ident) => { plain!(@make $name [x]) };
    (@row (x y) $name:ident) => { plain!(@make $name [x y]) };
    (@row (s) $name:ident) => { plain!(@make $name [s]) };
    (@make $name:ident [$x:ident $($y:ident)*]) => {
        $crate::rows::Row {
            name: stringify!($name),
            inputs: &[stringify!($x) $(, stringify!($y))*],
            run: |inputs| {
                let [$x $(, $y)*] = inputs else { unreachable!("a row gets the inputs that it names") };
                $crate::rows::Results::list($x.$name($($y)*))
            },
        }
    };
}

pub(crate) use {plain, rows};
