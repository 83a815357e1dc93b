//! A Cloudwit, its cluster and its cloud; its log is read as a whole.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::Deployment;
use cloudwit_test_support::scenes::site::{Site, expose, is_exposed, is_initialised, join};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

pub const SOON: Duration = Duration::from_secs(180);

/// Everything that runs.
pub struct Stage {
    pub site: Site,
    pub process: Child,
    admin: String,
}

/// What stands before the process starts.
pub struct Ready {
    pub site: Site,
}

impl Ready {
    /// With the provider `sim`. Spans are sent after a fifth of a second.
    pub async fn sim() -> Self {
        Self::sending_after(200).await
    }

    /// With the provider `sim`. Spans are sent after so many milliseconds, or at the end.
    pub async fn sending_after(milliseconds: u32) -> Self {
        Self::with(|| guests::provider("sim"), |deployment| deployment, milliseconds).await
    }

    /// With a test guest under the name `sim`.
    pub async fn guest(name: &'static str) -> Self {
        Self::with(move || guests::test_guest(name), Deployment::bare, 200).await
    }

    async fn with(
        component: impl FnOnce() -> PathBuf + Send + 'static,
        change: impl FnOnce(Deployment) -> Deployment,
        delay: u32,
    ) -> Self {
        let mut site = Site::with(component).await.unwrap();
        let programs = site.folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        wrap(&site.program, &programs.join("cloudwit"), delay);
        site.deployment = change(site.deployment.programs_in(&programs));
        Self { site }
    }

    /// Starts the process with these flags.
    pub fn start(self, flags: &[&str]) -> Stage {
        let (process, admin) = self.site.start(flags).unwrap();
        Stage {
            site: self.site,
            process,
            admin,
        }
    }

    pub async fn joins(&self, name: &str) {
        join(&self.site.cloud, &self.site.client, name).await.unwrap();
    }
}

/// The program with an environment of its own.
fn wrap(program: &Path, script: &Path, delay: u32) {
    let text = format!(
        "#!/bin/sh\nOTEL_BSP_SCHEDULE_DELAY={delay} exec {} \"$@\"\n",
        program.display()
    );
    fs::write(script, text).unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A further process.
pub struct Replica {
    process: Child,
    admin: String,
}

impl Replica {
    /// All that it has written.
    pub fn log(&self) -> String {
        log(&self.process)
    }

    /// A page of it.
    pub async fn page(&self, path: &str) -> String {
        page(&self.admin, path).await
    }
}

fn log(process: &Child) -> String {
    fs::read_to_string(process.log()).unwrap()
}

/// Nothing when there is no answer.
async fn page(admin: &str, path: &str) -> String {
    match reqwest::get(format!("{admin}{path}")).await {
        Ok(answer) => answer.text().await.unwrap_or_default(),
        Err(_) => String::new(),
    }
}

impl Stage {
    /// A machine and its Node, as the kubelet registers it.
    pub async fn joins(&self, name: &str) {
        join(&self.site.cloud, &self.site.client, name).await.unwrap();
    }

    pub async fn until_initialised(&self, name: &str) {
        let client = &self.site.client;
        self.until(&format!("{name} is initialised"), || is_initialised(client, name))
            .await;
    }

    /// A Service with its load balancer.
    pub async fn serves(&self, name: &str) {
        let client = &self.site.client;
        expose(client, name).await.unwrap();
        self.until(&format!("{name} has an address"), || is_exposed(client, name))
            .await;
    }

    /// Waits until it holds; a failure shows the end of the log.
    pub async fn until<Fut: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> Fut) {
        eventually(SOON, what, || {
            let holds = holds();
            async {
                if holds.await {
                    return Ok(());
                }
                Err(self.process.log_end())
            }
        })
        .await;
    }

    /// All that the process has written.
    pub fn log(&self) -> String {
        log(&self.process)
    }

    /// The messages of the Events with this reason about objects of this name.
    pub async fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let about = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
        let events: Api<Event> = Api::all(self.site.client.clone());
        let found = events.list(&about).await.unwrap().items;
        found.into_iter().filter_map(|event| event.message).collect()
    }

    /// A page of the process.
    pub async fn page(&self, path: &str) -> String {
        page(&self.admin, path).await
    }

    /// Another process on the same cluster and cloud.
    pub fn replica(&self, flags: &[&str]) -> Replica {
        let folder = self.site.folder.path().join("replica");
        let component = self.site.deployment.folder().join("providers/sim.wasm");
        let programs = self.site.folder.path().join("programs");
        let deployment = Deployment::new(&folder, &programs, &component).unwrap();
        let started = deployment.start_cloudwit(self.site.server.kubeconfig(), &self.site.cloud.url(), flags);
        let (process, admin) = started.unwrap();
        Replica { process, admin }
    }

    /// The same component with other bytes, as a new build of it would be.
    pub fn replace_component(&self) {
        let file = self.site.deployment.folder().join("providers/sim.wasm");
        let mut bytes = fs::read(&file).unwrap();
        // A custom section more.
        bytes.extend_from_slice(b"\0\x05\x03newX");
        let beside = file.with_extension("new");
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, file).unwrap();
    }

    /// Waits until it has ended by itself.
    pub async fn ends(&mut self) -> ExitStatus {
        let look = || std::future::ready(self.process.ended().unwrap());
        eventually(SOON, "it has ended", look).await
    }

    /// Asks it to end and waits for that.
    pub async fn stop(&mut self) {
        self.process.signal("TERM").unwrap();
        let status = self.ends().await;
        assert!(status.success(), "{status}; {}", self.process.log_end());
    }
}
