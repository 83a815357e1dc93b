//! vSphere by a third party: govmomi's vcsim, for the time of a test, behind a certificate of an authority of the test's own.
//!
//! Tests make what an administrator of vCenter would have made (guests with names and addresses, tags) and look at the outcome with
//! [`Vcsim::govc`], VMware's own client. Machines and their ids are the same at each start; a server starts within half a second, so each
//! test has its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use tempfile::TempDir;

use crate::authority::Authority;
use crate::child::Child;
use crate::gate::Gate;
use crate::moto::log_file;
use crate::port;

/// Who may log in. (A name with a domain is refused by vcsim.)
pub const USERNAME: &str = "ccm";

/// With this password. XML and URLs have to escape it.
pub const PASSWORD: &str = "s3<&\"'cret";

const START: Duration = Duration::from_secs(180);

/// What vCenter manages from the start.
#[derive(Debug, Clone, Copy)]
pub struct VcsimOptions {
    /// Datacenters, `DC0` and so on.
    pub datacenters: u16,
    /// Clusters in each datacenter, `DC0_C0` and so on.
    pub clusters: u16,
    /// Hosts in each cluster, `DC0_C0_H0` and so on. Each datacenter has one host without a cluster besides, `DC0_H0`.
    pub hosts: u16,
    /// Machines on each host without a cluster (`DC0_H0_VM0`), and as many in the resource pool of each cluster (`DC0_C0_RP0_VM0`).
    pub machines: u16,
    /// Each call takes that long.
    pub delay: Duration,
    /// Volumes, by the server of `tests/vcsim`; none for vcsim as it is released.
    pub volumes: Option<VolumeOptions>,
}

/// What Cloud Native Storage does from the start.
#[derive(Debug, Clone, Copy)]
pub struct VolumeOptions {
    /// Volumes that fit a machine.
    pub disks: u16,
    /// Each task takes that long.
    pub task_delay: Duration,
    /// Datastores in each datacenter, `LocalDS_0` and so on, each on all of its hosts.
    pub datastores: u16,
}

impl Default for VolumeOptions {
    /// As vCenter has it, but with tasks that are done at once.
    fn default() -> Self {
        Self {
            disks: 59,
            task_delay: Duration::ZERO,
            datastores: 1,
        }
    }
}

impl Default for VcsimOptions {
    /// Two datacenters with four machines each.
    fn default() -> Self {
        Self {
            datacenters: 2,
            clusters: 1,
            hosts: 2,
            machines: 2,
            delay: Duration::ZERO,
            volumes: None,
        }
    }
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualMachine {
    /// Its place in the inventory, such as `/DC0/vm/DC0_H0_VM0`, by which govc finds it.
    pub path: String,
    /// Its name in the inventory.
    pub name: String,
    /// Its managed object, such as `vm-91`.
    pub reference: String,
    /// The id in its BIOS, from which provider ids are made.
    pub bios_uuid: String,
    /// The id that vCenter gave it.
    pub instance_uuid: String,
    /// `poweredOn`, `poweredOff` or `suspended`.
    pub power: String,
    /// Name and first address that the guest has told, if it has.
    pub guest: Option<(String, String)>,
}

impl VirtualMachine {
    /// As it stands in a Node.
    pub fn provider_id(&self) -> String {
        format!("vsphere://{}", self.bios_uuid)
    }
}

/// A running vcsim. Dropping it ends it.
#[derive(Debug)]
pub struct Vcsim {
    process: Child,
    programs: xtask::servers::vcsim::Programs,
    address: String,
    authority: PathBuf,
    certificate: Vec<u8>,
    folder: TempDir,
    options: VcsimOptions,
}

impl Vcsim {
    /// Starts a server. Builds the programs first when that has not been done yet (two minutes, with progress).
    ///
    /// # Errors
    ///
    /// When Go is missing, or the server does not start (with the end of its log).
    pub async fn start(options: VcsimOptions) -> Result<Self> {
        blocking(move || {
            let folder = tempfile::tempdir().context("making a folder")?;
            let certificate = certify(folder.path())?;
            let mut programs = xtask::servers::vcsim::programs()?;
            if options.volumes.is_some() {
                programs.vcsim = xtask::servers::vcsim::with_volumes()?;
            }
            let address = port::address()?;
            Ok(Self {
                process: spawn(&programs.vcsim, folder.path(), &address, &options)?,
                programs,
                address,
                authority: folder.path().join("ca.pem"),
                certificate,
                folder,
                options,
            })
        })
        .await
    }

