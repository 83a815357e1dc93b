//! Routes of several clouds: everybody lists, a creation goes to the owner of the Node, a deletion to whoever listed the route. Part of
//! [`Router`].

use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::join::join_all;
use crate::router::{Member, Router, as_failure};
use crate::{Answer, Cloud as _, CloudError, Failure, NewRoute, Route, RouteOutcome};

/// Stands between a provider's name and the cloud's id in the ids of routes; no name contains it.
const OF: char = ':';

impl Router {
    /// The routes of all members that could list theirs. The error is that of the first, when none could.
    pub(crate) async fn list_all(&self) -> Result<Vec<Route>, CloudError> {
        let calls = self.members.iter().map(|member| -> Answer<'_, Vec<Route>> {
            match member.cloud.abilities().routes {
                true => member.cloud.list_routes(),
                false => Box::pin(std::future::ready(Ok(Vec::new()))),
            }
        });
        let results = join_all(calls.collect()).await;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut all, mut answered, mut first_failure) = (Vec::new(), false, None);
        for ((member, failed), result) in self.members.iter().zip(failed.iter_mut()).zip(results) {
            if !member.cloud.abilities().routes {
                continue;
            }
            match result {
                Ok(routes) => {
                    (*failed, answered) = (None, true);
                    all.extend(routes.into_iter().map(|route| Route {
                        id: format!("{}{OF}{}", member.name, route.id),
                        ..route
                    }));
                }
                // Nothing may follow from a list that is missing, nor from one that is old: its Nodes are left out (see `unlisted`).
                Err(error) => {
                    let failure = as_failure(&member.name, error);
                    first_failure.get_or_insert_with(|| failure.clone());
                    *failed = Some(failure);
                }
            }
        }
        match first_failure {
            Some(failure) if !answered => Err(failure.into()),
            _ => Ok(all),
        }
    }

    /// Each change by the member whose it is.
    pub(crate) async fn apply_split(&self, create: &[NewRoute], delete: &[Route]) -> Result<RouteOutcome, CloudError> {
        let owners = self.owners();
        let mut outcome = RouteOutcome {
            created: create
                .iter()
                .map(|route| Err(self.nobodys(&route.node, &owners)))
                .collect(),
            deleted: delete.iter().map(|route| Err(unlisted(route))).collect(),
        };
        let mut batches: Vec<Batch> = vec![Batch::default(); self.members.len()];
        for (at, route) in create.iter().enumerate() {
            if let Some(place) = owners.place_of(&route.node) {
                batches[place].create.push(route.clone());
                batches[place].created_at.push(at);
            }
        }
        for (at, route) in delete.iter().enumerate() {
            if let Some((name, id)) = route.id.split_once(OF)
                && let Ok(place) = self.place_named(name)
            {
                batches[place].delete.push(Route {
                    id: id.to_owned(),
                    ..route.clone()
                });
                batches[place].deleted_at.push(at);
            }
        }
        let asked: Vec<usize> = (0..batches.len()).filter(|place| !batches[*place].is_empty()).collect();
        let calls = asked.iter().map(|place| {
            let batch = &batches[*place];
            self.members[*place].cloud.apply_routes(&batch.create, &batch.delete)
        });
        let results = join_all(calls.collect()).await;
        for (place, result) in asked.into_iter().zip(results) {
            let batch = &batches[place];
            let done = match result {
                Err(CloudError::DryRun) => return Err(CloudError::DryRun),
                Err(error) => batch.failed(&as_failure(&self.members[place].name, error)),
                Ok(done) => done,
            };
            put(&mut outcome.created, &batch.created_at, done.created);
            put(&mut outcome.deleted, &batch.deleted_at, done.deleted);
        }
        Ok(outcome)
    }

    /// The members whose last list failed, by place, and why.
    pub(crate) fn unlisted_members(&self) -> BTreeMap<usize, String> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let members = self.members.iter().zip(failed.iter()).enumerate();
        let why = |(place, (member, failed)): (usize, (&Member, &Option<Failure>))| {
            let failure = failed.as_ref().filter(|_| member.cloud.abilities().routes)?;
            Some((place, format!("provider {:?}: {failure}", member.name)))
        };
        members.filter_map(why).collect()
    }
}

/// Changes of routes for one provider, and where their results belong.
#[derive(Debug, Clone, Default)]
struct Batch {
    create: Vec<NewRoute>,
    created_at: Vec<usize>,
    delete: Vec<Route>,
    deleted_at: Vec<usize>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }

    fn failed(&self, failure: &Failure) -> RouteOutcome {
        RouteOutcome {
            created: vec![Err(failure.clone()); self.create.len()],
            deleted: vec![Err(failure.clone()); self.delete.len()],
        }
    }
}

fn put(all: &mut [Result<(), Failure>], places: &[usize], results: Vec<Result<(), Failure>>) {
    let missing = std::iter::repeat_with(|| Err(Failure::Other("the provider gave no answer for this route".into())));
    for (at, result) in places.iter().zip(results.into_iter().chain(missing)) {
        all[*at] = result;
    }
}

fn unlisted(route: &Route) -> Failure {
    Failure::Invalid(format!("route {} was listed by no configured provider", route.id))
}
