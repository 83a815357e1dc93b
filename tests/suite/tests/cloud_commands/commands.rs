//! `cloudwit cloud ...`: answers, exit codes, grants.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloudwit_sim_cloud::{Fault, FaultKind, ManagedCluster, NewMachine, Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::KEY;

/// A cloud, and the files of an operator on a machine of it.
struct Machine {
    cloud: SimCloud,
    folder: TempDir,
}

impl Machine {
    async fn new() -> Self {
        let options = SimCloudOptions {
            token: "t0ken".into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.unwrap();
        let machine = Self {
            cloud,
            folder: tempfile::tempdir().unwrap(),
        };
        machine.write("sim.json", &json!({"endpoint": machine.cloud.url()}).to_string());
        machine.write("token", "t0ken");
        machine.write("id.pub", KEY);
        machine.grant("allowLoopback: true", true);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Grants the cloud's address with this key, and the token or not.
    fn grant(&self, key: &str, token: bool) {
        let port = self.cloud.address().port();
        let mut settings = format!("grants:\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, {key}}}\n");
        if token {
            let file = self.path("token");
            settings += &format!(
                "  secrets:\n    - {{name: token, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n",
                file.display()
            );
        }
        self.write("settings.yaml", &settings);
    }

    /// Runs `cloudwit cloud` with these words, the component and the files.
    async fn run(&self, words: &[&str], flags: &[&str]) -> Output {
        self.run_with(&guests::provider("sim"), words, flags).await
    }

    async fn run_with(&self, component: &Path, words: &[&str], flags: &[&str]) -> Output {
        let mut command = Command::new(programs::cloudwit());
        command.arg("cloud").args(words).arg(component).args(flags);
        command
            .arg(format!("--cloud-config={}", self.path("sim.json").display()))
            .arg(format!("--settings={}", self.path("settings.yaml").display()))
            .arg(format!(
                "--cache-dir={}",
                xtask::workspace::target().join("tmp/code-cache").display()
            ));
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn wrong(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn location_of_machine_needs_no_token() {
    let machine = Machine::new().await;
    machine.cloud.add_machines([NewMachine {
        zone: Some("sim-2a".into()),
        ..NewMachine::named("node-7")
    }]);
    machine.grant("allowLoopback: true", false);
    let ask = async |flags: &[&str]| {
        let output = machine.run(&["location"], flags).await;
        assert_eq!(output.status.code(), Some(0), "{}", wrong(&output));
        out(&output)
    };
    assert_eq!(
        ask(&["--hostname=Node-7"]).await,
        "--hostname-override=node-7 --provider-id=sim://vm-1 \
         --node-labels=topology.kubernetes.io/region=sim-2,topology.kubernetes.io/zone=sim-2a\n"
    );
    let json: Value = serde_json::from_str(&ask(&["--hostname=node-7", "-o=json"]).await).unwrap();
    assert_eq!(json["nodeName"], "node-7");
    let file = machine.path("run/location");
    let to_file = format!("--out={}", file.display());
    assert_eq!(ask(&["--hostname=node-7", "-o=environment", &to_file]).await, "");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("PROVIDER_ID='sim://vm-1'\nZONE='sim-2a'\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_separates_permanent_from_temporary_failures() {
    let machine = Machine::new().await;
    machine
        .cloud
        .add_machines([NewMachine::named("node-7"), NewMachine::named("node_8")]);
    let ask = async |flags: &[&str]| {
        let output = machine.run(&["location"], flags).await;
        (output.status.code(), out(&output), wrong(&output))
    };
    // The name is the cloud's, and no Node can have it.
    let (code, printed, text) = ask(&["--hostname=node_8"]).await;
    assert_eq!((code, printed.as_str()), (Some(1), ""), "{text}");
    assert!(
        text.contains("\"node_8\"") && text.contains("lower-case letters"),
        "{text}"
    );
    // A cloud that is away for a moment is asked again; one that stays away is not waited for for ever.
    let fault = Fault {
        operation: Some(Operation::GetMetadata),
        fault: FaultKind::Status {
            status: 503,
            retry_after: None,
        },
        rate: 1.0,
        next: Some(2),
    };
    machine.cloud.set_faults([fault.clone()]);
    let (code, printed, text) = ask(&["--hostname=node-7"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(printed.contains("vm-1") && text.contains("again in"), "{printed}{text}");
    machine.cloud.set_faults([Fault { next: None, ..fault }]);
    let (code, printed, text) = ask(&["--hostname=node-7", "--wait=0"]).await;
    assert_eq!((code, printed.as_str()), (Some(3), ""), "{text}");
    machine.cloud.set_faults([]);
    // A grant lacks: the line to add is told.
    machine.grant("methods: [GET]", false);
    let (code, _, text) = ask(&["--hostname=node-7"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("add to grants.http") && text.contains("allowLoopback: true"),
        "{text}"
    );
    // The metadata service of a real machine: link-local.
    let config = json!({"endpoint": machine.cloud.url(), "metadataEndpoint": "http://169.254.169.254"});
    machine.write("sim.json", &config.to_string());
    machine.write(
        "settings.yaml",
        "grants: {http: [{scheme: http, host: 169.254.169.254}]}\n",
    );
    let (code, _, text) = ask(&["--hostname=node-7"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("allowLinkLocal: true"), "{text}");
    assert_eq!(ask(&["--output=nonsense"]).await.0, Some(2));
    // Another component that does not have it.
    let other = machine
        .run_with(&guests::test_guest("only_instances"), &["clusters"], &[])
        .await;
    assert_eq!(other.status.code(), Some(4), "{}", wrong(&other));
    assert!(wrong(&other).contains("does not export clusters"), "{}", wrong(&other));
}

#[tokio::test(flavor = "multi_thread")]
async fn resolv_conf_has_what_pods_need() {
    let machine = Machine::new().await;
    let text =
        "nameserver 10.0.0.2\nsearch sim-1.machines.sim.internal example.com\noptions ndots:2\nnameserver what\n";
    machine.write("resolv.conf", text);
    let from = format!("--from={}", machine.path("resolv.conf").display());
    let output = machine.run(&["resolv-conf"], &[&from]).await;
    assert_eq!(output.status.code(), Some(0), "{}", wrong(&output));
    assert_eq!(
        out(&output),
        "nameserver 10.0.0.2\nsearch example.com\noptions ndots:2\n"
    );
    assert!(wrong(&output).contains("name server \"what\""), "{}", wrong(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_the_cloud_are_listed() {
    let machine = Machine::new().await;
    machine.cloud.set_clusters(vec![ManagedCluster {
        name: "production".into(),
        host: Some("2001:db8::7".into()),
        port: Some(6443),
    }]);
    let output = machine.run(&["clusters"], &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", wrong(&output));
    assert_eq!(
        out(&output),
        "NAME        CONTROL PLANE\nproduction  [2001:db8::7]:6443\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_given_once_and_not_in_a_dry_run() {
    let machine = Machine::new().await;
    let file = format!("--keyfile={}", machine.path("id").display());
    let add = async |more: &[&str]| {
        let flags: Vec<&str> = ["--user=core", &file].into_iter().chain(more.iter().copied()).collect();
        let output = machine.run(&["ssh-key", "add"], &flags).await;
        (output.status.code(), out(&output))
    };
    let (code, printed) = add(&["--dry-run"]).await;
    assert!(code == Some(0) && printed.contains("would be given"), "{printed}");
    assert!(machine.cloud.ssh_keys().is_empty());
    let (code, printed) = add(&[]).await;
    assert!(
        code == Some(0) && printed.contains("was given to all machines"),
        "{printed}"
    );
    let keys = machine.cloud.ssh_keys();
    assert_eq!(
        (keys.len(), keys[0].user.as_str(), keys[0].public_key.as_str()),
        (1, "core", KEY)
    );
    let (code, printed) = add(&[]).await;
    assert!(code == Some(0) && printed.contains("already"), "{printed}");
}
