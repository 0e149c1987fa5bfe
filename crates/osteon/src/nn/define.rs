//! Models in few lines.

/// Defines a module: its parts, each with what makes it, and its functions.
///
/// ```
/// use osteon::nn::{self, Layer, Linear, Module};
/// use osteon::{Result, Tensor};
///
/// nn::module! {
///     /// A perceptron with one hidden layer.
///     pub struct Mlp(inputs: usize, width: usize, classes: usize) {
///         hidden: Linear = Linear::new(inputs, width)?,
///         output: Linear = Linear::new(width, classes)?,
///     }
///
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.output.forward(&self.hidden.forward(x)?.relu()?)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let model = Mlp::new(64, 32, 10)?;
/// let y = model.forward(&Tensor::new(vec![vec![0f32; 64]; 5])?)?;
/// assert_eq!((y.shape(), model.parameters().len()), (&[5, 10][..], 4));
/// assert_eq!(model.hidden.weight.name().as_deref(), Some("hidden.weight"));
/// # Ok(())
/// # }
/// ```
///
/// What comes of it: the struct with these fields; `new` with the arguments, which makes the fields in their order (each
/// sees the arguments and the fields before it, and may use `?`), names them and returns a `Result`; [`Module`], with
/// every field as a part; and the functions, each of which runs in the scope of the module's name. A function
/// `forward(&self, x: &Tensor) -> Result<Tensor>` makes it a [`Layer`]. The fields of a module that others are built
/// from are modules themselves: layers, tensors (which are parameters), vectors and options of them; also numbers,
/// which are no parameters. What fits nowhere here, as type parameters, is a plain struct with
/// [`Module::visit`] by hand.
///
/// `self.info.is_training()` says whether the module trains; see [`Info`].
///
/// [`Module`]: crate::nn::Module
/// [`Module::visit`]: crate::nn::Module::visit
/// [`Layer`]: crate::nn::Layer
/// [`Info`]: crate::nn::Info
#[macro_export]
macro_rules! module {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($($arg:ident: $arg_ty:ty),* $(,)?) {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $ty:ty = $init:expr),* $(,)?
        }
        $($functions:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $ty,)*
            info: $crate::nn::Info,
        }

        impl $name {
            /// A new one.
            ///
            /// # Errors
            /// Those of making its parts.
            $vis fn new($($arg: $arg_ty),*) -> $crate::Result<$name> {
                $(let $field: $ty = $init;)*
                let module = $name { $($field,)* info: Default::default() };
                $crate::nn::name_parts(&module);
                Ok(module)
            }
        }

        impl $crate::nn::Module for $name {
            fn visit(&self, parts: &mut $crate::nn::Parts<'_>) {
                parts.info(&self.info);
                $(parts.add(stringify!($field), &self.$field);)*
            }
        }

        $crate::module!(@functions $name $($functions)*);
    };
    (@functions $name:ident) => {};
    (
        @functions $name:ident
        $(#[$meta:meta])*
        fn forward(&$this:ident, $x:ident: &Tensor) -> Result<Tensor> $body:block
        $($rest:tt)*
    ) => {
        impl $crate::nn::Layer for $name {
            $(#[$meta])*
            fn forward(&$this, $x: &$crate::Tensor) -> $crate::Result<$crate::Tensor> {
                let _running = $this.info.enter();
                $body
            }
        }

        $crate::module!(@functions $name $($rest)*);
    };
    (
        @functions $name:ident
        $(#[$meta:meta])*
        $vis:vis fn $function:ident(&$this:ident $(, $x:ident: $ty:ty)* $(,)?) -> $result:ty $body:block
        $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis fn $function(&$this $(, $x: $ty)*) -> $result {
                let _running = $this.info.enter();
                $body
            }
        }

        $crate::module!(@functions $name $($rest)*);
    };
}
