//! A process with the four controllers: it starts, is elected, loses the Lease, dies at any await, and another one starts.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::{
    Cluster, Controller, Leadership, LifecycleOptions, NodeOptions, Options, RouteOptions, ServiceOptions, Term,
};
use prometheus_client::registry::Registry;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::api::client;
use crate::cloud::ProcessCloud;
use crate::faults::Area;
use crate::judge::calls::Periods;
use crate::lease::{RENEWAL, RETRY};
use crate::promise::Promise;
use crate::world::World;

/// All Pods have addresses in here.
pub(crate) const POD_RANGE: &str = "10.244.0.0/16";

/// Pauses that are longer than the defaults, so that a quiet hour costs little.
pub(crate) const PERIODS: Periods = Periods {
    refresh: Duration::from_secs(600),
    monitor: Duration::from_secs(60),
    drift: Duration::from_secs(1800),
    quiet_routes: Duration::from_secs(300),
    full_check: 6,
};

/// What is known of a process.
pub(crate) struct ProcessState {
    /// The end of its term, since the day began.
    pub(crate) until: Duration,
    pub(crate) dead: bool,
    /// Until then it does not renew the Lease, as if it were stopped or cut off; its work goes on.
    pub(crate) stalled: Duration,
    /// Answers of the cloud that there is no such machine: the first, the last, how many.
    pub(crate) absences: BTreeMap<String, (Duration, Duration, u32)>,
    /// When it deleted Nodes.
    pub(crate) deletions: Vec<Duration>,
    pub(crate) resigns: Arc<Notify>,
    died: Arc<Notify>,
    tasks: Vec<AbortHandle>,
}

fn options() -> Options {
    Options {
        node: NodeOptions {
            status_update_frequency: PERIODS.refresh,
            ..NodeOptions::default()
        },
        lifecycle: LifecycleOptions {
            monitor_period: PERIODS.monitor,
            ..LifecycleOptions::default()
        },
        service: ServiceOptions {
            concurrent_syncs: 2,
            drift_period: Some(PERIODS.drift),
            drift_per_minute: 1,
            ..ServiceOptions::default()
        },
        route: RouteOptions {
            cluster_cidrs: POD_RANGE.parse().into_iter().collect(),
            reconciliation_period: Duration::from_secs(60),
            ..RouteOptions::default()
        },
        controllers: BTreeSet::from(Controller::ALL),
        swap_check_period: Duration::from_secs(3600),
        ..Options::default()
    }
}

/// One replica: a process, and after its death another one, for ever.
pub(crate) async fn replica(world: Arc<World>) {
    loop {
        let died = start(&world);
        died.notified().await;
        let pause = world.lock().chance.seconds(1, 90);
        sleep(pause).await;
    }
}

fn start(world: &Arc<World>) -> Arc<Notify> {
    let (died, resigns) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let id = {
        let mut inner = world.lock();
        let id = u32::try_from(inner.processes.len()).unwrap_or(u32::MAX) + 1;
        let state = ProcessState {
            until: Duration::ZERO,
            dead: false,
            stalled: Duration::ZERO,
            absences: BTreeMap::new(),
            deletions: Vec::new(),
            resigns: resigns.clone(),
            died: died.clone(),
            tasks: Vec::new(),
        };
        inner.processes.insert(id, state);
        id
    };
    world.step(|| format!("p{id} starts"));
    let clock = world.clone();
    let (term, leadership) = Leadership::elected(Arc::new(move || clock.now()));
    let cluster = Cluster::new(client(world.clone(), id), &mut Registry::default()).led_by(leadership.clone());
    let cloud = Arc::new(ProcessCloud {
        world: world.clone(),
        process: id,
    });
    let watched = world.clone();
    let controllers = tokio::spawn(async move {
        let ended = cluster.run(cloud, options(), CancellationToken::new()).await;
        watched.violate(Promise::Alive, format!("p{id}: {ended:?}"));
    });
    let elector = tokio::spawn(elect(world.clone(), id, term, leadership, resigns));
    if let Some(state) = world.lock().processes.get_mut(&id) {
        state.tasks = vec![controllers.abort_handle(), elector.abort_handle()];
    }
    died
}

/// The process is no more; nothing of it runs on.
pub(crate) fn die(world: &World, process: u32) {
    world.step(|| format!("p{process} dies"));
    let mut inner = world.lock();
    let Some(state) = inner.processes.get_mut(&process).filter(|state| !state.dead) else {
        return;
    };
    (state.dead, state.until) = (true, Duration::ZERO);
    state.tasks.iter().for_each(AbortHandle::abort);
    state.died.notify_one();
}

/// The process dies here, at this await.
pub(crate) async fn kill<T>(world: &World, process: u32) -> T {
    die(world, process);
    pending().await
}

async fn elect(world: Arc<World>, id: u32, term: Term, leadership: Leadership, resigns: Arc<Notify>) {
    let mut led = false;
    loop {
        let (asked, stalled) = (world.now(), world.lock().processes[&id].stalled);
        if asked < stalled {
            sleep(stalled - asked).await;
            continue;
        }
        let lost = world.draw(Area::Requests).is_some();
        sleep(world.millis(1, 50)).await;
        let (now, until) = (world.now(), world.lock().processes[&id].until);
        if led && now >= until {
            return end(&world, id, &term).await;
        }
        let taken = if lost {
            None
        } else {
            world.lock().lease.take(id, asked, now)
        };
        match taken {
            Some(until) => {
                term.renew(until);
                if let Some(state) = world.lock().processes.get_mut(&id) {
                    state.until = until;
                }
                if !std::mem::replace(&mut led, true) {
                    world.step(|| format!("p{id} leads"));
                }
                if timeout(RENEWAL, resigns.notified()).await.is_ok() {
                    leadership.resign(Duration::from_secs(10)).await;
                    term.end();
                    world.lock().lease.release(id);
                    return die(&world, id);
                }
            }
            None if led && !lost => return end(&world, id, &term).await,
            None => sleep(RETRY).await,
        }
    }
}

/// The term is over. The process does not know what to do with itself and runs on for a while.
async fn end(world: &World, id: u32, term: &Term) {
    world.step(|| format!("p{id} leads no more"));
    if world.lock().chance.percent(50) {
        term.end();
    }
    let pause = world.lock().chance.seconds(0, 90);
    sleep(pause).await;
    die(world, id);
}
