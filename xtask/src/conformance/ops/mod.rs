//! The single operations, by PyTorch's names: what a recorded call looks like in Rust.

mod arrange;
mod create;
mod indexing;
mod linalg;
mod loss;
mod nn;
mod norm;
mod pointwise;
mod reduce;
mod shape;
mod sort;

use osteon::Tensor;

use super::args::Call;
use super::call::Stop;
use super::case::Output;

/// The results of a call.
type Made = Result<Vec<Output>, Stop>;

/// Calls the operation of this name.
pub fn apply(op: &str, c: &Call<'_>) -> Made {
    let tables = [
        pointwise::unary,
        pointwise::binary,
        pointwise::reflected,
        pointwise::activation,
        pointwise::other,
        shape::views,
        shape::pieces,
        shape::copies,
        arrange::join,
        arrange::arrange,
        arrange::compose,
        indexing::read,
        indexing::write,
        sort::order,
        sort::sets,
        create::create,
        create::like,
        linalg::products,
        linalg::added,
        linalg::other,
        nn::convolutions,
        reduce::over_dims,
        reduce::along,
        reduce::spread,
        norm::softmax,
        norm::norms,
        norm::normalisations,
        nn::pools,
        loss::losses,
    ];
    for table in tables {
        match table(op, c) {
            Err(Stop::Missing) => {}
            made => return made,
        }
    }
    Err(Stop::Missing)
}

fn one(tensor: Tensor) -> Made {
    Ok(vec![Output::Tensor(tensor)])
}
