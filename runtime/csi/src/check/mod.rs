//! Requests in the words of the model, or what is wrong with them: all mistakes at once. Pure.

mod capabilities;
mod created;
mod text;

pub(crate) use capabilities::{attachable, creatable, uses};
pub(crate) use created::{bounds, new_snapshot, new_volume, size, topology};
pub(crate) use text::{Mistakes, id, map, only_id};
