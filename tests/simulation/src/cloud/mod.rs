//! The cloud as one process calls it: each call takes its time, may go wrong, and is judged when it takes effect.

pub(crate) mod state;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Evidence, Failure, FaultKind, NewRoute, NodeRef,
    Presence, ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service, Target, TargetUpdate,
};
use tokio::time::sleep;

use crate::api::object;
use crate::api::store::Kind;
use crate::faults::{Area, Fault};
use crate::judge::{GRACE, judge_balancer, judge_writer};
use crate::process::kill;
use crate::world::{Inner, World};

/// The limit of a call, as the host has one.
const LIMIT: Duration = Duration::from_secs(60);

/// A lie about a machine lasts less than the time between the two absences that delete a Node.
const LIE: Duration = Duration::from_secs(100);

/// So long after a lie about a machine there is no other.
const BETWEEN_LIES: Duration = Duration::from_secs(7200);

/// A Node that has been Ready for so long is known to be by all processes.
const KNOWN: Duration = Duration::from_secs(300);

/// The cloud of one process.
pub(crate) struct ProcessCloud {
    pub(crate) world: Arc<World>,
    pub(crate) process: u32,
}

fn fault(kind: FaultKind) -> CloudError {
    let (provider, output) = ("sim".to_owned(), String::new());
    CloudError::Fault(ProviderFault {
        provider,
        kind,
        message: "in the simulation".into(),
        output,
    })
}

impl ProcessCloud {
    /// One call. `effect` is given what goes wrong where that is its own business (half done, stale, per item).
    async fn call<T>(
        &self,
        area: Area,
        what: impl FnOnce() -> String,
        effect: impl FnOnce(&mut Inner, Option<Fault>, Duration) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let world = &self.world;
        if world.lock().processes[&self.process].dead {
            return pending().await;
        }
        let fault_drawn = world.draw(area);
        sleep(world.millis(10, 400)).await;
        match fault_drawn {
            Some(Fault::Slow(time)) => sleep(time).await,
            Some(Fault::Unavailable) => return Err(Failure::Unavailable("the cloud is down".into()).into()),
            Some(Fault::Throttled) => {
                let after = Some(Duration::from_secs(20));
                return Err(Failure::RateLimited {
                    after,
                    message: "slow down".into(),
                }
                .into());
            }
            Some(Fault::Denied) => return Err(Failure::Denied("wrong credentials".into()).into()),
            Some(Fault::LostBefore) => return Err(Failure::Unavailable("no answer".into()).into()),
            Some(Fault::Trap) => return Err(fault(FaultKind::Trap)),
            Some(Fault::Hang) => {
                sleep(LIMIT).await;
                return Err(fault(FaultKind::Deadline));
            }
            Some(Fault::DieBefore) => return kill(world, self.process).await,
            _ => {}
        }
        // A call dies with its process, also where both are at the same instant.
        if world.lock().processes[&self.process].dead {
            return pending().await;
        }
        world.step(|| format!("p{} calls {}{}", self.process, what(), fault_text(fault_drawn)));
        let result = effect(&mut world.lock(), fault_drawn, world.now());
        match fault_drawn {
            Some(Fault::LostAfter) => return Err(Failure::Unavailable("no answer".into()).into()),
            Some(Fault::HangAfter) => {
                sleep(LIMIT).await;
                return Err(fault(FaultKind::Deadline));
            }
            Some(Fault::DieAfter) => return kill(world, self.process).await,
            _ => sleep(world.millis(5, 100)).await,
        }
        result
    }

    /// A call that changes the cloud.
    async fn change<T>(
        &self,
        area: Area,
        what: &str,
        effect: impl FnOnce(&mut Inner, Option<Fault>, Duration) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let text = || what.to_owned();
        self.call(area, text, |inner, drawn, now| {
            judge_writer(&self.world, inner, self.process, what);
            effect(inner, drawn, now)
        })
        .await
    }
}

