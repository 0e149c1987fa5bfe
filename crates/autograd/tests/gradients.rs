//! The derivative of every operation against differences, over layouts, and the derivative of that derivative.

#[path = "gradients/again.rs"]
mod again;
#[path = "gradients/arrange.rs"]
mod arrange;
#[path = "gradients/check.rs"]
mod check;
#[path = "gradients/elementwise.rs"]
mod elementwise;
#[path = "gradients/normalize.rs"]
mod normalize;
#[path = "gradients/places.rs"]
mod places;
#[path = "gradients/products.rs"]
mod products;
#[path = "gradients/reduce.rs"]
mod reduce;
#[path = "gradients/windows.rs"]
mod windows;
