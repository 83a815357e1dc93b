//! What several controllers need of a provider: batched look-ups, known machines, swaps.

pub mod lookups;
pub mod seen_machines;
pub(crate) mod swap;
