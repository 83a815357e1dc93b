//! `cargo xtask`: see [`xtask::cli`].

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match xtask::cli::run(xtask::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
