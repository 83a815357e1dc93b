//! Cloud Native Storage of one vCenter: the object `CnsVolumeManager` of the service at `/vsanHealth` (namespace `urn:vsan`). What changes something is a task.

pub(crate) mod disks;
pub(crate) mod earlier;
pub(crate) mod fault;
pub(crate) mod task;
pub(crate) mod volume;
mod wait;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::escape;

use crate::config::settings::VCenterSettings;
use crate::vcenter::session::{Session, Sessions};
use crate::vcenter::soap::{Answer, CallError, Reference, Service};
use volume::{CnsVolume, Filter};

/// How long the version of the service is kept: it changes with the server's.
const VERSION_KEPT: Duration = Duration::from_secs(60 * 60);

/// A list in pages.
#[derive(Debug)]
pub(crate) struct Page<T> {
    /// Its entries.
    pub entries: Vec<T>,
    /// Where the next page begins; none after the last.
    pub next: Option<u64>,
}

/// CNS of one vCenter.
#[derive(Debug)]
pub(crate) struct Cns<'a> {
    /// How the vCenter is called.
    pub sessions: Sessions<'a>,
    /// Which one it is.
    pub vcenter: &'a VCenterSettings,
    /// For what is kept.
    pub context: Context,
}

impl<'a> Cns<'a> {
    /// Of this vCenter. No request is made yet.
    pub(crate) fn new(vcenter: &'a VCenterSettings, context: Context) -> Self {
        Self {
            sessions: Sessions::new(vcenter, context),
            vcenter,
            context,
        }
    }

    /// Calls a method of the volume manager; `again` when its answer is broken, unless it begins something.
    fn call(
        &self,
        session: &Session,
        version: &str,
        (method, again): (&str, bool),
        what: &str,
    ) -> Result<Answer, CallError> {
        let service = Service {
            path: "/vsanHealth",
            namespace: "vsan",
            action: &["vsan/", version].concat(),
            session: None,
            again,
        };
        let manager = Reference::new("CnsVolumeManager", "cns-volume-manager");
        let answer = self.sessions.call_service(&service, session, method, &manager, what);
        answer.map_err(fault::translated)
    }

    /// Begins an operation. Gives its task.
    ///
    /// # Errors
    /// The error of CNS.
    pub(crate) fn begin(&self, method: &str, what: &dyn Fn(&Session) -> String) -> Result<Reference, Failure> {
        let version = self.version()?;
        let begun = self
            .sessions
            .with(|session| self.call(session, &version, (method, false), &what(session)))?;
        let task = begun.reference();
        task.ok_or_else(|| Failure::other(format!("{method} was answered without a task")))
    }

    /// A page of the volumes that the filter fits.
    ///
    /// # Errors
    /// The error of CNS.
    pub(crate) fn query(&self, filter: &Filter<'_>) -> Result<Page<CnsVolume>, Failure> {
        let (version, what) = (
            self.version()?,
            format!("<filter xsi:type=\"CnsQueryFilter\">{}</filter>", filter.written()),
        );
        let answer = self
            .sessions
            .with(|session| self.call(session, &version, ("CnsQueryVolume", true), &what))?;
        let result = answer
            .value()
            .ok_or_else(|| Failure::other("CnsQueryVolume was answered without a result"))?;
        let entries: Vec<CnsVolume> = result.children("volumes").filter_map(CnsVolume::read).collect();
        let count = result.children("volumes").count();
        let next = volume::next(filter.from, count, result.child("cursor"));
        Ok(Page { entries, next })
    }

    /// The version of the service that the server names first.
    fn version(&self) -> Result<String, Failure> {
        let (key, state) = (format!("vsan/{}", self.vcenter.name), self.context.state());
        if let Some(kept) = state.get::<String>(&key) {
            return Ok(kept.value);
        }
        let document = self.sessions.document("/sdk/vsanServiceVersions.xml");
        let document = document.map_err(|failure| match failure.kind {
            FailureKind::NotFound => {
                Failure::invalid("this vCenter has no Cloud Native Storage; it needs vCenter 6.7 Update 3 or later")
            }
            _ => failure,
        })?;
        let mut spaces = document.children("namespace");
        let version = spaces
            .find(|space| space.text("name").is_some_and(|name| name.ends_with("vsan")))
            .and_then(|space| space.text("version"))
            .filter(|version| version.len() < 64)
            .ok_or_else(|| Failure::other("the server does not say which version of the vSAN API it has"))?;
        state.put(&key, &version.to_owned(), Keep::at_most(VERSION_KEPT));
        Ok(version.into())
    }
}

/// A text as an element.
pub(crate) fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escape(text))
}

/// An id as the API has it: an element with the element `id`.
pub(crate) fn id_element(name: &str, id: &str) -> String {
    format!("<{name}>{}</{name}>", element("id", id))
}