    /// Ends the server and starts it again at the same address with what it had at first: sessions, tags, guests and tasks are gone, machines and
    /// their ids are the same.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn restart(self) -> Result<Self> {
        blocking(move || {
            let Self {
                process,
                programs,
                address,
                authority,
                certificate,
                folder,
                options,
            } = self;
            process.kill()?;
            let process = spawn(&programs.vcsim, folder.path(), &address, &options)?;
            Ok(Self {
                process,
                programs,
                address,
                authority,
                certificate,
                folder,
                options,
            })
        })
        .await
    }

    /// Where it listens, as `127.0.0.1:PORT`: `https://ADDRESS/sdk` for SOAP, `https://ADDRESS/rest` for tags. Its certificate holds for
    /// `127.0.0.1` and `localhost`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The port of that address.
    pub fn port(&self) -> u16 {
        let port = self.address.rsplit(':').next().and_then(|port| port.parse().ok());
        port.expect("the address ends in a port")
    }

    /// The certificate, in PEM, of the authority that has signed the server's.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The server's certificate in DER, of which tests make thumbprints.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// A proxy in front of the server, with the server's own certificate, which can make faults.
    ///
    /// # Errors
    ///
    /// When it cannot listen.
    pub async fn gate(&self) -> Result<Gate> {
        let file = |name: &str| self.folder.path().join(name);
        Gate::to_tls(&self.address, &self.authority, &file("server.pem"), &file("server.key")).await
    }

    /// A proxy with the server's own certificate in front of another server, at this plain URL: an NSX manager beside the vCenter.
    ///
    /// # Errors
    ///
    /// When it cannot listen.
    pub async fn gate_to(&self, url: &str) -> Result<Gate> {
        let file = |name: &str| self.folder.path().join(name);
        Gate::tls_to_url(url, &file("server.pem"), &file("server.key")).await
    }

