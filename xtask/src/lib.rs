//! The commands of this repository, and the building of tools and guests that tests share with them.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`workspace`] | where things are |
//! | [`tools`] | what has to be installed, and the one line that says so when it is not |
//! | [`process`] | CPU time and memory of a process |
//! | [`progress`] | runs a long command and shows how far it is |
//! | [`controlplane`] | builds the API server of the tests, once for each version of its sources |
//! | [`guests`] | builds provider components |

pub mod controlplane;
pub mod guests;
pub mod process;
pub mod progress;
pub mod tools;
pub mod workspace;
