//! The commands of this repository, and the building of tools and guests that tests share with them.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`cli`] | the command line |
//! | [`check`], [`test`], [`sandbox`], [`bench`], [`soak`], [`fuzz`] | one file for each command |
//! | [`bench_work`] | the pieces of work that the benchmark knows |
//! | [`runners`] | runs the test binaries, some at a time |
//! | [`lanes`] | runs programs at the same time |
//! | [`steps`] | runs steps, all of them, and shows what became of each |
//! | [`go_module`] | builds our own Go programs, once for each version of their sources |
//! | [`controlplane`] | the API server of the tests |
//! | [`kubernetes`] | all of Kubernetes in one program, for real Nodes |
//! | [`node_parts`] | what else a real Node is made of |
//! | [`oci`] | writes images |
//! | [`real`] | the sandbox with real Nodes |
//! | [`peer`] | upstream's controllers in Go, which Cloudwit is compared with |
//! | [`servers`] | gets the third-party servers of the tests |
//! | [`python`] | makes the Python environments of third-party servers |
//! | [`go_tool`] | builds programs of others that are written in Go |
//! | [`aws_peer`] | AWS's own controller, for the comparison on AWS |
//! | [`csi_sanity`] | builds Kubernetes' own tests of CSI drivers |
//! | [`sidecars`] | builds Kubernetes' CSI sidecars |
//! | [`oci_registry`] | builds a third party's OCI registry |
//! | [`cosign`] | builds what judges signatures |
//! | [`vcsim`] | builds a third party's vSphere |
//! | [`guests`] | builds provider components |
//! | [`languages`] | builds providers in other languages than Rust |
//! | [`browser`] | the browser of the tests |
//! | [`debian`] | packages of Debian |
//! | [`programs`] | builds Cloudwit, the simulated cloud and the sandbox |
//! | [`image`] | builds the static binary and runs it in an empty root |
//! | [`clouds`] | writes the table of clouds in README.md |
//! | [`release`] | builds what is published |
//! | [`manifests`] | renders the Helm chart to plain YAML |
//! | [`progress`] | runs a long command and shows how far it is |
//! | [`process`] | CPU time and memory of a process |
//! | [`tools`] | what has to be installed, and the one line that says so when it is not |
//! | [`workspace`] | where things are |

pub mod aws_peer;
pub mod bench;
pub mod bench_work;
pub mod browser;
pub mod check;
pub mod cli;
pub mod clouds;
pub mod component_names;
pub mod controlplane;
pub mod cosign;
pub mod csi_sanity;
pub mod debian;
pub mod fuzz;
pub mod go_module;
pub mod go_tool;
pub mod guests;
pub mod image;
pub mod kubernetes;
pub mod lanes;
pub mod languages;
pub mod manifests;
pub mod node_parts;
pub mod oci;
pub mod oci_registry;
pub mod peer;
pub mod process;
pub mod programs;
pub mod progress;
pub mod promtool;
pub mod python;
pub mod real;
pub mod release;
pub mod runners;
pub mod sandbox;
pub mod servers;
pub mod sidecars;
pub mod soak;
pub mod steps;
pub mod test;
pub mod tools;
pub mod vcsim;
pub mod workspace;
