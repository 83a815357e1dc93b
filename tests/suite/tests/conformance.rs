//! `cloudwit provider conformance`, `call` and `replay`, as an author runs them: each provider here keeps the promises of the contract on the
//! third-party server of its cloud, and what is recorded can be replayed without cloud and secrets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use cloudwit_sim_cloud::{DiskSettings, NewMachine, SimCloud, SimCloudOptions};
use cloudwit_test_support::clouds::mimic::Mimic;
use cloudwit_test_support::clouds::moto::Moto;
use cloudwit_test_support::clouds::openstack::OpenStackCloud;
use cloudwit_test_support::clouds::openstack::volumes::HOST;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::clouds::vcsim::{Vcsim, VcsimOptions, VolumeOptions};
use cloudwit_test_support::files::alibaba::alibaba_files;
use cloudwit_test_support::files::aws::aws_files;
use cloudwit_test_support::files::azure::azure_files;
use cloudwit_test_support::files::baidu::baidu_files;
use cloudwit_test_support::files::cloudstack::cloudstack_files;
use cloudwit_test_support::files::gce::gce_files;
use cloudwit_test_support::files::openstack::openstack_files;
use cloudwit_test_support::files::small_clouds::{mesos_files, ovirt_files, photon_files, rancher_files};
use cloudwit_test_support::files::vsphere::{NSX_CONFIG, nsx_files, vsphere_files};
use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment, TOKEN};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// A component with its configuration, in a folder.
struct Author {
    component: PathBuf,
    deployment: Deployment,
    folder: TempDir,
}

impl Author {
    async fn of(provider: &'static str) -> Self {
        let (component, program) =
            tokio::task::spawn_blocking(move || (guests::provider(provider), programs::cloudwit()))
                .await
                .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let deployment = Deployment::of(provider, &run, program.parent().unwrap(), &component).unwrap();
        Self {
            component,
            deployment,
            folder,
        }
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    /// Runs `cloudwit provider` with the configuration.
    async fn run(&self, command: &str, files: &CloudFiles, arguments: &[&str]) -> Output {
        let config = self.write("cloud-config", &files.config);
        let settings = self.write("settings.yaml", &files.settings);
        let run = Command::new(programs::cloudwit())
            .args(["provider", command])
            .arg(&self.component)
            .args(arguments)
            .arg("--cloud-config")
            .arg(config)
            .arg("--settings")
            .arg(settings)
            .output();
        run.await.unwrap()
    }

    /// All promises are kept, on the cloud and on a recording of it. Gives what was said, and the recording.
    async fn conforms(&self, files: &CloudFiles, arguments: &[&str]) -> (String, PathBuf) {
        let recording = self.folder.path().join("recording.json");
        let arguments = [arguments, &["--record", recording.to_str().unwrap()]].concat();
        let output = self.run("conformance", files, &arguments).await;
        let text = said(&output, 0);
        assert_eq!(
            without_memory(&said(&self.again(&recording).await, 0)),
            without_memory(&text)
        );
        (text, recording)
    }

    /// The same promises on a recording.
    async fn again(&self, recording: &Path) -> Output {
        let run = Command::new(programs::cloudwit())
            .args(["provider", "conformance", "--cassette"])
            .args([recording, &self.component])
            .output();
        run.await.unwrap()
    }
}

/// The last line tells how much memory was used, which is not the same each time.
fn without_memory(text: &str) -> &str {
    text.rsplit_once(';').unwrap().0
}

fn said(output: &Output, code: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    out
}

async fn sim_cloud() -> SimCloud {
    let options = SimCloudOptions {
        token: TOKEN.into(),
        balancer_build_time: Duration::from_millis(500),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.unwrap();
    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_millis(100),
        attach_time: Duration::from_millis(100),
        ..DiskSettings::default()
    });
    cloud.add_machines(["one", "two"].map(NewMachine::named));
    cloud
}

