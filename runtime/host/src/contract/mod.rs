//! The contract with guests: one adapter per version of `cloudwit:provider`. Knows no HTTP client.

pub(crate) mod adapter;
pub(crate) mod label_adapter;
pub(crate) mod small_adapter;
pub(crate) mod v0_1;
pub(crate) mod volume_adapter;
