//! `cloudwit csi` as a process, with a provider's component on the stand-in of its cloud.

use std::ops::Deref;

use cloudwit_host::Provider;
use cloudwit_host::grants::Grants;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::Value;

use crate::common::csi_process::CsiProcess;
use crate::common::csi_served;

/// The driver's process, and the cloud that it has to do with. It ends before the cloud.
pub struct StandInDriver {
    process: CsiProcess,
    pub cloud: StandIn,
}

impl Deref for StandInDriver {
    type Target = CsiProcess;

    fn deref(&self) -> &CsiProcess {
        &self.process
    }
}

impl StandInDriver {
    /// The provider of this name on this cloud, with what `files` writes about it.
    pub async fn start(
        name: &'static str,
        cloud: StandIn,
        files: impl AsyncFnOnce(&StandIn, &Deployment) -> CloudFiles,
    ) -> Self {
        let process = CsiProcess::start(name, async |deployment| files(&cloud, deployment).await).await;
        Self { process, cloud }
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.unwrap()
    }

    /// How many calls have this in their names. None of them met a mistake of the stand-in.
    pub async fn calls(&self, part: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        assert!(
            calls.iter().all(|call| call.status != 599),
            "the stand-in made a mistake"
        );
        calls.iter().filter(|call| call.name.contains(part)).count()
    }
}

/// The component in the real host, for a stand-in that needs no secret.
pub async fn load(name: &'static str, cloud: &StandIn, config_text: String) -> Provider {
    let grants = Grants {
        http: vec![csi_served::granted(cloud.url())],
        ..Grants::default()
    };
    csi_served::load(name, config_text, grants).await
}
