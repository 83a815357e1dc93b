//! Questions to a provider that several controllers ask: batched look-ups, known machines, swaps.

pub mod lookups;
pub mod seen_machines;
pub(crate) mod swap;
