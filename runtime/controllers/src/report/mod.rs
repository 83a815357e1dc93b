//! What controllers report of themselves: numbers, explanations, health. Imports no controller.

pub mod cause;
pub mod explain;
pub mod health;
mod queues;
pub(crate) mod reconcile_clock;
pub mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
pub mod totals;
pub mod waiting;
