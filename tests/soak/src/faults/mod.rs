//! What each fault does, and how it ends.

pub(crate) mod api_proxy;
pub(crate) mod dns;
pub(crate) mod namespace;
pub(crate) mod schedule;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloudwit_sim_cloud::{Fault, FaultKind, Operation, SimCloud};
use cloudwit_test_support::{ApiServer, within};
use rustix::process::{Pid, Resource, Rlimit};

use crate::canary::Needles;
use crate::cluster::Cluster;
use crate::faults::api_proxy::{ApiFault, ApiProxy};
use crate::faults::dns::NameServer;
use crate::faults::schedule::Disturbance;
use crate::files::Files;
use crate::replica::Replica;

/// How long the answer to a fault may take to come: a new leader, a new certificate, the use of a new token.
const EFFECT: Duration = Duration::from_secs(60);

/// How long each DNS answer takes when it is slow.
const DNS_DELAY: Duration = Duration::from_secs(4);

/// How long each request takes when the API server is slow; less than a leader has to renew its Lease.
const API_DELAY: Duration = Duration::from_millis(1200);

/// Pause between two cuts of all watches.
const CUTS: Duration = Duration::from_secs(1);

/// Descriptors that are left when they are few.
const SPARE: u64 = 16;

/// A Node in so many is not Ready while the cloud lists nothing.
const SILENT: usize = 5;

/// All that faults are made with.
pub struct Stage {
    /// The API server.
    pub server: ApiServer,
    /// In front of it.
    pub proxy: ApiProxy,
    /// The cloud.
    pub cloud: Arc<SimCloud>,
    /// The name server of the replicas, where they have one of ours.
    pub dns: Option<NameServer>,
    /// What they are started from.
    pub files: Files,
    /// Secrets that must not be seen.
    pub needles: Arc<Needles>,
    /// The objects.
    pub cluster: Cluster,
    /// The small volume of the compile cache, where there is one.
    pub volume: Option<std::path::PathBuf>,
    /// Both replicas.
    pub replicas: [Arc<Replica>; 2],
}

