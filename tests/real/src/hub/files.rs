//! The configuration files of a cluster: kubeconfigs, containerd's, kubelet's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use xtask::kubernetes::node_parts::IMAGE;

use crate::hub::network::{API_PORT, HUB};
use crate::hub::pki::Pki;
use crate::outside::control_groups::OUTSIDE_PID;

/// Writes a file and gives its path.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let file = folder.join(name);
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// A kubeconfig of the client with this certificate.
pub fn kubeconfig(folder: &Path, pki: &Pki, client: &str) -> Result<PathBuf> {
    named_kubeconfig(folder, pki, client, client)
}

/// The same as `NAME.kubeconfig`.
pub fn named_kubeconfig(folder: &Path, pki: &Pki, client: &str, name: &str) -> Result<PathBuf> {
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "real",
        "clusters": [{ "name": "real", "cluster": {
            "server": format!("https://{HUB}:{API_PORT}"),
            "certificate-authority": pki.path("ca.crt"),
        }}],
        "users": [{ "name": client, "user": {
            "client-certificate": pki.path(&format!("{client}.crt")),
            "client-key": pki.path(&format!("{client}.key")),
        }}],
        "contexts": [{ "name": "real", "context": { "cluster": "real", "user": client } }],
    });
    write(folder, &format!("{name}.kubeconfig"), &content.to_string())
}

/// A script that runs kubectl on the cluster from outside of its namespaces.
pub fn kubectl(folder: &Path, kubernetes: &Path, kubeconfig: &Path) -> Result<PathBuf> {
    // Its network namespace is that of the process that we were started by.
    let pid = std::env::var(OUTSIDE_PID).context("no process id outside of our namespaces")?;
    let (program, kubeconfig) = (kubernetes.display(), kubeconfig.display());
    let text = format!(
        "#!/bin/sh\nexec nsenter --net=/proc/{pid}/ns/net {program} kubectl --kubeconfig {kubeconfig} \"$@\"\n"
    );
    let file = write(folder, "kubectl", &text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).context("making kubectl executable")?;
    Ok(file)
}

/// The configuration of a machine's kubelet.
pub fn kubelet(folder: &Path, pki: &Pki) -> Result<PathBuf> {
    let content = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "oomScoreAdj": 0,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": pki.path("ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "resolvConf": "",
        "nodeStatusUpdateFrequency": "2s",
        // Pods see a changed ConfigMap within this time. By default it is 60 s.
        "syncFrequency": "10s",
        // Renewed every two seconds. By default it is 40 s and renewed every 10 s.
        "nodeLeaseDurationSeconds": 8,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%" },
        "volumePluginDir": "/var/lib/kubelet/flex",
    });
    write(folder, "kubelet.yaml", &content.to_string())
}

/// The network configuration that containerd fills in once kubelet knows the Pod range.
const CNI: &str = r#"{"cniVersion":"0.3.1","name":"pods","plugins":[
 {"type":"ptp","ipMasq":false,"ipam":{"type":"host-local","ranges":[[{"subnet":"{{.PodCIDR}}"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
"#;

/// The configuration of a machine's containerd.
pub fn containerd(folder: &Path, parts: &Path) -> Result<PathBuf> {
    let template = write(folder, "cni.template", CNI)?;
    // Options that differ from containerd's defaults say why the default does not work in a namespace.
    let text = format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  # Processes here may not lower their own oom_score_adj.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{parts}/usr/lib/cni"
    conf_dir = "/run/cni/net.d"
    conf_template = "{template}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{parts}/usr/sbin/runc"
      SystemdCgroup = false
"#,
        parts = parts.display(),
        template = template.display(),
    );
    write(folder, "containerd.toml", &text)
}
