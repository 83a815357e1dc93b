//! From what is there to what is wanted: [`diff`] tells what has to be made, changed and deleted, [`Steps`] makes the changes.

mod diff;
mod steps;

pub use diff::{Diff, diff};
pub use steps::{Change, Steps};
