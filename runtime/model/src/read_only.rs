//! A cloud that cannot be changed: what a dry run gets instead of the real one.
//!
//! Its gate reports each call that would change something, and makes none.

use std::sync::Arc;

use crate::{Answer, Cloud, CloudError, Gate, Gated, PlannedWrite};

/// Passes reads on to a cloud and answers every other call with [`CloudError::DryRun`].
pub type ReadOnly = Gated<Telling>;

/// The gate of a [`ReadOnly`] cloud; receives every call that would have changed it.
pub struct Telling(Box<dyn Fn(PlannedWrite<'_>) + Send + Sync>);

impl Telling {
    /// `planned` receives what is not done.
    pub fn to(planned: impl Fn(PlannedWrite<'_>) + Send + Sync + 'static) -> Self {
        Self(Box::new(planned))
    }
}

impl ReadOnly {
    /// Over this cloud; `planned` receives what is not done.
    pub fn new(cloud: Arc<dyn Cloud>, planned: impl Fn(PlannedWrite<'_>) + Send + Sync + 'static) -> Self {
        Self::over(cloud, Telling::to(planned))
    }
}

impl Gate for Telling {
    fn change<'a, T: Send + 'a>(
        &'a self,
        write: PlannedWrite<'a>,
        _: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        (self.0)(write);
        Box::pin(std::future::ready(Err(CloudError::DryRun)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::volume_cloud::Each;
    use crate::{
        Abilities, AnnotationChange, Balancer, Failure, NewRoute, NodeRef, Presence, ProviderIdentity, Route,
        RouteOutcome, RouteTokens, Service, TagChange, Tags, Target, TargetUpdate,
    };

    /// An empty cloud that records its calls.
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

        fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
            self.note("get")
        }

        fn ensure_balancer<'a>(&'a self, _: &'a Service, _: &'a [Target], _: Option<&'a str>) -> Answer<'a, Balancer> {
            self.note("ensure")
        }

        fn update_targets_of<'a>(
            &'a self,
            _: &'a [TargetUpdate<'a>],
            _: &'a [Target],
        ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
            self.note("update")
        }

        fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
            self.note("delete")
        }

        fn list_routes(&self) -> Answer<'_, Vec<Route>> {
            self.note("list")
        }

        fn apply_routes<'a>(
            &'a self,
            _: &'a [NewRoute],
            _: &'a [Route],
            _: &'a RouteTokens,
        ) -> Answer<'a, RouteOutcome> {
            self.note("apply")
        }

        fn change_tags<'a>(&'a self, _: TagChange, _: &'a [NodeRef], _: &'a Tags) -> Answer<'a, Each<()>> {
            self.note("tag")
        }
    }

    fn now<T>(mut answer: Answer<'_, T>) -> Result<T, CloudError> {
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn reads_reach_the_cloud_and_writes_are_only_reported() {
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
        assert!(noted(now(read_only.get_balancer(&service)).unwrap_err()));
        assert!(noted(now(read_only.list_routes()).unwrap_err()));
        assert!(told.lock().unwrap().is_empty(), "reads are no plans");

        let refused = |error| error == CloudError::DryRun;
        assert!(refused(
            now(read_only.ensure_balancer(&service, &[], Some("t"))).unwrap_err()
        ));
        assert!(refused(now(read_only.update_targets(&service, &[], None)).unwrap_err()));
        assert!(refused(now(read_only.delete_balancer(&service, None)).unwrap_err()));
        assert!(refused(
            now(read_only.apply_routes(&[], &[], RouteTokens::NONE)).unwrap_err()
        ));
        let tags = Tags::new();
        assert!(refused(
            now(read_only.change_tags(TagChange::Add, &[], &tags)).unwrap_err()
        ));
        assert_eq!(*cloud.0.lock().unwrap(), ["lookup", "get", "list"]);
        let told = told.lock().unwrap();
        let begins = [
            "EnsureBalancer",
            "UpdateTargets",
            "DeleteBalancer",
            "ApplyRoutes",
            "ChangeTags",
        ];
        assert!(
            told.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)) && told.len() == 5,
            "{told:?}"
        );
    }
}
