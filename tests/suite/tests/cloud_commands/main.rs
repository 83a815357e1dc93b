//! What is asked of a cloud once, and the key that the leader gives to its machines: the real process with the built component `sim`, on the simulated cloud.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod commands;
mod hostile;
mod ssh_keys;

/// The public half of a key that nobody has.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINxr/5LiAWoKRwMj0M43bnoPH+IPKu2qTpvUalMHBKTt";
