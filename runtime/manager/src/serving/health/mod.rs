//! `/healthz`, `/livez`, `/readyz` and `/metrics/slis`.

pub mod checks;
pub mod slis;
pub mod sources;
