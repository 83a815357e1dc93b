//! `cargo xtask`: see [`xtask::cli`].

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match xtask::cli::run(xtask::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            match error.is::<xtask::commands::real::CannotRun>() {
                true => ExitCode::from(xtask::commands::real::CANNOT_RUN),
                false => ExitCode::FAILURE,
            }
        }
    }
}
