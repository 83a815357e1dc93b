//! Providers in other languages than Rust: built as their authors build them, from the templates of `cloudwit provider new` and from `tests/guests`.
//!
//! ```text
//!   project      a template written out, with the files of a test guest over it, and the component that its own build makes
//!   javascript   componentize-js, by npm
//!   python       componentize-py, by pip
//!   go           wit-bindgen, wasm-tools and the adapter, by cargo
//! ```

mod go;
mod javascript;
mod project;
mod python;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use project::Project;

/// Languages that cannot be built here, and why: `go: Go is missing, ...; javascript: ...`. Their tests say so and do nothing.
pub const LEFT_OUT: &str = "CLOUDWIT_NO_LANGUAGES";

/// A language that providers are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// By componentize-js.
    JavaScript,
    /// By componentize-py.
    Python,
    /// By Go itself, wit-bindgen and wasm-tools.
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::JavaScript, Self::Python, Self::Go];

    /// The word after `cloudwit provider new NAME --lang`, and the name of the folder with the template.
    pub fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    /// Checks that the programs are there that nothing here can fetch.
    ///
    /// # Errors
    ///
    /// When one is missing; says how to get it.
    pub fn require(self) -> Result<()> {
        match self {
            Self::JavaScript => javascript::require(),
            Self::Python => crate::servers::python::get_python().map(drop),
            Self::Go => crate::tools::require_go_for("providers in Go"),
        }
    }

    /// Fetches and builds what makes components, if it is not there yet. Takes minutes the first time.
    ///
    /// # Errors
    ///
    /// When a program is missing or a package cannot be had.
    pub fn prepare(self) -> Result<()> {
        match self {
            Self::JavaScript => javascript::tools().map(drop),
            Self::Python => python::tools().map(drop),
            Self::Go => go::tools().map(drop),
        }
    }

    /// Builds what lies in this folder with the world of that name, by the command of its README.
    fn build(self, folder: &Path, world: &str) -> Result<()> {
        match self {
            Self::JavaScript => javascript::build(folder, world),
            Self::Python => python::build(folder, world),
            Self::Go => go::build(folder, world),
        }
    }

    /// Runs the tests of what lies in this folder, by the command of its README. Gives what the runner printed.
    fn test(self, folder: &Path) -> Result<String> {
        match self {
            Self::JavaScript => javascript::test(folder),
            Self::Python => python::test(folder),
            Self::Go => go::test(folder),
        }
    }

    /// The component of `tests/guests/NAME-machines`: the template's, with load balancers.
    ///
    /// # Errors
    ///
    /// When a program is missing or it does not build.
    pub fn guest(self) -> Result<PathBuf> {
        Project::guest(self)?.component()
    }
}

/// Those that can be built, and for each of the others why not.
pub fn available() -> (Vec<Language>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for language in Language::ALL {
        match language.require() {
            Ok(()) => found.push(language),
            Err(why) => missing.push(format!("{}: {why:#}", language.name())),
        }
    }
    (found, missing)
}