    /// What the server has written.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.process.runs()
    }

    /// Runs govc and gives what it prints.
    ///
    /// # Errors
    ///
    /// When it fails; with what it says.
    pub async fn govc(&self, arguments: &[&str]) -> Result<String> {
        let mut govc = Command::new(&self.programs.govc);
        govc.args(arguments)
            .env("GOVC_URL", format!("https://{}/sdk", self.address))
            .env("GOVC_USERNAME", USERNAME)
            .env("GOVC_PASSWORD", PASSWORD)
            .env("GOVC_TLS_CA_CERTS", &self.authority)
            .env("GOVC_INSECURE", "0")
            .env("GOVMOMI_HOME", self.folder.path());
        let what = arguments.join(" ");
        blocking(move || xtask::tools::output(&mut govc).with_context(|| format!("govc {what}"))).await
    }

    /// All machines, in the order of their paths.
    ///
    /// # Errors
    ///
    /// When vcsim does not answer.
    pub async fn machines(&self) -> Result<Vec<VirtualMachine>> {
        let paths = self.govc(&["find", "/", "-type", "m"]).await?;
        let properties = [
            "name",
            "config.uuid",
            "config.instanceUuid",
            "runtime.powerState",
            "guest.hostName",
            "guest.ipAddress",
        ];
        let collect = [&["object.collect", "-json", "-type", "m", "/"], properties.as_slice()].concat();
        let collected = self.govc(&collect).await?;
        // One document after the other.
        let documents = serde_json::Deserializer::from_str(&collected).into_iter::<Value>();
        let mut machines = documents
            .map(|document| machine(&document.context("reading what govc says")?, &paths))
            .collect::<Result<Vec<_>>>()?;
        machines.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(machines)
    }

    /// The machine with this name in the inventory.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn machine(&self, name: &str) -> Result<VirtualMachine> {
        let found = self.machines().await?.into_iter().find(|machine| machine.name == name);
        found.with_context(|| format!("vcsim has no machine {name}"))
    }

    /// Lets the machine's guest tell this host name and this address, as VMware Tools do some time after its start.
    ///
    /// # Errors
    ///
    /// When there is no such machine.
    pub async fn set_guest(&self, path: &str, host_name: &str, address: &str) -> Result<()> {
        let (name, address) = (
            format!("SET.guest.hostName={host_name}"),
            format!("SET.guest.ipAddress={address}"),
        );
        self.govc(&["vm.change", "-vm", path, "-e", &name, "-e", &address])
            .await
            .map(drop)
    }

    /// Makes a tag in a category, which is made too if it is not there, and attaches it to an object of the inventory (`/DC0`,
    /// `/DC0/host/DC0_C0`).
    ///
    /// # Errors
    ///
    /// When there is no such object.
    pub async fn tag(&self, category: &str, tag: &str, path: &str) -> Result<()> {
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        if !lines(self.govc(&["tags.category.ls"]).await?).contains(&category.to_owned()) {
            self.govc(&["tags.category.create", category]).await?;
        }
        if !lines(self.govc(&["tags.ls", "-c", category]).await?).contains(&tag.to_owned()) {
            self.govc(&["tags.create", "-c", category, tag]).await?;
        }
        self.govc(&["tags.attach", "-c", category, tag, path]).await.map(drop)
    }

    /// Switches a machine off, hard.
    ///
    /// # Errors
    ///
    /// When there is no such machine or it is off already.
    pub async fn power_off(&self, path: &str) -> Result<()> {
        self.govc(&["vm.power", "-off", "-force", path]).await.map(drop)
    }

    /// Deletes a machine.
    ///
    /// # Errors
    ///
    /// When there is no such machine.
    pub async fn destroy(&self, path: &str) -> Result<()> {
        self.govc(&["vm.destroy", path]).await.map(drop)
    }

    /// Ends all sessions but the one of govc, as vCenter does with idle ones. Gives how many there were.
    ///
    /// # Errors
    ///
    /// When vcsim does not answer.
    pub async fn end_sessions(&self) -> Result<usize> {
        let listed: Value = serde_json::from_str(&self.govc(&["session.ls", "-json"]).await?)?;
        let own = &listed["currentSession"]["key"];
        let sessions = listed["sessionList"].as_array().context("govc lists no sessions")?;
        let others: Vec<&str> = sessions
            .iter()
            .filter(|session| session["key"] != *own)
            .filter_map(|session| session["key"].as_str())
            .collect();
        for session in &others {
            self.govc(&["session.rm", session]).await?;
        }
        Ok(others.len())
    }
}

/// Reads one document of `object.collect`.
fn machine(document: &Value, paths: &str) -> Result<VirtualMachine> {
    let changes = document["changeSet"]
        .as_array()
        .with_context(|| format!("no properties in {document}"))?;
    let value = |name: &str| {
        let change = changes.iter().find(|change| change["name"] == name);
        change.and_then(|change| change["val"].as_str()).map(str::to_owned)
    };
    let needed = |name: &str| value(name).ok_or_else(|| anyhow!("no {name} in {document}"));
    let name = needed("name")?;
    let path = paths.lines().find(|path| path.rsplit('/').next() == Some(&name));
    Ok(VirtualMachine {
        path: path
            .with_context(|| format!("{name} has no place in the inventory"))?
            .to_owned(),
        reference: document["obj"]["value"].as_str().unwrap_or_default().to_owned(),
        bios_uuid: needed("config.uuid")?,
        instance_uuid: needed("config.instanceUuid")?,
        power: needed("runtime.powerState")?,
        guest: value("guest.hostName").zip(value("guest.ipAddress")),
        name,
    })
}

