//! What sidecars ask, and what they must read there.
