//! Kubernetes API: caches, types of objects, the only writer, Events.

pub mod cache;
pub mod clients;
pub mod events;
pub mod node;
pub mod rights;
pub mod service;
pub mod watch_pace;
pub mod watched;
pub mod writer;
