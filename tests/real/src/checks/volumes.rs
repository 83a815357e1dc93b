//! Volumes: a claim becomes a disk of the cloud at the machine where its Pod lands, grows, moves with its data, is copied by a snapshot, and goes.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::Disk;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{Api, LogParams};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Checks;
use crate::manager::pods::is_ready;
use crate::process::{with_command_line, with_variable};
use crate::volumes::{DRIVER, LOOK, claim, keeper, snapshot};

/// The claim.
const CLAIM: &str = "data";

/// The claim that begins with the snapshot's content.
const COPY: &str = "copy";

/// The snapshot.
const SNAPSHOT: &str = "before-the-second-pod";

/// KiB of a file system on so many GiB, at least: some of it is the file system's own.
const USABLE: u64 = 900 << 10;

/// What tells Kubernetes that a machine is off for sure, so that its volumes may be used elsewhere.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

impl Checks<'_> {
    /// All of it, between the first two machines, with the classes that `prepared` has.
    pub(super) async fn volumes(&self, names: &[String], prepared: &Value) -> Result<()> {
        let [first, second, ..] = names else {
            bail!("volumes need two machines to move between");
        };
        self.kubectl.apply(prepared)?;
        for name in names {
            self.driver_runs(name).await?;
        }
        self.a_claim_becomes_a_disk(first).await?;
        self.a_volume_outlives_kubelet_and_driver(first).await?;
        self.a_volume_grows(first).await?;
        self.a_snapshot_is_taken().await?;
        self.a_volume_moves(first, second).await?;
        self.a_snapshot_is_restored(second).await?;
        self.volumes_go().await
    }

    /// Kubelet knows the driver, from what Cloudwit wrote on its Node.
    async fn driver_runs(&self, machine: &str) -> Result<()> {
        let nodes: Api<CSINode> = Api::all(self.client.clone());
        let look = async || {
            let drivers = nodes.get_opt(machine).await?.map(|node| node.spec.drivers);
            Ok(drivers.into_iter().flatten().find(|driver| driver.name == DRIVER))
        };
        let driver = self
            .narrator
            .until(
                &format!("kubelet of {machine} has registered the driver {DRIVER}"),
                look,
            )
            .await?;
        self.narrator.say(&format!(
            "the kubelet of {machine} has registered the driver {DRIVER}: the machine is {} in the cloud",
            driver.node_id
        ));
        Ok(())
    }

    /// A Pod with a claim is scheduled, and only then the disk is made, where the Pod is.
    async fn a_claim_becomes_a_disk(&self, machine: &str) -> Result<()> {
        let started = Instant::now();
        self.kubectl.apply(&claim(CLAIM, 1, None))?;
        self.kubectl.apply(&keeper("first", machine, CLAIM))?;
        let lines = self.keeper_runs("first").await?;
        if lines != ["written by first on ".to_owned() + machine] {
            bail!("a new volume holds {lines:?}");
        }
        let disk = self.only_disk().await?;
        self.attached_to(&disk, machine).await?;
        self.narrator.say(&format!(
            "claim {CLAIM} is {} in the cloud, of {} GiB, attached to {machine}, formatted and mounted; its Pod has written {:.1} s after both were made",
            disk.id,
            disk.spec.size >> 30,
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Both are killed and started again: the Pod goes on with its volume.
    async fn a_volume_outlives_kubelet_and_driver(&self, machine: &str) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let before = started_containers(&pods.get("first").await?);
        let driver = || {
            with_variable(
                &format!("csi-node\0--driver-name={DRIVER}\0"),
                &format!("NODE_NAME={machine}"),
            )
        };
        let kubelet = || with_command_line(&format!("/{machine}/kubelet.yaml\0"));
        for running in [&driver as &dyn Fn() -> Vec<u32>, &kubelet] {
            let old = running();
            let [pid] = old.as_slice() else {
                bail!(
                    "{} processes of the driver or of kubelet run on {machine}, not one",
                    old.len()
                );
            };
            let raw = pid.to_owned().try_into().ok().and_then(Pid::from_raw);
            kill_process(raw.context("a process without a number")?, Signal::KILL).context("killing a process")?;
            let look = async || Ok(running().iter().any(|new| new != pid).then_some(()));
            self.narrator.until("what was killed runs again", look).await?;
        }
        self.narrator
            .until("kubelet serves logs again", async || {
                Ok(self.looks("first").await.ok().filter(|looks| !looks.is_empty()))
            })
            .await?;
        let after = started_containers(&pods.get("first").await?);
        if before != after {
            bail!("the Pod's containers were started at {before:?}, and again at {after:?}");
        }
        self.narrator.say(&format!(
            "kubelet and `cloudwit csi-node` of {machine} were killed with SIGKILL and run again; the Pod did not notice"
        ));
        Ok(())
    }

    /// The claim asks for more: the disk grows in the cloud, and the file system while the Pod uses it.
    async fn a_volume_grows(&self, machine: &str) -> Result<()> {
        let started = Instant::now();
        let patch = json!({ "spec": { "resources": { "requests": { "storage": "3Gi" } } } });
        self.kubectl
            .run(&["patch", "pvc", CLAIM, "--type=merge", "-p", &patch.to_string()])?;
        let size = self
            .narrator
            .until("the Pod sees a larger file system", async || {
                let looks = self.looks("first").await?;
                Ok(looks.last().map(|look| look.size).filter(|size| *size > 3 * USABLE))
            })
            .await?;
        let disk = self.only_disk().await?;
        if disk.spec.size != 3 << 30 {
            bail!("the disk has {} bytes in the cloud", disk.spec.size);
        }
        self.narrator.say(&format!(
            "claim {CLAIM} requested 3 GiB: {} has grown, and the Pod on {machine} sees {} MiB {:.1} s later, without a restart",
            disk.id,
            size >> 10,
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// A snapshot of the volume while it is used.
    async fn a_snapshot_is_taken(&self) -> Result<()> {
        let started = Instant::now();
        self.kubectl.apply(&snapshot(SNAPSHOT, CLAIM))?;
        let look = async || {
            let text = self.kubectl.run(&["get", "volumesnapshot", SNAPSHOT, "-o", "json"])?;
            let found: Value = serde_json::from_str(&text).context("reading a snapshot")?;
            let ready = found["status"]["readyToUse"] == true;
            Ok(ready.then(|| found["status"]["restoreSize"].to_string()))
        };
        let size = self.narrator.until("the snapshot is ready", look).await?;
        let state = self.cloud.state().await?;
        let [made] = state.snapshots.as_slice() else {
            bail!("the cloud has {} snapshots", state.snapshots.len());
        };
        self.narrator.say(&format!(
            "VolumeSnapshot {SNAPSHOT} is {} in the cloud, ready after {:.1} s, for volumes of at least {size}",
            made.id,
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// The Pod goes, and another one on another machine finds what it wrote.
    async fn a_volume_moves(&self, from: &str, to: &str) -> Result<()> {
        let started = Instant::now();
        self.kubectl.run(&["delete", "pod", "first"])?;
        self.kubectl.apply(&keeper("second", to, CLAIM))?;
        let lines = self.keeper_runs("second").await?;
        let wanted = [
            format!("written by first on {from}"),
            format!("written by second on {to}"),
        ];
        if lines != wanted {
            bail!("the volume holds {lines:?} after its move");
        }
        self.attached_to(&self.only_disk().await?, to).await?;
        self.narrator.say(&format!(
            "its Pod was deleted and another one made on {to}: the disk followed, with what was written on {from}, in {:.1} s",
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// A claim with the snapshot's content, on the machine that has the original mounted.
    async fn a_snapshot_is_restored(&self, machine: &str) -> Result<()> {
        let started = Instant::now();
        self.kubectl.apply(&claim(COPY, 4, Some(SNAPSHOT)))?;
        self.kubectl.apply(&keeper("third", machine, COPY))?;
        let lines = self.keeper_runs("third").await?;
        let own = format!("written by third on {machine}");
        if lines.len() != 2 || lines.last() != Some(&own) || lines.iter().any(|line| line.contains("second")) {
            bail!("the restored volume holds {lines:?}");
        }
        let size = self
            .narrator
            .until("the restored file system fills its disk", async || {
                let looks = self.looks("third").await?;
                Ok(looks.last().map(|look| look.size).filter(|size| *size > 4 * USABLE))
            })
            .await?;
        self.narrator.say(&format!(
            "claim {COPY} of 4 GiB began as the snapshot, has what was written before it and nothing later, and {} MiB, {:.1} s after it was made",
            size >> 10,
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Pods, claims and the snapshot are deleted: nothing stays in the cloud.
    async fn volumes_go(&self) -> Result<()> {
        let started = Instant::now();
        self.kubectl.run(&["delete", "pod", "second", "third"])?;
        self.kubectl.run(&["delete", "pvc", CLAIM, COPY])?;
        self.kubectl.run(&["delete", "volumesnapshot", SNAPSHOT])?;
        self.nothing_is_left().await?;
        let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(self.client.clone());
        let look = async || Ok(claims.list(&Default::default()).await?.items.is_empty().then_some(()));
        self.narrator.until("the claims are gone", look).await?;
        self.narrator.say(&format!(
            "Pods, claims and snapshot are deleted; the cloud has neither disks nor snapshots {:.1} s later",
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    async fn nothing_is_left(&self) -> Result<()> {
        let look = async || {
            let state = self.cloud.state().await?;
            Ok((state.disks.is_empty() && state.snapshots.is_empty()).then_some(()))
        };
        let what = "the cloud has neither disks nor snapshots";
        self.narrator.until(what, look).await
    }

    /// A Pod with a volume runs on a machine.
    pub(super) async fn a_volume_is_written_on(&self, machine: &str) -> Result<()> {
        self.kubectl.apply(&claim(CLAIM, 1, None))?;
        self.kubectl.apply(&keeper("before", machine, CLAIM))?;
        self.keeper_runs("before").await.map(drop)
    }

    /// The machine is off. Once somebody says that it is out of service, as the one who runs a cluster does then, its volume is free for a Pod elsewhere.
    pub(super) async fn its_volume_goes_on_at(&self, machine: &str, off: &str) -> Result<()> {
        let started = Instant::now();
        self.kubectl.run(&["taint", "node", off, OUT_OF_SERVICE])?;
        self.kubectl.apply(&keeper("after", machine, CLAIM))?;
        let lines = self.keeper_runs("after").await?;
        if lines
            != [
                format!("written by before on {off}"),
                format!("written by after on {machine}"),
            ]
        {
            bail!("the volume of a machine that lost its power holds {lines:?}");
        }
        self.attached_to(&self.only_disk().await?, machine).await?;
        self.narrator.say(&format!(
            "{off} is marked as out of service: the volume of its Pod is attached to {machine}, with its data, {:.1} s later",
            started.elapsed().as_secs_f64()
        ));
        self.kubectl
            .run(&["taint", "node", off, &format!("{OUT_OF_SERVICE}-")])?;
        self.kubectl.run(&["delete", "pod", "after"])?;
        self.kubectl.run(&["delete", "pvc", CLAIM])?;
        self.nothing_is_left().await
    }

    /// Waits until a Pod has written to its volume and looked at it. Gives the lines that were there then, its own last.
    async fn keeper_runs(&self, name: &str) -> Result<Vec<String>> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let runs = async || Ok(Some(pods.get(name).await?).filter(is_ready));
        self.narrator
            .until(&format!("Pod {name} runs with its volume"), runs)
            .await?;
        self.narrator
            .until(&format!("Pod {name} has looked at its volume"), async || {
                Ok((!self.looks(name).await?.is_empty()).then_some(()))
            })
            .await?;
        let text = self.log(name).await?;
        let lines = text.lines().filter(|line| !line.starts_with(LOOK));
        Ok(lines.map(str::to_owned).collect())
    }

    /// What a Pod has seen of its volume.
    async fn looks(&self, name: &str) -> Result<Vec<Look>> {
        Ok(self.log(name).await?.lines().filter_map(Look::parse).collect())
    }

    async fn log(&self, name: &str) -> Result<String> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        pods.logs(name, &LogParams::default())
            .await
            .with_context(|| format!("reading the log of Pod {name}"))
    }

    async fn only_disk(&self) -> Result<Disk> {
        let mut disks = self.cloud.state().await?.disks;
        match disks.pop() {
            Some(disk) if disks.is_empty() => Ok(disk),
            last => bail!(
                "the cloud has {} disks, not one",
                disks.len() + usize::from(last.is_some())
            ),
        }
    }

    /// Checks that a disk is attached to this machine and to no other.
    async fn attached_to(&self, disk: &Disk, machine: &str) -> Result<()> {
        let state = self.cloud.state().await?;
        let id = state
            .machines
            .iter()
            .find(|one| one.name == machine)
            .map(|one| one.id.clone());
        let holders: Vec<&String> = disk.attachments.iter().map(|one| &one.machine).collect();
        if holders.iter().copied().ne(&id) {
            bail!("disk {} is attached to {holders:?}, not to {id:?}", disk.id);
        }
        Ok(())
    }
}

/// One look of a Pod at its volume.
struct Look {
    /// Of the file system, in KiB.
    size: u64,
}

impl Look {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(LOOK)?.split_whitespace();
        Some(Self {
            size: words.next()?.parse().ok()?,
        })
    }
}

/// When the containers of a Pod were started.
fn started_containers(pod: &Pod) -> Vec<Option<String>> {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.container_id.clone()).collect()
}