impl Stage {
    /// Which of the replicas leads.
    pub async fn leader(&self) -> Option<usize> {
        for replica in &self.replicas {
            let answer = reqwest::get(format!("{}/metrics", replica.admin));
            let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_secs(2), answer).await else {
                continue;
            };
            let text = answer.text().await.unwrap_or_default();
            let leads = |line: &str| line.starts_with("leader_election_master_status") && line.ends_with(" 1");
            if text.lines().any(leads) {
                return Some(replica.number);
            }
        }
        None
    }

    /// Waits until one of them leads.
    ///
    /// # Errors
    ///
    /// When none does in time.
    pub async fn leads(&self, but: Option<usize>) -> Result<usize> {
        let led = within(EFFECT, || async {
            self.leader().await.filter(|number| Some(*number) != but)
        })
        .await;
        led.map_err(|_| anyhow::anyhow!("no replica has taken the lead within {EFFECT:?}"))
    }

    /// Makes the fault for so long, and ends it. An error says that it did not have its effect.
    ///
    /// # Errors
    ///
    /// When the fault cannot be made, or what should answer it does not come.
    pub async fn disturb(&self, what: Disturbance, lasts: Duration) -> Result<()> {
        let wait = tokio::time::sleep(lasts);
        match what {
            Disturbance::CloudErrors => self.cloud_fails(Fault::status(500), wait).await,
            Disturbance::CloudThrottles => self.cloud_fails(Fault::slow_down(2), wait).await,
            Disturbance::CloudGarbage => self.cloud_fails(Fault::new(FaultKind::Garbage), wait).await,
            Disturbance::CloudHangs => self.cloud_fails(Fault::new(FaultKind::Hang), wait).await,
            Disturbance::CloudLosesAnswers => self.cloud_fails(Fault::new(FaultKind::CutAfter).rate(0.5), wait).await,
            Disturbance::CloudEchoesSecrets => self.cloud_fails(Fault::new(FaultKind::Echo), wait).await,
            Disturbance::CloudListsNothing => self.cloud_lists_nothing(wait).await?,
            Disturbance::SlowDns => {
                let dns = self.dns.as_ref().context("there is no name server of ours")?;
                dns.set_delay(DNS_DELAY);
                wait.await;
                dns.set_delay(Duration::ZERO);
            }
            Disturbance::ApiServerAway => self.api_fails(ApiFault::Away, wait).await,
            Disturbance::ApiServerSlow => self.api_fails(ApiFault::Slow(API_DELAY), wait).await,
            Disturbance::WatchesExpire => {
                self.proxy.set(ApiFault::Gone);
                self.proxy.cut_watches();
                wait.await;
                self.proxy.set(ApiFault::None);
            }
            Disturbance::WatchesCut => {
                self.repeat(lasts, CUTS, || {
                    self.proxy.cut_watches();
                    Ok(())
                })
                .await?
            }
            Disturbance::ApiServerRestarts => {
                self.server.stop().await?;
                wait.await;
                self.server.restart().await?;
            }
            Disturbance::LeaderStopped => self.stop_leader(wait).await?,
            Disturbance::LeaderKilled => {
                let leader = self.leads(None).await?;
                self.replicas[leader].signal("KILL");
                wait.await;
                self.leads(None).await?;
            }
            Disturbance::CertificatesRotate => self.rotate_certificates(lasts).await?,
            Disturbance::SecretsRotate => self.rotate_secrets(wait).await?,
            Disturbance::ProviderSwaps => {
                self.repeat(lasts, Duration::from_secs(4), || self.files.vary()).await?;
                self.files.restore_component()?;
            }
            Disturbance::ProviderBroken => {
                self.files.break_component()?;
                wait.await;
                self.files.restore_component()?;
            }
            Disturbance::FewDescriptors => self.few_descriptors(wait).await?,
            Disturbance::CacheFull => self.fill_cache(lasts).await?,
            Disturbance::HostileAlone => wait.await,
        }
        Ok(())
    }

    async fn cloud_fails(&self, fault: Fault, wait: tokio::time::Sleep) {
        self.cloud.set_faults([fault]);
        wait.await;
        self.cloud.set_faults([]);
    }

    async fn api_fails(&self, fault: ApiFault, wait: tokio::time::Sleep) {
        self.proxy.set(fault);
        wait.await;
        self.proxy.set(ApiFault::None);
    }

    async fn cloud_lists_nothing(&self, wait: tokio::time::Sleep) -> Result<()> {
        let silent = self.cluster.one_of(SILENT);
        // All of them at once, before the cloud lies: of Nodes that fall silent one by one while it lies, the brake lets its share go.
        let silenced = self.cluster.set_ready(&silent, None).await;
        // A cloud that says of a deleted Service's load balancer that there is none is believed, here as upstream: what else could end the deletion?
        let lists = [Operation::ListInstances, Operation::ListRoutes];
        self.cloud
            .set_faults(lists.map(|list| Fault::new(FaultKind::Empty).on(list)));
        wait.await;
        self.cloud.set_faults([]);
        self.cluster.set_ready(&silent, Some(true)).await?;
        // Those whose machines went meanwhile are silent for good.
        let gone: Vec<String> = silent
            .into_iter()
            .filter(|name| !self.cluster.is_wanted(name))
            .collect();
        self.cluster.set_ready(&gone, None).await?;
        silenced
    }

    async fn stop_leader(&self, wait: tokio::time::Sleep) -> Result<()> {
        let leader = self.leads(None).await?;
        self.replicas[leader].signal("STOP");
        let successor = self.leads(Some(leader)).await;
        wait.await;
        self.replicas[leader].signal("CONT");
        successor.map(drop)
    }

    /// Repeats something for so long.
    async fn repeat(&self, lasts: Duration, every: Duration, mut what: impl FnMut() -> Result<()>) -> Result<()> {
        let end = tokio::time::Instant::now() + lasts;
        while tokio::time::Instant::now() < end {
            what()?;
            tokio::time::sleep(every).await;
        }
        Ok(())
    }

    async fn rotate_certificates(&self, lasts: Duration) -> Result<()> {
        let end = tokio::time::Instant::now() + lasts;
        loop {
            let certificate = self.files.rotate_certificate(&self.needles)?;
            for replica in &self.replicas {
                let served = within(EFFECT, || async {
                    served(&replica.https).await.as_ref() == Some(&certificate)
                })
                .await;
                ensure!(
                    served.is_ok(),
                    "replica {} does not serve its new certificate within {EFFECT:?}",
                    replica.number
                );
            }
            if tokio::time::Instant::now() >= end {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    /// The cloud takes both tokens for a while, and then the new one alone.
    async fn rotate_secrets(&self, wait: tokio::time::Sleep) -> Result<()> {
        let (old, new) = (self.files.token(), self.files.next_token());
        self.cloud.set_tokens([old, new.clone()]);
        self.files.rotate_token()?;
        let used = within(EFFECT, || async { self.cloud.token_uses().contains_key(&new) }).await;
        self.cloud.set_tokens([new]);
        wait.await;
        ensure!(used.is_ok(), "the new token is not used within {EFFECT:?}");
        Ok(())
    }

    async fn few_descriptors(&self, wait: tokio::time::Sleep) -> Result<()> {
        let mut before = Vec::new();
        for replica in &self.replicas {
            let Some(pid) = replica.pid() else { continue };
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count() as u64);
            let process = Pid::from_raw(i32::try_from(pid)?).context("a process id is not 0")?;
            let old = std::fs::read_to_string(format!("/proc/{pid}/limits")).context("reading limits")?;
            let old = open_files(&old).context("there is no limit of open files")?;
            // The hard limit stays, so that no right is needed to undo it.
            let few = Rlimit {
                current: Some(open + SPARE),
                ..old
            };
            rustix::process::prlimit(Some(process), Resource::Nofile, few)?;
            before.push((process, old));
        }
        wait.await;
        for (process, old) in before {
            // One that has ended meanwhile was started again with the old limit.
            let _ = rustix::process::prlimit(Some(process), Resource::Nofile, old);
        }
        Ok(())
    }

    /// Fills the volume of the cache, and replaces the provider all the time.
    async fn fill_cache(&self, lasts: Duration) -> Result<()> {
        let volume = self.volume.as_ref().context("the cache has no volume of its own")?;
        let file = volume.join("filler");
        // It ends when the volume is full.
        let _ = std::fs::write(&file, vec![0; 1 << 27]);
        let varied = self.repeat(lasts, Duration::from_secs(4), || self.files.vary()).await;
        std::fs::remove_file(&file).context("emptying the volume of the cache")?;
        self.files.restore_component()?;
        varied
    }
}

/// The limit of open files in `/proc/PID/limits`.
fn open_files(limits: &str) -> Option<Rlimit> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
    Some(Rlimit {
        current: numbers.next()?,
        maximum: numbers.next()?,
    })
}

/// The certificate that is served, in DER.
async fn served(https: &str) -> Option<Vec<u8>> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_danger_accept_invalid_certs(true)
        .tls_info(true);
    let answer = client.build().ok()?.get(format!("{https}/livez")).send().await.ok()?;
    let info = answer.extensions().get::<reqwest::tls::TlsInfo>()?;
    info.peer_certificate().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_open_files_is_read() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 unlimited            files\n";
        let limit = open_files(limits).unwrap();
        assert_eq!((limit.current, limit.maximum), (Some(1024), None));
    }
}
