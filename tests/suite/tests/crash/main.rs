//! `kill -9` of the real process at each step of its work: on a real API server, with the provider `sim` and the simulated cloud.
//!
//! Many Services are stopped at a step of their own, each in the request that makes or follows it, and then the process dies for all of
//! them at once. The next process must bring everything to the end, with nothing made twice and nothing left over.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod nodes;
mod routes;
mod services;
mod steps;
