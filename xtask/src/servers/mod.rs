//! The third-party servers of the tests: all of them are got before the tests begin, while the compiler is at work.

pub mod cosign;
pub mod csi_sanity;
pub mod oci_registry;
pub mod promtool;
pub mod python;
pub mod vcsim;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};

use crate::kubernetes::sidecars;
use crate::run::progress;
use crate::run::steps::Found;
use crate::servers::python::Environment;
use crate::{debian, workspace};

/// The Python environment of moto and boto3.
///
/// # Errors
///
/// As [`Environment::get`].
pub fn moto() -> Result<Environment> {
    Environment::get("moto", "tests/python/moto.txt")
}

/// The Python environment of OpenStack's services and its SDK.
///
/// # Errors
///
/// As [`Environment::get`].
pub fn openstack() -> Result<Environment> {
    Environment::get("openstack", "tests/python/openstack.txt")
}

/// Clouds that stand-ins answer for (`tests/stand-ins`), each with an environment that has the cloud's own client.
const STAND_INS: &[&str] = &[
    "alibaba",
    "azure",
    "baidu",
    "cloudstack",
    "gce",
    "mesos",
    "nsx",
    "ovirt",
    "photon",
    "rackspace",
    "rancher",
];

/// Headers with which the C part of oVirt's SDK is compiled.
const LIBXML2: &str = "/usr/include/libxml2";

/// The Python environment of a stand-in and of the cloud's own client.
///
/// # Errors
///
/// As [`Environment::get`].
pub fn stand_in(cloud: &str) -> Result<Environment> {
    if cloud == "ovirt" && !Path::new(LIBXML2).exists() {
        // Without them the build says what is missing.
        debian::install(&["gcc", "python3-dev", "libxml2-dev"])?;
    }
    Environment::get(cloud, &format!("tests/python/{cloud}.txt"))
}

/// The program that starts OpenStack's services, and its first arguments. Prepares their databases if that has not been done yet (half a minute,
/// with progress).
///
/// # Errors
///
/// As [`Environment::get`], and when a service's own tool fails; with the end of what it said.
pub fn openstack_cloud() -> Result<(PathBuf, Vec<String>)> {
    let python = openstack()?.python();
    let script = workspace::root().join("tests/openstack-cloud/cloud.py");
    let cache = workspace::target().join("tools/openstack-cloud");
    let arguments = [script, "--cache".into(), cache].map(|argument| argument.display().to_string());
    let mut prepare = Command::new("nice");
    prepare.arg(&python).args(&arguments).arg("--prepare");
    progress::run(&mut prepare, "preparing the databases of OpenStack", |line| {
        line.strip_prefix("PROGRESS=").map(str::to_owned)
    })?;
    Ok((python, arguments.into()))
}

/// Servers that are being got.
pub struct Coming(JoinHandle<Result<Found>>);

/// Begins to get all of them. They compete with nothing that is asked for: their builds are nice.
///
/// # Errors
///
/// When Python or Go is missing; says how to get it.
pub fn start() -> Result<Coming> {
    python::get_python()?;
    Ok(Coming(thread::spawn(get)))
}

impl Coming {
    /// Waits until they are there.
    ///
    /// # Errors
    ///
    /// When one cannot be had.
    pub fn wait(self) -> Result<Found> {
        self.0
            .join()
            .ok()
            .context("the thread that gets third-party servers panicked")?
    }
}

fn get() -> Result<Found> {
    moto()?;
    openstack_cloud()?;
    vcsim::programs()?;
    vcsim::with_volumes()?;
    csi_sanity::program()?;
    promtool::program()?;
    oci_registry::program()?;
    cosign::program()?;
    sidecars::programs()?;
    for cloud in STAND_INS {
        stand_in(cloud)?;
    }
    Ok(format!(
        "moto (AWS), OpenStack's services, vcsim {} (vSphere), csi-sanity {} with sidecars, promtool {}, an OCI registry with cosign {}, and stand-ins for {} further clouds",
        vcsim::TOOL.version,
        csi_sanity::TOOL.version,
        promtool::TOOL.version,
        cosign::TOOL.version,
        STAND_INS.len()
    )
    .into())
}
