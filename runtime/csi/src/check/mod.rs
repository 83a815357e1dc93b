//! Requests in the words of the model, or what is wrong with them: all mistakes at once. Pure.

mod capabilities;
mod created;
mod text;

pub(crate) use capabilities::{attachable, creatable, uses};
pub use created::bounds;
pub(crate) use created::{new_snapshot, new_volume, size, topology};
pub use text::{Mistakes, id};
pub(crate) use text::{id_and_secrets, map, only_id, secrets};
