//! Retries after a swap of the provider: new credentials or a new component may succeed at once.
//!
//! The controllers identify a provider by its identity alone, whose digest covers the component, its settings and its secrets.

use std::time::Duration;

use cloudwit_model::Cloud;
use tokio::time::sleep;

/// Calls `then` after each swap of any provider, for ever; the identity is compared once in each `period`.
pub(crate) async fn after_each_swap(cloud: &dyn Cloud, period: Duration, mut then: impl FnMut()) {
    let mut known = cloud.identity().digest;
    loop {
        sleep(period).await;
        let now = cloud.identity().digest;
        if now != known {
            known = now;
            then();
        }
    }
}