/// Makes an authority and a certificate of the server's; gives the latter in DER.
fn certify(folder: &Path) -> Result<Vec<u8>> {
    let authority = Authority::new()?;
    let server = authority.server()?;
    for (name, text) in [
        ("ca.pem", authority.pem()),
        ("server.pem", server.certificate),
        ("server.key", server.key),
    ] {
        fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(server.der)
}

/// Starts the server; its log is in a folder that outlives it.
fn spawn(program: &Path, folder: &Path, address: &str, options: &VcsimOptions) -> Result<Child> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut arguments = vec!["-l".to_owned(), address.to_owned()];
    for (flag, value) in [
        ("-username", USERNAME.to_owned()),
        ("-password", PASSWORD.to_owned()),
        ("-tlscert", file("server.pem")),
        ("-tlskey", file("server.key")),
        ("-dc", options.datacenters.to_string()),
        ("-cluster", options.clusters.to_string()),
        ("-host", options.hosts.to_string()),
        ("-vm", options.machines.to_string()),
        ("-delay", options.delay.as_millis().to_string()),
    ] {
        arguments.extend([flag.to_owned(), value]);
    }
    if let Some(volumes) = &options.volumes {
        for (flag, value) in [
            ("-disks", volumes.disks.to_string()),
            ("-task-delay", volumes.task_delay.as_millis().to_string()),
            ("-ds", volumes.datastores.to_string()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
    }
    let process = Child::start(program, &arguments, &log_file("vcsim")?)?;
    // It says where it listens, and with which password, once it does.
    process.said("export GOVC_URL=", START)?;
    Ok(process)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("a thread that handles vcsim panicked")?
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;

    #[tokio::test]
    async fn guest_tags_and_power_last_as_long_as_the_server() {
        let vcsim = Vcsim::start(VcsimOptions::default()).await.unwrap();
        let machines = vcsim.machines().await.unwrap();
        assert_eq!(machines.len(), 8, "{machines:?}");
        let first = machines[0].clone();
        assert_eq!(
            (first.path.as_str(), first.guest.as_ref()),
            ("/DC0/vm/DC0_C0_RP0_VM0", None)
        );

        vcsim.set_guest(&first.path, "node-1", "10.0.0.5").await.unwrap();
        vcsim.power_off(&first.path).await.unwrap();
        vcsim.tag("k8s-zone", "a", "/DC0/host/DC0_C0").await.unwrap();
        vcsim.tag("k8s-zone", "b", "/DC1").await.unwrap();
        vcsim.destroy("/DC0/vm/DC0_C0_RP0_VM1").await.unwrap();
        let changed = vcsim.machine("DC0_C0_RP0_VM0").await.unwrap();
        let expected = VirtualMachine {
            power: "poweredOff".into(),
            guest: Some(("node-1".into(), "10.0.0.5".into())),
            ..first.clone()
        };
        assert_eq!(changed, expected);
        let gate = vcsim.gate().await.unwrap();
        let mut trusted = Config::new(gate.url().parse().unwrap());
        trusted.root_cert = Some(vec![crate::tls::certificate(vcsim.authority()).unwrap()]);
        let about = http::Request::get("/about").body(Vec::new()).unwrap();
        let about = Client::try_from(trusted).unwrap().request_text(about).await.unwrap();
        assert!(about.contains("RetrieveServiceContent"), "{about}");
        let tags = vcsim
            .govc(&["tags.attached.ls", "-r", "/DC0/host/DC0_C0"])
            .await
            .unwrap();
        assert_eq!(tags.trim(), "a");
        assert!(vcsim.machine("DC0_C0_RP0_VM1").await.is_err());

        let vcsim = vcsim.restart().await.unwrap();
        assert_eq!(vcsim.machines().await.unwrap(), machines, "the same ids, and no guests");
    }

    #[tokio::test]
    async fn what_govc_refuses_is_an_error_in_its_words() {
        let vcsim = Vcsim::start(VcsimOptions::default()).await.unwrap();
        let error = vcsim.power_off("/DC0/vm/nobody").await.unwrap_err();
        assert!(format!("{error:#}").contains("nobody"), "{error:#}");
        assert_eq!(vcsim.end_sessions().await.unwrap(), 0);
    }
}
