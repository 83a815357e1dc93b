//! Runs programs: one long one with its progress, several at a time, and steps one after the other.

pub mod lanes;
pub mod process;
pub mod progress;
pub mod runners;
pub mod steps;
