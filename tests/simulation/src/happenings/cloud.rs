//! What goes wrong in the cloud and on the way to it.

use std::sync::Arc;
use std::time::Duration;

use super::machines::partition;
use super::{keys, seconds};
use crate::api::object::{ANNOUNCED, age, is_ready, provider_id, taints};
use crate::api::store::Kind;
use crate::faults::{Area, Fault, Window, any};
use crate::judge::GRACE;
use crate::world::World;

pub(super) fn lose_balancer(world: &World) -> Option<String> {
    let mut inner = world.lock();
    let all: Vec<String> = inner.cloud.balancers.keys().cloned().collect();
    let uid = inner.chance.pick(&all).cloned()?;
    inner.cloud.balancers.remove(&uid);
    inner.lost.insert(uid.clone());
    Some(uid)
}

pub(super) fn stray_route(world: &World) -> Option<String> {
    let mut inner = world.lock();
    let range = format!("10.244.{}.0/24", inner.chance.number(251, 255));
    inner.cloud.add_route(&range, None, false);
    Some(range)
}

pub(super) fn spoil_route(world: &World, blackhole: bool) -> Option<String> {
    let mut inner = world.lock();
    let all: Vec<String> = inner.cloud.routes.keys().cloned().collect();
    let id = inner.chance.pick(&all).cloned()?;
    if !blackhole {
        inner.cloud.routes.remove(&id);
    } else {
        inner.cloud.routes.get_mut(&id)?.blackhole = true;
    }
    Some(id)
}

pub(super) fn trouble(world: &World) -> String {
    let now = world.now();
    let mut inner = world.lock();
    let area = inner.chance.pick(&Area::ALL).copied().unwrap_or(Area::Requests);
    let outage = inner.chance.percent(35);
    let window = if outage {
        let fault = Some(any(area, &mut inner.chance));
        let fault = fault.filter(|fault| !matches!(fault, Fault::DieBefore | Fault::DieAfter));
        Window {
            until: now + inner.chance.seconds(10, 480),
            percent: 100,
            fault: fault.or(Some(Fault::Unavailable)),
        }
    } else {
        let percent = u32::try_from(inner.chance.number(5, 40)).unwrap_or(5);
        Window {
            until: now + inner.chance.seconds(60, 900),
            percent,
            fault: None,
        }
    };
    inner.faults.open(area, window);
    format!("{area:?} {window:?}")
}

/// The cloud's list is empty for minutes, while several Nodes are not Ready whose machines run. All of them are older than the grace
/// period: younger ones do not count for the brake.
pub(super) fn empty_list(world: &Arc<World>) -> Option<String> {
    let names = keys(world, Kind::Nodes, |node| {
        is_ready(node) && age(node) > GRACE * 2 && !taints(node).contains(ANNOUNCED)
    });
    if names.len() < 2 {
        return None;
    }
    let time = seconds(world, 120, 1200);
    let (now, mut inner) = (world.now(), world.lock());
    let ids: Vec<String> = names
        .iter()
        .filter_map(|name| {
            inner
                .store
                .get(Kind::Nodes, name)
                .map(|node| provider_id(node).to_owned())
        })
        .filter(|id| inner.cloud.machines.contains_key(id))
        .collect();
    // After this, none of them is lied about alone.
    for id in &ids {
        inner
            .lies
            .insert(id.clone(), now.saturating_sub(Duration::from_secs(100)));
    }
    inner.conspiracy.machines = ids;
    inner.conspiracy.until = now + time;
    drop(inner);
    let count = usize::try_from(world.lock().chance.number(2, names.len() as u64)).unwrap_or(2);
    for name in names.iter().take(count) {
        partition(world, name, time + Duration::from_secs(10));
    }
    Some(names[..count].join(" "))
}
