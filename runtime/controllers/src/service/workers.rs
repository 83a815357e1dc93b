//! The workers of `service`: takes keys from the queue, and begins each as soon as its provider's share of the workers has room.
//!
//! ```text
//!   queue "service" --(while a worker is free)--> whose is it? --> service_lb_lanes --> ServiceLb::work_on
//! ```
//!
//! With one provider that is nothing but so many workers at one queue.

use std::sync::Arc;

use cloudwit_model::router::BALANCER_PROVIDER;
use tokio::task::{JoinError, JoinSet};

use crate::kube::cache::Key;
use crate::kube::service::view::lenient_service_view;
use crate::queue::Taken;
use crate::service::ServiceLb;
use crate::service::lanes::ServiceLanes;

/// Works on Services until the queue is closed.
pub(crate) async fn work_all(controller: Arc<ServiceLb>) {
    let providers = controller.context.cloud.owners().providers().len();
    let mut lanes = ServiceLanes::new(controller.context.options.service.concurrent_syncs, providers);
    let mut at_work = JoinSet::new();
    let mut open = true;
    loop {
        while let Some((place, taken)) = lanes.next() {
            at_work.spawn(work(controller.clone(), place, taken));
        }
        tokio::select! {
            biased;
            taken = controller.queue.take(), if open && lanes.have_room() => match taken {
                Some(taken) => lanes.add(controller.place_of(taken.key(), providers), taken),
                None => open = false,
            },
            Some(ended) = at_work.join_next() => {
                if let Some(place) = place_of_ended(ended) {
                    lanes.done(place);
                }
            }
            else => return,
        }
    }
}

async fn work(controller: Arc<ServiceLb>, place: usize, taken: Taken) -> usize {
    controller.work_on(taken).await;
    place
}

/// None where the work was cancelled, which only happens to all of them at once.
fn place_of_ended(ended: Result<usize, JoinError>) -> Option<usize> {
    match ended {
        Ok(place) => Some(place),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}

impl ServiceLb {
    /// The place of the provider that is asked about the Service now: the one noted on it, else the one that shall have it. The first for one
    /// whose provider is not configured, about which no cloud is asked.
    fn place_of(&self, key: &Key, providers: usize) -> usize {
        if providers < 2 {
            return 0;
        }
        let current = self.context.services.get(key);
        let Some(service) = current.or_else(|| self.record(key, |record| record.service().clone())) else {
            return 0;
        };
        let view = lenient_service_view(&service);
        let noted = view.annotations.get(BALANCER_PROVIDER).cloned();
        let name = noted.or_else(|| self.context.cloud.balancer_provider(&view).ok().flatten());
        let owners = self.context.cloud.owners();
        let mut names = owners.providers().iter().map(|provider| &provider.name);
        names.position(|known| Some(known) == name.as_ref()).unwrap_or_default()
    }
}
