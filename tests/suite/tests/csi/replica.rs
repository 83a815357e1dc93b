//! The real process, which serves volumes of a simulated cloud.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, eventually, programs};
use tokio::sync::{Mutex, MutexGuard};

use crate::scene::{Controller, dial};

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// A process, and where it is to listen.
pub struct Replica {
    pub process: Child,
    /// Where its pages are.
    pub url: String,
    pub socket: PathBuf,
}

/// One test at a time has the API server, whose Lease they would share.
pub async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// A cloud with so many machines.
pub async fn cloud(machines: usize) -> SimCloud {
    let options = SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.unwrap();
    cloud.add_numbered_machines("node", machines);
    cloud
}

impl Replica {
    /// Starts it, with a folder of its name below this one, and these flags.
    pub async fn start(name: &str, folder: &Path, cloud: &SimCloud, flags: &[&str]) -> Self {
        Self::start_in(name, folder, &folder.join(name).join("csi"), cloud, flags).await
    }

    /// The same, and its socket is in the folder `sockets`, which replicas may share: only the leader listens.
    pub async fn start_in(name: &str, folder: &Path, sockets: &Path, cloud: &SimCloud, flags: &[&str]) -> Self {
        Self::start_granted(name, folder, sockets, cloud, "", flags).await
    }

    /// The same with further lines in `grants.secrets`, which end its settings.
    pub async fn start_granted(
        name: &str,
        folder: &Path,
        sockets: &Path,
        cloud: &SimCloud,
        lines: &str,
        flags: &[&str],
    ) -> Self {
        let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("sim"))).await;
        let (program, provider) = built.unwrap();
        let folder = folder.join(name);
        let deployment = Deployment::new(&folder, program.parent().unwrap(), &provider).unwrap();
        let socket_dir = format!("--csi-socket-dir={}", sockets.display());
        // Compiled once for all tests.
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let cache = format!("--cache-dir={}", cache.display());
        let flags: Vec<&str> = flags
            .iter()
            .copied()
            .chain([socket_dir.as_str(), cache.as_str()])
            .collect();
        let api = ApiServer::shared().await;
        let mut files = deployment.sim_files(&cloud.url()).unwrap();
        files.settings.push_str(lines);
        let (process, url) = deployment.start_on(api.kubeconfig(), &files, &flags).unwrap();
        let socket = sockets.join("sim.csi.cloudwit.dev.sock");
        Self { process, url, socket }
    }

    /// Waits until it does.
    pub async fn listens(&self) {
        let socket = self.socket.clone();
        eventually(SOON, "the replica listens", || {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await }
        })
        .await;
    }

    /// A client of its controller service.
    pub async fn client(&self) -> Controller {
        Controller::new(dial(self.socket.clone()).await)
    }
}
