//! Recordings of calls with their HTTP exchanges, without secrets.

pub(crate) mod cassette;
pub(crate) mod exchanges;
mod scrub;