fn fault_text(fault: Option<Fault>) -> String {
    fault.map_or_else(String::new, |fault| format!(" ({fault:?})"))
}

/// What the cloud says about one machine. `others` are asked about in the same call.
fn presence(inner: &mut Inner, process: u32, node: &NodeRef, all: &[NodeRef], stale: bool, now: Duration) -> Presence {
    let found = match node.provider_id.as_deref() {
        Some(id) => inner.cloud.machines.get_key_value(id),
        None => inner
            .cloud
            .machine_named(&node.name)
            .filter(|(_, machine)| machine.listed_from <= now),
    };
    let Some((id, machine)) = found.map(|(id, machine)| (id.clone(), machine.clone())) else {
        let by_id = node.provider_id.as_ref();
        if inner.cloud.deceit == crate::cloud::state::Deceit::KeepsMachines
            && let Some(id) = by_id
        {
            return Presence::Running(cloudwit_model::Instance {
                provider_id: id.clone(),
                ..Default::default()
            });
        }
        if let Some(id) = by_id {
            note_absence(inner, process, id, now);
        }
        return Presence::Absent(if by_id.is_some() {
            Evidence::ById
        } else {
            Evidence::ByName
        });
    };
    if node.provider_id.is_some() && may_lie(inner, &id, all, stale, now) {
        note_absence(inner, process, &id, now);
        return Presence::Absent(Evidence::ById);
    }
    let instance = inner.cloud.instance(&id, &machine);
    // An old answer to the question whether it was stopped.
    let recently = machine.started.is_some_and(|at| now < at + Duration::from_secs(120));
    if machine.stopped || (stale && recently) {
        Presence::Stopped(instance)
    } else {
        Presence::Running(instance)
    }
}

/// The process is given the answer that there is no machine with this id.
fn note_absence(inner: &mut Inner, process: u32, id: &str, now: Duration) {
    if let Some(process) = inner.processes.get_mut(&process) {
        let (_, last, answers) = process.absences.entry(id.to_owned()).or_insert((now, now, 0));
        (*last, *answers) = (now, *answers + 1);
    }
}

/// Whether the cloud may say that a machine does not exist although it does. Within what the controllers promise to stand: for less
/// than the time of confirmation, never twice in a row with flapping answers, or for several machines at once, which the brake holds.
fn may_lie(inner: &mut Inner, id: &str, all: &[NodeRef], stale: bool, now: Duration) -> bool {
    if inner.conspiracy.until > now {
        // Only Nodes past the grace period count for the brake.
        let counts = |node: &&NodeRef| {
            let old = inner
                .store
                .get(Kind::Nodes, &node.name)
                .is_some_and(|node| object::age(node) > GRACE + LIE);
            let among = node
                .provider_id
                .as_ref()
                .is_some_and(|id| inner.conspiracy.machines.contains(id));
            old && among
        };
        let counted = || all.iter().filter(counts);
        return counted().any(|node| node.provider_id.as_deref() == Some(id)) && counted().count() >= 2;
    }
    // A look-up that leaves a Node out which is known to be Ready is about those that are not.
    let left_out = |name: &String| all.iter().all(|node| node.name != *name);
    let known = |since: &Duration| *since + KNOWN < now;
    let lifecycle = inner.ready_since.iter().any(|(name, since)| {
        let initialised = inner
            .store
            .get(Kind::Nodes, name)
            .is_some_and(|node| !object::provider_id(node).is_empty());
        known(since) && left_out(name) && initialised
    });
    if !stale || !lifecycle {
        return false;
    }
    let since = *inner.lies.entry(id.to_owned()).or_insert(now);
    if now > since + BETWEEN_LIES {
        inner.lies.insert(id.to_owned(), now);
        return true;
    }
    now < since + LIE
}

