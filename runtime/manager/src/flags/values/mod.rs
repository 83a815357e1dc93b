//! Types of flag values.

pub mod duration;
pub mod feature_gates;
pub mod go;
pub mod selection;
pub mod version;
