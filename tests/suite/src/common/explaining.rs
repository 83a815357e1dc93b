//! A running Cloudwit, and the command that asks it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::site::Site;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

pub const SOON: Duration = Duration::from_secs(180);

/// Exit codes, as `cloudwit explain --help` says.
pub const NO_SUCH_OBJECT: i32 = 3;
pub const NO_CLOUDWIT: i32 = 4;

/// An API server, a cloud and a process between them.
pub struct Scene {
    pub site: Site,
    address: String,
    process: Option<Child>,
}

impl Scene {
    /// With the provider `sim`.
    pub async fn new(flags: &[&str]) -> Self {
        Self::on(Site::new().await.unwrap(), flags).await
    }

    /// With a test guest under the name `sim`.
    pub async fn with_guest(name: &'static str, flags: &[&str]) -> Self {
        let mut site = Site::with(move || guests::test_guest(name)).await.unwrap();
        site.deployment = site.deployment.bare();
        Self::on(site, flags).await
    }

    async fn on(site: Site, flags: &[&str]) -> Self {
        let (process, url) = site.start(flags).unwrap();
        let scene = Self {
            site,
            address: url.trim_start_matches("http://").to_owned(),
            process: Some(process),
        };
        eventually(SOON, "the process knows the cluster", || async {
            let (code, _, err) = scene.explain("node nobody");
            if code == NO_SUCH_OBJECT && !err.contains("API server") {
                Ok(())
            } else {
                Err(err)
            }
        })
        .await;
        scene
    }

    /// Ends the process.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// `cloudwit explain` with these arguments: exit code and both outputs.
    pub fn explain(&self, arguments: &str) -> (i32, String, String) {
        let (address, kubeconfig) = (&self.address, self.site.server.kubeconfig().display());
        let ours = [
            "explain".to_owned(),
            format!("--admin-address={address}"),
            format!("--kubeconfig={kubeconfig}"),
        ];
        run(
            &self.site.program,
            ours.iter().map(String::as_str).chain(arguments.split(' ')),
        )
    }

    /// What the process has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.process.as_ref().unwrap().log()).unwrap()
    }

    /// A page of the process.
    pub async fn page(&self, path: &str) -> String {
        let url = format!("http://{}{path}", self.address);
        reqwest::get(url).await.unwrap().text().await.unwrap()
    }

    /// Asks until the answer has all these parts.
    pub async fn until_said(&self, arguments: &str, parts: &[&str]) {
        eventually(SOON, arguments, || async {
            let (code, out, err) = self.explain(arguments);
            match code == 0 && parts.iter().all(|part| out.contains(part)) {
                true => Ok(()),
                false => Err(format!("{parts:?} in: {out}{err}")),
            }
        })
        .await;
    }

    /// Waits for an Event about an object of this name.
    pub async fn until_event(&self, name: &str, wanted: impl Fn(&Event) -> bool) {
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let api = Api::<Event>::default_namespaced(self.site.client.clone());
        eventually(SOON, name, || async {
            let events = api.list(&about).await.unwrap().items;
            match events.iter().any(&wanted) {
                true => Ok(()),
                false => Err(format!(
                    "{:?}",
                    events.iter().map(|event| &event.message).collect::<Vec<_>>()
                )),
            }
        })
        .await;
    }
}

/// Runs the program: exit code and both outputs.
pub fn run<'a>(program: &Path, arguments: impl IntoIterator<Item = &'a str>) -> (i32, String, String) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
