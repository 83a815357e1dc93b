//! The commands of this repository, and the building of tools and guests that tests share with them.
//!
//! | module | what it is about |
//! | ------ | ---------------- |
//! | [`cli`] | the command line |
//! | [`commands`] | one file or folder for each command |
//! | [`release`] | builds what is published |
//! | [`run`] | runs programs, steps and test binaries, and shows how far they are |
//! | [`programs`] | builds Cloudwit, the simulated cloud and the sandbox |
//! | [`guests`] | builds provider components |
//! | [`languages`] | builds providers in other languages than Rust |
//! | [`go`] | builds Go programs, our own and those of others |
//! | [`kubernetes`] | all of Kubernetes in one program, what else a real Node is made of, the API server of the tests, upstream's controllers, CSI sidecars |
//! | [`servers`] | gets the third-party servers of the tests, and what judges us |
//! | [`browser`] | the browser of the tests |
//! | [`debian`] | packages of Debian |
//! | [`tools`] | what has to be installed, and the one line that says so when it is not |
//! | [`workspace`] | where things are |

pub mod browser;
pub mod cli;
pub mod commands;
pub mod debian;
pub mod go;
pub mod guests;
pub mod kubernetes;
pub mod languages;
pub mod programs;
pub mod release;
pub mod run;
pub mod servers;
pub mod tools;
pub mod workspace;
