//! Providers from a registry: pushed, signed, pinned and pulled by the real process, from a registry by others, whose signatures cosign makes and judges.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod commands;
mod front;
mod login;
mod process;
mod scene;
