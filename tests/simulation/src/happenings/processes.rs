//! What happens to the processes of Cloudwit.

use super::seconds;
use crate::process::die;
use crate::world::World;

pub(super) fn kill_leader(world: &World) -> Option<String> {
    let leader = world.lock().lease.holder()?;
    die(world, leader);
    Some(format!("p{leader}"))
}

pub(super) fn stall_leader(world: &World) -> Option<String> {
    let until = world.now() + seconds(world, 60, 400);
    let leader = world.lock().lease.holder()?;
    world.lock().processes.get_mut(&leader)?.stalled = until;
    Some(format!("p{leader}"))
}

pub(super) fn resign_leader(world: &World) -> Option<String> {
    let leader = world.lock().lease.holder()?;
    world.lock().processes.get(&leader)?.resigns.notify_one();
    Some(format!("p{leader}"))
}

pub(super) fn kill_any(world: &World) -> Option<String> {
    let alive: Vec<u32> = {
        let inner = world.lock();
        inner
            .processes
            .iter()
            .filter(|(_, state)| !state.dead)
            .map(|(id, _)| *id)
            .collect()
    };
    let process = world.lock().chance.pick(&alive).copied()?;
    die(world, process);
    Some(format!("p{process}"))
}