#[tokio::test(flavor = "multi_thread")]
async fn sim_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("sim").await, sim_cloud().await);
    let files = author.deployment.sim_files(&cloud.url()).unwrap();
    let junit = author.folder.path().join("junit.xml");
    let (text, recording) = author
        .conforms(
            &files,
            &[
                "--node=one",
                "--node=two",
                "--junit",
                junit.to_str().unwrap(),
                "--stand-in",
                &cloud.url(),
            ],
        )
        .await;
    for part in [
        "info\n",
        "instances\n",
        "load-balancers\n",
        "routes\n",
        "tagging\n",
        "volumes\n",
        "volume-expansion\n",
        "volume-listing\n",
        "volume-snapshots\n",
        "volume-modification\n",
        "volume-capacity\n",
        "secrets\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains(r#"failures="0""#), "{junit}");
    assert!(
        cloud.disks().is_empty() && cloud.disk_snapshots().is_empty(),
        "disks are left"
    );

    drop(cloud);
    let recorded = std::fs::read_to_string(&recording).unwrap();
    assert!(
        !recorded.contains(TOKEN) && recorded.contains("{secret token}"),
        "{recorded}"
    );
    // As if the provider that was recorded had asked otherwise.
    let other = author.write("other.json", &recorded.replace("/load-balancers", "/balancers"));
    let text = said(&author.again(&other).await, 1);
    assert!(
        text.contains("BROKEN ensure makes a load balancer") && text.contains("is not in the recording"),
        "{text}"
    );
    let other = author.write("calls.json", &recorded.replace("\"trial\"", "\"tried\""));
    let refused = author.again(&other).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("calls.json: cannot be read as a recording"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rackspace_keeps_the_promises_of_the_contract() {
    let (author, mimic) = (Author::of("rackspace").await, Mimic::start().await.unwrap());
    let account = mimic.account("author").await.unwrap();
    for name in ["one", "two"] {
        account.server(name).await.unwrap();
    }
    let files = account.files(&author.deployment).unwrap();
    let (text, _) = author.conforms(&files, &["--node=one", "--node=two"]).await;
    assert!(
        text.contains("instances\n") && text.contains("load-balancers\n"),
        "{text}"
    );
    assert!(account.balancers().await.unwrap().is_empty(), "load balancers are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_text_breaks_a_promise() {
    let folder = tempfile::tempdir().unwrap();
    let component = tokio::task::spawn_blocking(|| guests::test_guest("blurts"))
        .await
        .unwrap();
    let write = |name: &str, content: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    };
    let token = write("token", "a-secret-that-nobody-reads");
    let settings = format!(
        "grants: {{secrets: [{{name: token, file: {}, uses: [reveal]}}]}}",
        token.display()
    );
    let settings = write("settings.yaml", &settings);
    let run = Command::new(programs::cloudwit())
        .args(["provider", "conformance", "--node=trigger", "--settings"])
        .args([&settings, &component])
        .output();
    let output = run.await.unwrap();
    let text = said(&output, 1);
    assert!(
        text.contains("BROKEN no log line, failure or Event contains a secret"),
        "{text}"
    );
    for place in [
        "out [secret token]",
        "err [secret token]",
        "the log says [secret token]",
        "it is [secret token]",
    ] {
        assert!(text.contains(place), "{place} is missing in: {text}");
    }
    let everything = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&everything).contains("nobody-reads"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_answers_about_volumes_break_promises() {
    let component = tokio::task::spawn_blocking(|| guests::test_guest("wrong_volumes"));
    let run = Command::new(programs::cloudwit())
        .args(["provider", "conformance", "--node=one", "--node=two"])
        .arg(component.await.unwrap())
        .output();
    let text = said(&run.await.unwrap(), 1);
    for broken in [
        "nodes has the order of the request",
        "creating it again, with nothing remembered",
        "a volume of the same name and another size",
        "get has the order of the request",
        "an unknown parameter",
        "attach attaches it, once more is the same",
        "attach has the order of the request",
        "attaching it there in another way",
        "a volume of one machine is not attached to a second",
        "an attached volume is not deleted",
        "delete takes it away",
        "it is made once and deleted",
    ] {
        assert!(text.contains(&format!("BROKEN {broken}")), "{broken}: {text}");
    }
    assert!(text.contains("ok     describe is the same each time"), "{text}");
}

/// `tests/fixtures`: components that people already have.
#[tokio::test(flavor = "multi_thread")]
async fn components_that_were_built_before_still_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/v0.1");
    let components: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(components.len() >= 4, "{components:?}");
    for component in &components {
        let inspect = Command::new(programs::cloudwit())
            .args(["provider", "inspect"])
            .arg(component)
            .output();
        said(&inspect.await.unwrap(), 0);
    }
    let (mut author, cloud) = (Author::of("sim").await, sim_cloud().await);
    author.component = folder.join("sim.wasm.zst");
    let files = author.deployment.sim_files(&cloud.url()).unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_not_there_breaks_a_promise_and_is_named() {
    let (author, cloud) = (Author::of("sim").await, sim_cloud().await);
    let files = author.deployment.sim_files(&cloud.url()).unwrap();
    let output = author.run("conformance", &files, &["--node=one", "--node=three"]).await;
    let text = said(&output, 1);
    assert!(
        text.contains("BROKEN each --node is found") && text.contains("three: "),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_keeps_the_promises_of_the_contract() {
    let (author, moto) = (Author::of("aws").await, Moto::shared().await);
    let cluster = moto.cluster("conformance").await.unwrap();
    let machines = cluster.machines(moto, 0, 2).await.unwrap();
    let files = aws_files(&cluster, moto.url(), moto.administrator(), &author.deployment).unwrap();
    let nodes: Vec<String> = machines
        .iter()
        .map(|machine| format!("--node={}={}", machine.private_dns, machine.provider_id()))
        .collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    author
        .conforms(&files, &[&nodes[..], &["--cluster-name=conformance"]].concat())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("azure").await, StandIn::start("azure", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = azure_files(&cloud, &json!({}), &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn baidu_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("baidu").await, StandIn::start("baidu", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = baidu_files(&cloud, &json!({}), &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloudstack_keeps_the_promises_of_the_contract() {
    let cloud = StandIn::start("cloudstack", &[]).await.unwrap();
    let author = Author::of("cloudstack").await;
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = cloudstack_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alibaba_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (
        Author::of("alibaba").await,
        StandIn::start("alibaba", &[]).await.unwrap(),
    );
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = alibaba_files(&cloud, &json!({}), &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gce_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("gce").await, StandIn::start("gce", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = gce_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("openstack").await, OpenStackCloud::shared().await);
    cloud.volumes_ready().await.unwrap();
    let project = cloud.project().await.unwrap();
    let network = project.network("nodes", "10.6.0.0/24").await.unwrap();
    let router = project.router(&[&network]).await.unwrap();
    for name in ["one", "two"] {
        let on = json!({ "host": HOST });
        project.server_with(&network, name, on).await.unwrap();
    }
    let files = openstack_files(&project, &network, &router, &author.deployment)
        .await
        .unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mesos_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("mesos").await, StandIn::start("mesos", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = mesos_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("ovirt").await, StandIn::start("ovirt", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = ovirt_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (Author::of("photon").await, StandIn::start("photon", &[]).await.unwrap());
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = photon_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_keeps_the_promises_of_the_contract() {
    let (author, cloud) = (
        Author::of("rancher").await,
        StandIn::start("rancher", &[]).await.unwrap(),
    );
    for name in ["one", "two"] {
        cloud.call("add_machine", json!({ "name": name })).await.unwrap();
    }
    let files = rancher_files(&cloud, "", &author.deployment).await.unwrap();
    author.conforms(&files, &["--node=one", "--node=two"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vsphere_keeps_the_promises_of_the_contract() {
    let author = Author::of("vsphere").await;
    let options = VcsimOptions {
        volumes: Some(VolumeOptions::default()),
        ..VcsimOptions::default()
    };
    let vcsim = Vcsim::start(options).await.unwrap();
    vcsim.tag("k8s-zone", "rack-7", "/DC0/host/DC0_C0").await.unwrap();
    vcsim.tag("k8s-region", "north", "/DC0").await.unwrap();
    let machine = vcsim.machines().await.unwrap().remove(0);
    vcsim.set_guest(&machine.path, "one", "10.7.0.5").await.unwrap();
    let files = vsphere_files(&vcsim, &author.deployment).unwrap();
    author.conforms(&files, &["--node=one"]).await;
    // And with load balancers and routes.
    let nsx = StandIn::start("nsx", &[]).await.unwrap();
    let gate = vcsim.gate_to(nsx.url()).await.unwrap();
    let files = nsx_files(&vcsim, (&nsx, &gate), None, NSX_CONFIG, &author.deployment).await;
    author.conforms(&files.unwrap(), &["--node=one"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_is_recorded_without_secrets_and_replayed_offline() {
    let (author, cloud) = (Author::of("sim").await, sim_cloud().await);
    let files = author.deployment.sim_files(&cloud.url()).unwrap();
    let service = author.write(
        "web.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n\
         spec: {type: LoadBalancer, ports: [{port: 80, protocol: TCP, nodePort: 30080}]}\n",
    );
    let recording = author.folder.path().join("ensure.json");
    let arguments = [
        "load-balancers.ensure",
        "--node=one",
        "--wait",
        "--output=json",
        "--service",
        service.to_str().unwrap(),
        "--record",
        recording.to_str().unwrap(),
    ];
    let report: Value = serde_json::from_str(&said(&author.run("call", &files, &arguments).await, 0)).unwrap();
    let calls = report["calls"].as_array().unwrap();
    assert!(calls[0]["error"]["failure"] == "pending" && calls.len() > 1, "{report}");
    assert!(
        calls.last().unwrap()["answer"]["ingress"][0]["ip"].is_string(),
        "{report}"
    );
    assert!(report["memoryBytes"].as_u64().unwrap() > 0, "{report}");
    drop(cloud);

    let text = std::fs::read_to_string(&recording).unwrap();
    assert!(!text.contains(TOKEN) && text.contains("{secret token}"), "{text}");
    let same = said(&replay(&author, &recording).await, 0);
    assert!(same.contains("1 load-balancers.ensure: the same, 2 requests"), "{same}");

    // As if the provider that was recorded had made the load balancer under another name.
    let other = author.write("other.json", &text.replace("30080", "30081"));
    let different = said(&replay(&author, &other).await, 0);
    assert!(
        different.contains("the same"),
        "the Service and the request changed alike: {different}"
    );
    let other = author.write("other.json", &text.replacen(r#""status": 201"#, r#""status": 409"#, 1));
    let different = said(&replay(&author, &other).await, 1);
    for part in [
        "1 load-balancers.ensure: different",
        "the answer was {\"failure\":\"pending\"",
        "a request that was not recorded: GET ",
        "is not in the recording",
    ] {
        assert!(different.contains(part), "{part} is missing in: {different}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_made_attached_and_replayed_from_the_command_line() {
    let (author, cloud) = (Author::of("sim").await, sim_cloud().await);
    let files = author.deployment.sim_files(&cloud.url()).unwrap();
    let call = async |arguments: &[&str]| -> Value {
        let arguments = [arguments, &["--wait", "--output=json"]].concat();
        let report: Value = serde_json::from_str(&said(&author.run("call", &files, &arguments).await, 0)).unwrap();
        report["calls"].as_array().unwrap().last().unwrap()["answer"].clone()
    };
    let node = call(&["volumes.nodes", "--node=one"]).await;
    assert_eq!((&node[0]["id"], &node[0]["maxVolumes"]), (&json!("vm-1"), &json!(16)));
    let recording = author.folder.path().join("create.json");
    let record = format!("--record={}", recording.display());
    let zone = "--topology=topology.sim.csi.cloudwit.dev/zone=sim-1a";
    let size = format!("--size={}", (3_u64 << 30) - 1);
    let made = call(&[
        "volumes.create",
        "--name=data",
        &size,
        "--parameter=type=fast",
        zone,
        &record,
    ])
    .await;
    assert_eq!((&made["id"], &made["size"]), (&json!("disk-1"), &json!(3_u64 << 30)));
    let attached = call(&["volumes.attach", "--id=disk-1", "--node-id=vm-1"]).await;
    assert_eq!(attached["devices"][0]["serial"], "disk-1");
    let refused = author.run("call", &files, &["volumes.attach", "--id=disk-1"]).await;
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("--node-id"),
        "{refused:?}"
    );
    call(&["volumes.detach", "--id=disk-1", "--node-id=vm-1"]).await;
    call(&["volumes.delete", "--id=disk-1"]).await;
    assert!(cloud.disks().is_empty());

    drop(cloud);
    let same = said(&replay(&author, &recording).await, 0);
    assert!(same.contains("1 volumes.create: the same"), "{same}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_of_a_request_is_given_in_a_file_and_not_recorded() {
    const CANARY: &str = "canary-of-a-disk-3c9";
    let (author, cloud) = (Author::of("sim").await, sim_cloud().await);
    let mut files = author.deployment.sim_files(&cloud.url()).unwrap();
    let host = cloud.url().replace("http://", "");
    let grant = format!("    - {{name: volume/passphrase, hosts: [\"{host}\"], uses: [placeholder]}}\n");
    files.settings.push_str(&grant);
    let secret = author.write("passphrase", &format!("{CANARY}\n"));
    let secret = format!("--secret=passphrase={}", secret.display());
    let recording = author.folder.path().join("create.json");
    let record = format!("--record={}", recording.display());
    let create = [
        "volumes.create",
        "--name=data",
        "--parameter=encrypted=true",
        "--topology=topology.sim.csi.cloudwit.dev/zone=sim-1a",
    ];
    let without = said(&author.run("call", &files, &create).await, 1);
    assert!(without.contains("no value for the key \"passphrase\""), "{without}");
    let with = [&create[..], &["--wait", &secret, &record]].concat();
    let made = said(&author.run("call", &files, &with).await, 0);
    assert!(cloud.disks()[0].spec.encrypted && !made.contains("canary"), "{made}");
    let deleted = ["volumes.delete", "--id=disk-1", &secret];
    said(&author.run("call", &files, &deleted).await, 0);
    assert!(cloud.disks().is_empty());

    drop(cloud);
    let text = std::fs::read_to_string(&recording).unwrap();
    assert!(
        text.contains("{secret volume/passphrase}") && !text.contains("canary"),
        "{text}"
    );
    let same = said(&replay(&author, &recording).await, 0);
    assert!(same.contains("1 volumes.create: the same"), "{same}");
}

async fn replay(author: &Author, recording: &Path) -> Output {
    let replay = Command::new(programs::cloudwit())
        .args(["provider", "replay"])
        .args([&author.component, recording])
        .output();
    replay.await.unwrap()
}
