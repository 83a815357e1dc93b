//! Prints sizes, load times, call cost and the node wave.

fn main() {}
