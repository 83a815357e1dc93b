//! vSphere, by vcsim: guests that tell their names, and zones from tags. It has neither load balancers nor routes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cloudwit_test_support::clouds::vcsim::{PASSWORD, USERNAME, Vcsim, VcsimOptions};
use cloudwit_test_support::files::vsphere::vsphere_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};

use crate::clouds::{Cloud, Machine, Route};

/// As many machines as the sandbox may ask for.
const MACHINES: u16 = 100;

/// A vCenter with one cluster.
pub struct Vsphere {
    vcsim: Vcsim,
    /// A copy of the authority for whoever looks at vCenter by hand.
    authority: PathBuf,
}

impl Cloud for Vsphere {
    const PROVIDER: &'static str = "vsphere";
    const NAME: &'static str = "vSphere (vcsim)";

    async fn start(deployment: &Deployment) -> Result<Self> {
        let options = VcsimOptions {
            datacenters: 1,
            machines: MACHINES,
            ..VcsimOptions::default()
        };
        let vcsim = Vcsim::start(options).await?;
        vcsim.tag("k8s-zone", "zone-a", "/DC0/host/DC0_C0").await?;
        vcsim.tag("k8s-region", "region-1", "/DC0").await?;
        let authority = std::fs::read_to_string(vcsim.authority()).context("reading vcsim's authority")?;
        let authority = deployment.write("vcenter-ca.pem", &authority)?;
        Ok(Self { vcsim, authority })
    }

    fn url(&self) -> String {
        format!("https://{}", self.vcsim.address())
    }

    fn log(&self) -> PathBuf {
        Path::to_owned(self.vcsim.log())
    }

    fn runs(&self) -> bool {
        self.vcsim.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        vsphere_files(&self.vcsim, deployment)
    }

    fn looks(&self) -> Vec<String> {
        vec![
            format!(
                "export GOVC_URL={}/sdk GOVC_TLS_CA_CERTS={}",
                self.url(),
                self.authority.display()
            ),
            format!("export GOVC_USERNAME={USERNAME} GOVC_PASSWORD={}", quoted(PASSWORD)),
            "target/tools/vcsim-*/govc find / -type m".to_owned(),
        ]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let (node, ip) = (format!("sandbox-{number}"), format!("10.1.0.{number}"));
        let machine = self.vcsim.machine(&format!("DC0_C0_RP0_VM{}", number - 1)).await?;
        self.vcsim.set_guest(&machine.path, &node, &ip).await?;
        Ok(Machine {
            provider_id: machine.provider_id(),
            id: machine.name,
            node,
            system_uuid: machine.bios_uuid,
            labels: vec![
                ("topology.kubernetes.io/zone", "zone-a".to_owned()),
                ("topology.kubernetes.io/region", "region-1".to_owned()),
            ],
            addresses: vec![ip.clone()],
            ip,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let machine = self.vcsim.machine(&machine.id).await?;
        ensure!(machine.guest.is_some(), "{} is none of our machines", machine.name);
        self.vcsim.power_off(&machine.path).await?;
        self.vcsim.destroy(&machine.path).await
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        Ok(None)
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        Ok(None)
    }
}

/// As a shell reads it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
