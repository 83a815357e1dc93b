//! Creations of an earlier process, or of a call without an answer: their tasks are not known by name, and a second one would make a second volume.
//!
//! So a volume is only begun after all tasks that create one, and that vCenter has had from before the first check, are over. That is checked once in a
//! while, not for each volume.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::xml::Element;

use crate::vcenter::properties::{Along, Query, retrieve_by};
use crate::vcenter::soap::Reference;
use crate::volumes::cns::Cns;
use crate::volumes::cns::task::POLL;

/// How long it counts that no earlier task runs: as long as this provider's own are known by their tokens.
const SETTLED: Duration = Duration::from_secs(12 * 60 * 60);

/// How long the time of the first check is kept; longer than tasks take.
const SINCE: Duration = Duration::from_secs(60 * 60);

/// When the volume is looked up once more.
const NEXT: Duration = Duration::from_millis(50);

/// Tasks in one page.
const PAGE: u32 = 200;

/// Whether a task creates a volume: `com.vmware.cns.tasks.createvolume`.
fn creates(info: &Element) -> bool {
    let said = info.text("descriptionId").unwrap_or_default().to_ascii_lowercase();
    said.contains("createvolume")
}

/// Whether a task was queued before this time and is not over.
fn runs_since_before(info: &Element, since: u64) -> bool {
    let queued = info.text("queueTime").and_then(parse_rfc3339);
    matches!(info.text("state"), Some("running" | "queued")) && queued.is_none_or(|queued| queued <= since)
}

impl Cns<'_> {
    /// Success when no earlier task creates volumes any more, as was found in an earlier call.
    ///
    /// # Errors
    /// `pending` until then.
    pub(crate) fn settled(&self, doing: &str) -> Result<(), Failure> {
        let state = self.context.state();
        if state.get::<bool>(&self.settled_key()).is_some() {
            return Ok(());
        }
        let since = match state.get::<u64>(&self.since_key()) {
            Some(since) => since.value,
            None => {
                let now = self.server_time()?;
                state.put(&self.since_key(), &now, Keep::at_most(SINCE));
                now
            }
        };
        if self.creations_before(since)? > 0 {
            let text = format!("{doing}: an earlier creation of a volume has to end first");
            return Err(Failure::pending(POLL, "", text));
        }
        state.put(&self.settled_key(), &true, Keep::at_most(SETTLED));
        // One may have ended after its volume was looked up.
        let text = format!("{doing}: it is looked for once more");
        Err(Failure::pending(NEXT, "", text))
    }

    /// A creation was requested without an answer: it may run.
    pub(crate) fn unsettle(&self) {
        let state = self.context.state();
        state.remove(&self.settled_key());
        state.remove(&self.since_key());
    }

    fn settled_key(&self) -> String {
        format!("settled/{}", self.vcenter.name)
    }

    fn since_key(&self) -> String {
        format!("since/{}", self.vcenter.name)
    }

    /// The server's clock, in seconds since 1970.
    fn server_time(&self) -> Result<u64, Failure> {
        let instance = Reference::new("ServiceInstance", "ServiceInstance");
        let answer = self
            .sessions
            .with(|session| self.sessions.call(session, "CurrentTime", &instance, ""))?;
        let time = answer.value().map(Element::own_text).and_then(parse_rfc3339);
        time.ok_or_else(|| Failure::other("the server does not say what time it is"))
    }

    fn creations_before(&self, since: u64) -> Result<usize, Failure> {
        let version = self.version()?;
        let mut running = 0;
        self.sessions.with(|session| {
            running = 0;
            let mut recent: Vec<Reference> = Vec::new();
            let manager = [Reference::new("TaskManager", "TaskManager")];
            let list = Query {
                properties: &[("TaskManager", &["recentTask"])],
                from: &manager,
                along: Along::These,
                page: 1,
            };
            let call = |method: &str, what: &str| self.collect(session, &version, method, what);
            retrieve_by(&call, &list, &mut |object| {
                let tasks = object.value("recentTask").into_iter().flat_map(Element::elements);
                recent.extend(tasks.filter_map(Reference::of));
            })?;
            let query = Query {
                properties: &[("Task", &["info"])],
                from: &recent,
                along: Along::These,
                page: PAGE,
            };
            retrieve_by(&call, &query, &mut |object| {
                let info = object.value("info");
                running += usize::from(info.is_some_and(|info| creates(info) && runs_since_before(info, since)));
            })
        })?;
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_creations_from_before_are_waited_for() {
        let info = |state: &str, kind: &str, queued: &str| {
            let text = format!(
                "<val><descriptionId>{kind}</descriptionId><state>{state}</state><queueTime>{queued}</queueTime></val>"
            );
            Element::parse(&text).unwrap()
        };
        let since = parse_rfc3339("2026-11-25T17:00:00Z").unwrap();
        let counts = |info: &Element| creates(info) && runs_since_before(info, since);
        let create = "com.vmware.cns.tasks.createvolume";
        assert!(counts(&info("running", create, "2026-11-25T16:59:59.5Z")));
        assert!(counts(&info(
            "queued",
            "CnsVolumeManager.CnsCreateVolume",
            "2026-11-25T16:00:00Z"
        )));
        for other in [
            info("success", create, "2026-11-25T16:59:59Z"),
            info("running", create, "2026-11-25T17:00:02Z"),
            info("running", "com.vmware.cns.tasks.attachvolume", "2026-11-25T16:59:59Z"),
        ] {
            assert!(!counts(&other), "{other:?}");
        }
    }
}
