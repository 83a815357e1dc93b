//! What differs between the kinds of load balancers: how things are listed, and the requests that change them.

pub(crate) mod clb;
pub(crate) mod nlb;

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::fields::Field;
use super::groups::{Group, Member};
use super::listeners::Listener;
use super::task::{Found, Task};
use super::wanted::{Port, Wanted};
use super::work::Next;
use crate::api::Call;

/// Requests of one kind of load balancer.
pub trait Requests {
    /// Whether changes are jobs, of which a thing has one at a time.
    const JOBS: bool;
    /// How the names of listeners begin that controllers made.
    const MARK: &'static str;
    /// Parameters for a listener's name and its server group.
    const NAMES: [&'static str; 2];
    /// Actions that take instances out of a server group, put them into it and weigh them.
    const MEMBERS: [&'static str; 3];
    /// Instances in such a request.
    const BATCH: usize;

    /// What has to be done, or waited for, before the load balancer can be changed.
    fn first(task: &Task<'_>, found: &Found) -> Result<Option<Next<Found>>, Failure>;
    /// Makes one, without tags.
    fn create(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Call, Failure>;
    /// What the annotations have otherwise than it is, apart from tags.
    fn changes(task: &Task<'_>, wanted: &Wanted<'_>, found: &Found) -> Result<Vec<Call>, Failure>;
    /// Takes the protection from deletion away, where there is one.
    fn unprotect(task: &Task<'_>, found: &Found) -> Option<Call>;

    /// Server groups of the Service; `found` is none when the load balancer is gone.
    fn groups(task: &Task<'_>, found: Option<&Found>) -> Result<Vec<Group>, Failure>;
    /// The same where nothing is needed of the load balancer but that there is one.
    fn groups_alone(task: &Task<'_>) -> Result<Vec<Group>, Failure>;
    /// Makes the group of a port, or brings its parameters up to date.
    fn change_group(task: &Task<'_>, found: &Found, port: &Port, group: Option<&Group>) -> Option<Call>;
    fn delete_group(group: &Group) -> Call;
    fn members(task: &Task<'_>, group: &Group) -> Result<Vec<Value>, Failure>;
    /// One of the actions [`MEMBERS`](Self::MEMBERS), of these instances.
    fn change_members(action: &'static str, group: &Group, members: &[Member]) -> Call;

    /// All of the load balancer.
    fn listeners(task: &Task<'_>, found: &Found) -> Result<Vec<Listener>, Failure>;
    fn create_listener(found: &Found, port: &Port, fields: &[Field]) -> Call;
    fn change_listener(found: &Found, port: &Port, listener: &Listener, fields: &[Field]) -> Call;
    fn start_listener(found: &Found, listener: &Listener) -> Call;
    fn delete_listener(found: &Found, listener: &Listener) -> Call;
}
