//! Build, sandbox, test and bench: the commands of this repository.

fn main() {}
