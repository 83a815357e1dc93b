//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a process with a log.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_test_support::programs::child::{Child, log_end};
use cloudwit_test_support::scenes::deployment::CLUSTER_CIDR;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::hub::files;
use crate::hub::network::{API_PORT, HUB, SERVICES};
use crate::hub::pki::Pki;

/// How long the API server may take to be ready, on a busy machine.
const READY: Duration = Duration::from_secs(120);

/// How often it is asked.
const PAUSE: Duration = Duration::from_millis(100);

/// What runs. Dropped in the order of the fields: first who writes, last who stores.
pub struct ControlPlane {
    others: Vec<Child>,
    api_server: Child,
    _etcd: Child,
}

impl ControlPlane {
    /// Starts all of it with the program of `tests/kubernetes`; returns with a client when the API server is ready.
    pub async fn start(program: &Path, folder: &Path, pki: &Pki, kubeconfig: &Path) -> Result<(Self, Client)> {
        let start = |component: &str, flags: Vec<String>| {
            let arguments: Vec<String> = std::iter::once(component.to_owned()).chain(flags).collect();
            Child::start(program, &arguments, &folder.join(component).with_extension("log"))
        };
        let etcd = start("etcd", vec![format!("--dir={}", folder.join("etcd").display())])?;
        let api_server = start("kube-apiserver", api_server_flags(pki))?;
        let client = ready(kubeconfig, &api_server).await?;
        // Each as itself; Kubernetes has the rights of both ready.
        let files = |component: &str| -> Result<[String; 4]> {
            pki.client(component, &format!("system:{component}"), "system:authenticated")?;
            let own = files::kubeconfig(folder, pki, component)?;
            let own = own.display();
            Ok([
                format!("--kubeconfig={own}"),
                format!("--authentication-kubeconfig={own}"),
                format!("--authorization-kubeconfig={own}"),
                "--leader-elect=false".to_owned(),
            ])
        };
        let key = |name: &str| pki.path(name).display().to_string();
        let mut manager = files("kube-controller-manager")?.to_vec();
        manager.extend([
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", key("service-account.key")),
            format!("--root-ca-file={}", key("ca.crt")),
            "--allocate-node-cidrs=true".to_owned(),
            format!("--cluster-cidr={CLUSTER_CIDR}"),
            format!("--service-cluster-ip-range={SERVICES}"),
            "--cloud-provider=external".to_owned(),
            // A dead Node is noticed after 16 s. By default it is 50 s.
            "--node-monitor-grace-period=16s".to_owned(),
            "--node-monitor-period=1s".to_owned(),
            // Routes are Cloudwit's.
            "--configure-cloud-routes=false".to_owned(),
        ]);
        let others = vec![
            start("kube-controller-manager", manager)?,
            start("kube-scheduler", files("kube-scheduler")?.to_vec())?,
        ];
        let plane = Self {
            others,
            api_server,
            _etcd: etcd,
        };
        Ok((plane, client))
    }

    /// The log of a component that has ended by itself.
    pub fn ended(&self) -> Option<PathBuf> {
        let mut all = self.others.iter().chain([&self.api_server, &self._etcd]);
        all.find(|one| !one.runs()).map(|one| one.log().to_owned())
    }
}

fn api_server_flags(pki: &Pki) -> Vec<String> {
    let file = |name: &str| pki.path(name).display().to_string();
    vec![
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={HUB}"),
        // With a Lease the Service `kubernetes` has an endpoint, which Pods reach the API by.
        "--endpoint-reconciler-type=lease".to_owned(),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("admin.crt")),
        format!("--kubelet-client-key={}", file("admin.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("service-account.pub")),
        format!("--service-account-signing-key-file={}", file("service-account.key")),
        format!("--service-cluster-ip-range={SERVICES}"),
        "--allow-privileged=true".to_owned(),
    ]
}

/// A client, once the API server says that it is ready.
async fn ready(kubeconfig: &Path, server: &Child) -> Result<Client> {
    let content = Kubeconfig::read_from(kubeconfig).context("reading the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(content, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config).context("making a client")?;
    let started = Instant::now();
    loop {
        if says_ready(&client).await {
            return Ok(client);
        }
        if !server.runs() || started.elapsed() > READY {
            bail!(
                "the API server is not ready; the end of its log:\n{}",
                log_end(server.log())
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn says_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    client.request_text(request).await.is_ok_and(|text| text == "ok")
}