impl Cloud for ProcessCloud {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            name: "sim".into(),
            version: "1".into(),
            digest: "d".into(),
            provider_id_prefixes: vec!["sim://".into()],
            ..ProviderIdentity::default()
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            instances: true,
            load_balancers: true,
            routes: true,
            ..Abilities::default()
        }
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        let what = move || {
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            format!("lookup {}", names.join(" "))
        };
        Box::pin(self.call(Area::Machines, what, move |inner, drawn, now| {
            inner.calls.lookups += 1;
            let mut answers = Vec::new();
            for node in nodes {
                if drawn == Some(Fault::HalfDone) && inner.chance.percent(50) {
                    answers.push(Err(Failure::Unavailable("this one could not be looked up".into())));
                    continue;
                }
                let stale = drawn == Some(Fault::Stale);
                answers.push(Ok(presence(inner, self.process, node, nodes, stale, now)));
            }
            Ok(answers)
        }))
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        let what = move || format!("get {}", service.name);
        Box::pin(self.call(Area::Balancers, what, move |inner, _, now| {
            inner.calls.gets += 1;
            Ok(inner.cloud.get_balancer(service, now))
        }))
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        Box::pin(async move {
            let what = format!(
                "ensure {} ({}) with {} nodes, token {token:?}",
                service.name,
                service.uid,
                targets.len()
            );
            self.change(Area::Balancers, &what, |inner, drawn, now| {
                inner.calls.ensures += 1;
                judge_balancer(&self.world, inner, service);
                let building = if inner.chance.percent(40) {
                    inner.chance.seconds(5, 40)
                } else {
                    Duration::ZERO
                };
                let steps = if drawn == Some(Fault::HalfDone) {
                    inner.chance.number(1, 2)
                } else {
                    3
                };
                inner.cloud.ensure(service, targets, now + building, now, steps)
            })
            .await
        })
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        Box::pin(async move {
            let name = |update: &TargetUpdate<'_>| format!("{} ({})", update.service.name, update.service.uid);
            let names: Vec<String> = updates.iter().map(name).collect();
            let what = format!("update {} with {} nodes", names.join(", "), targets.len());
            self.change(Area::Balancers, &what, |inner, drawn, _| {
                inner.calls.changes += 1;
                let mut give = |update: &TargetUpdate<'_>| {
                    // In the middle of a batch: some are done, some half, some not.
                    let half = drawn == Some(Fault::HalfDone) && (updates.len() == 1 || inner.chance.percent(50));
                    let given = inner.cloud.update_targets(update.service, targets, half);
                    given.map(|()| Vec::new())
                };
                Ok(updates.iter().map(&mut give).collect())
            })
            .await
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let what = format!("delete {} ({}), token {token:?}", service.name, service.uid);
            self.change(Area::Balancers, &what, |inner, drawn, _| {
                inner.calls.changes += 1;
                if token.is_none() && inner.cloud.balancers.contains_key(&service.uid) && inner.chance.percent(30) {
                    let (after, token) = (Duration::from_secs(5), "deleting".to_owned());
                    return Err(Failure::Pending {
                        after,
                        token,
                        message: "draining".into(),
                    }
                    .into());
                }
                inner
                    .cloud
                    .delete_balancer(service, drawn == Some(Fault::HalfDone))
                    .map(|()| Vec::new())
            })
            .await
        })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        Box::pin(self.call(
            Area::Routes,
            || "list routes".into(),
            |inner, drawn, _| {
                inner.calls.route_lists += 1;
                Ok(inner.cloud.list_routes(drawn == Some(Fault::Stale)))
            },
        ))
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        _: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        Box::pin(async move {
            let text = |routes: Vec<&str>| routes.join(" ");
            let created = text(create.iter().map(|route| route.destination.as_str()).collect());
            let deleted = text(delete.iter().map(|route| route.destination.as_str()).collect());
            let what = format!("apply routes: delete [{deleted}], create [{created}]");
            self.change(Area::Routes, &what, |inner, drawn, _| {
                inner.calls.changes += 1;
                Ok(inner.cloud.apply_routes(create, delete, drawn == Some(Fault::HalfDone)))
            })
            .await
        })
    }
}
