//! What controllers report of themselves: explanations, progress, health. Imports no controller.

pub mod explain;
pub mod health;
pub mod standing;
pub mod waiting;
