//! From observed to desired state, over several calls.
//!
//! [`diff`] is what to create, change and delete, [`Rounds`] plans and makes it round by round, [`Steps`]
//! makes the changes and carries them from call to call, and [`Brake`] ends a series of them in time.

mod brake;
mod diff;
mod rounds;
mod single;
mod steps;

pub use brake::Brake;
pub use diff::{Diff, diff};
pub use rounds::{Apply, Jobs, Kept, Next, Rounds};
pub use single::single;
pub use steps::{Change, Steps};
