//! A cloud that cannot be changed: what a dry run gets instead of the real one.
//!
//! ```text
//!   loops --- all calls ---> ReadOnly --- lookup, get, name, list ---> the cloud
//!                               \---- ensure, update, delete, apply ---> a PlannedWrite for whoever listens, and no further
//! ```
//!
//! So no loop has to think of the dry run before it calls, and none can forget to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Failure, NewRoute, NodeRef, Owners, Presence,
    ProviderIdentity, Route, RouteOutcome, Service, Target,
};

/// A call that would have changed the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedWrite<'a> {
    /// [`Cloud::ensure_balancer`].
    EnsureBalancer {
        /// For which Service.
        service: &'a Service,
        /// Where traffic would go.
        targets: &'a [Target],
    },
    /// [`Cloud::update_targets`].
    UpdateTargets {
        /// Of which Service.
        service: &'a Service,
        /// Where traffic would go from then on.
        targets: &'a [Target],
    },
    /// [`Cloud::delete_balancer`].
    DeleteBalancer {
        /// Of which Service.
        service: &'a Service,
    },
    /// [`Cloud::apply_routes`].
    ApplyRoutes {
        /// Routes that would be made.
        create: &'a [NewRoute],
        /// Routes that would go.
        delete: &'a [Route],
    },
}

/// Hears of every call that would have changed the cloud.
type Listener = Box<dyn Fn(PlannedWrite<'_>) + Send + Sync>;

/// Passes reads on to a cloud and answers every other call with [`CloudError::DryRun`].
pub struct ReadOnly {
    cloud: Arc<dyn Cloud>,
    planned: Listener,
}

impl fmt::Debug for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnly").finish_non_exhaustive()
    }
}

impl ReadOnly {
    /// Over this cloud; `planned` hears of what is not done.
    pub fn new(cloud: Arc<dyn Cloud>, planned: impl Fn(PlannedWrite<'_>) + Send + Sync + 'static) -> Self {
        Self {
            cloud,
            planned: Box::new(planned),
        }
    }

    fn refuse<T: Send + 'static>(&self, write: PlannedWrite<'_>) -> Answer<'static, T> {
        (self.planned)(write);
        Box::pin(std::future::ready(Err(CloudError::DryRun)))
    }
}

impl Cloud for ReadOnly {
    fn identity(&self) -> ProviderIdentity {
        self.cloud.identity()
    }

    fn owners(&self) -> Owners {
        self.cloud.owners()
    }

    fn balancer_provider(&self, service: &Service) -> Result<Option<String>, Failure> {
        self.cloud.balancer_provider(service)
    }

    fn abilities(&self) -> Abilities {
        self.cloud.abilities()
    }

    fn unlisted(&self) -> BTreeMap<usize, String> {
        self.cloud.unlisted()
    }

    fn lookup_limit(&self) -> usize {
        self.cloud.lookup_limit()
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        self.cloud.lookup(nodes)
    }

    fn balancer_name<'a>(&'a self, service: &'a Service) -> Answer<'a, String> {
        self.cloud.balancer_name(service)
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        self.cloud.get_balancer(service)
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        _: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        self.refuse(PlannedWrite::EnsureBalancer { service, targets })
    }

    fn update_targets<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        _: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        self.refuse(PlannedWrite::UpdateTargets { service, targets })
    }

    fn delete_balancer<'a>(&'a self, service: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
        self.refuse(PlannedWrite::DeleteBalancer { service })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        self.cloud.list_routes()
    }

    fn apply_routes<'a>(&'a self, create: &'a [NewRoute], delete: &'a [Route]) -> Answer<'a, RouteOutcome> {
        self.refuse(PlannedWrite::ApplyRoutes { create, delete })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A cloud that notes its calls and knows nothing.
    #[derive(Default)]
    struct Noting(Mutex<Vec<&'static str>>);

    impl Noting {
        fn note<T: Send + 'static>(&self, call: &'static str) -> Answer<'static, T> {
            self.0.lock().unwrap().push(call);
            Box::pin(std::future::ready(Err(Failure::Other("noted".into()).into())))
        }
    }

    impl Cloud for Noting {
        fn identity(&self) -> ProviderIdentity {
            ProviderIdentity {
                name: "noting".into(),
                ..ProviderIdentity::default()
            }
        }

        fn abilities(&self) -> Abilities {
            Abilities {
                routes: true,
                ..Abilities::default()
            }
        }

        fn lookup_limit(&self) -> usize {
            7
        }

        fn lookup<'a>(&'a self, _: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
            self.note("lookup")
        }

        fn balancer_name<'a>(&'a self, _: &'a Service) -> Answer<'a, String> {
            self.note("name")
        }

        fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
            self.note("get")
        }

        fn ensure_balancer<'a>(&'a self, _: &'a Service, _: &'a [Target], _: Option<&'a str>) -> Answer<'a, Balancer> {
            self.note("ensure")
        }

        fn update_targets<'a>(
            &'a self,
            _: &'a Service,
            _: &'a [Target],
            _: Option<&'a str>,
        ) -> Answer<'a, Vec<AnnotationChange>> {
            self.note("update")
        }

        fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
            self.note("delete")
        }

        fn list_routes(&self) -> Answer<'_, Vec<Route>> {
            self.note("list")
        }

        fn apply_routes<'a>(&'a self, _: &'a [NewRoute], _: &'a [Route]) -> Answer<'a, RouteOutcome> {
            self.note("apply")
        }
    }

    fn now<T>(mut answer: Answer<'_, T>) -> Result<T, CloudError> {
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn reads_reach_the_cloud_and_writes_are_only_told() {
        let (cloud, told) = (Arc::new(Noting::default()), Arc::new(Mutex::new(Vec::new())));
        let heard = told.clone();
        let read_only = ReadOnly::new(cloud.clone(), move |write| {
            heard.lock().unwrap().push(format!("{write:?}"));
        });
        let service = Service::default();
        assert_eq!(
            (read_only.identity(), read_only.abilities(), read_only.lookup_limit()),
            (cloud.identity(), cloud.abilities(), 7)
        );
        let noted = |error| error == CloudError::from(Failure::Other("noted".into()));
        assert!(noted(now(read_only.lookup(&[])).unwrap_err()));
        assert!(noted(now(read_only.balancer_name(&service)).unwrap_err()));
        assert!(noted(now(read_only.get_balancer(&service)).unwrap_err()));
        assert!(noted(now(read_only.list_routes()).unwrap_err()));
        assert!(told.lock().unwrap().is_empty(), "reads are no plans");

        let refused = |error| error == CloudError::DryRun;
        assert!(refused(
            now(read_only.ensure_balancer(&service, &[], Some("t"))).unwrap_err()
        ));
        assert!(refused(now(read_only.update_targets(&service, &[], None)).unwrap_err()));
        assert!(refused(now(read_only.delete_balancer(&service, None)).unwrap_err()));
        assert!(refused(now(read_only.apply_routes(&[], &[])).unwrap_err()));
        assert_eq!(*cloud.0.lock().unwrap(), ["lookup", "name", "get", "list"]);
        let told = told.lock().unwrap();
        let begins = ["EnsureBalancer", "UpdateTargets", "DeleteBalancer", "ApplyRoutes"];
        assert!(
            told.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)) && told.len() == 4,
            "{told:?}"
        );
    }
}
