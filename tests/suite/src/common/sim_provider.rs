//! The provider `sim` as the component that is shipped, in the real host, configured for a simulated cloud.

use std::sync::Arc;

use crate::hosting::{Hosting, settings};
use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_sim_cloud::SimCloud;

/// The provider, and the folder with its token.
pub struct LoadedSim {
    pub provider: Arc<Provider>,
    _secrets: tempfile::TempDir,
}

/// Loads it with this token and the grants it needs, as far as `change` leaves them.
pub async fn load_sim(cloud: &SimCloud, token: &str, change: impl FnOnce(&mut Grants)) -> LoadedSim {
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("token");
    std::fs::write(&file, token).unwrap();
    let address = cloud.address();
    let http = HttpGrant {
        scheme: Scheme::Http,
        host: address.ip().to_string(),
        port: Some(address.port()),
        allow_loopback: true,
        ..HttpGrant::default()
    };
    let secret = SecretGrant {
        name: "token".into(),
        file,
        hosts: vec![address.to_string()],
        uses: vec![SecretUse::Placeholder],
    };
    let mut grants = Grants {
        http: vec![http],
        secrets: vec![secret],
        ..Grants::default()
    };
    change(&mut grants);
    let settings = ProviderSettings {
        config_text: format!("{{\"endpoint\": {:?}}}", cloud.url()),
        grants,
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| cloudwit_test_support::programs::guests::provider("sim"));
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load_file(&component.await.unwrap(), settings).await.unwrap();
    LoadedSim {
        provider: Arc::new(provider),
        _secrets: secrets,
    }
}
