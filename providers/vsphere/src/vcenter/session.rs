//! A session on one vCenter: logged in once, kept in the host's state for all calls, and renewed once when the server has thrown it away.
//!
//! With a session goes what lives in it: a container view of all machines for each part of the inventory that counts. The server keeps views up to
//! date, so later calls only read them.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::token::{Token, Tried};
use cloudwit_guest_sdk::xml::{Element, escape};

use crate::config::settings::VCenterSettings;
use crate::vcenter::properties::{Along, Query, retrieve};
use crate::vcenter::soap::{Answer, CallError, FIRST_VERSION, Reference, Service, Soap};

/// vCenter ends a session after half an hour without use, however old it is. After this long it is dropped all the same.
const LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// After a refused login no other one is sent for so long: vCenter locks accounts after five in three minutes (its default).
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// What is known of a session. Kept as a text, a part in each line: tokens of one type are smaller.
pub struct Session {
    /// `name=value`, for the header.
    pub cookie: String,
    /// Version of the server's API.
    pub version: String,
    /// Who logged in.
    pub user: String,
    /// `PropertyCollector`.
    pub collector: Reference,
    /// `SearchIndex`.
    pub search_index: Reference,
    /// `VcenterVStorageObjectManager`; without a value on a server that has none.
    pub disks: Reference,
    /// One container view of all machines for each datacenter, or one for all.
    pub views: Vec<Reference>,
}

impl Session {
    fn written(&self) -> String {
        let mut text = [self.cookie.as_str(), &self.version, &self.user].join("\n");
        let single = [&self.collector, &self.search_index, &self.disks];
        for object in single.into_iter().chain(&self.views) {
            text.push('\n');
            text.push_str(&object.kind);
            text.push(' ');
            text.push_str(&object.value);
        }
        text
    }

    fn read(text: &str) -> Self {
        let object = |line: &str| {
            line.split_once(' ')
                .map(|(kind, value)| Reference::new(kind, value))
                .unwrap_or_default()
        };
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default();
        Self {
            cookie: line().into(),
            version: line().into(),
            user: line().into(),
            collector: object(line()),
            search_index: object(line()),
            disks: object(line()),
            views: lines.map(object).collect(),
        }
    }
}

/// Logs in to one vCenter and calls it.
#[derive(Debug)]
pub struct Sessions<'a> {
    soap: Soap,
    settings: &'a VCenterSettings,
    context: Context,
}

impl<'a> Sessions<'a> {
    /// For this vCenter. Requests nothing yet.
    pub fn new(settings: &'a VCenterSettings, context: Context) -> Self {
        Self {
            soap: Soap::new(context.http(), &settings.url(), settings.attempts),
            settings,
            context,
        }
    }

    /// Does something within a session, and once again in a new one when the session is over.
    ///
    /// # Errors
    /// The error of `work`, or why there is no session.
    pub fn with<R>(&self, mut work: impl FnMut(&Session) -> Result<R, CallError>) -> Result<R, Failure> {
        // Not "session/": an earlier version of this component wrote its sessions there with fewer lines.
        let key = format!("sessions/{}", self.settings.name);
        let login = || Ok((self.login()?.written(), self.context.now() + LIFE.as_secs()));
        Token::with(&self.context.state(), &key, login, |text: &String| {
            match work(&Session::read(text)) {
                Ok(result) => Ok(Tried::Done(result)),
                Err(error) if error.is_end_of_session() => Ok(Tried::Refused(error.into())),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Calls a method within the session.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn call(
        &self,
        session: &Session,
        method: &str,
        this: &Reference,
        parameters: &str,
    ) -> Result<Answer, CallError> {
        self.soap
            .call(&session.version, Some(&session.cookie), method, this, parameters)
    }

    /// Calls a method of another service of the server within the session.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn call_service(
        &self,
        service: &Service<'_>,
        session: &Session,
        method: &str,
        this: &Reference,
        parameters: &str,
    ) -> Result<Answer, CallError> {
        self.soap
            .call_service(service, Some(&session.cookie), method, this, parameters)
    }

    /// A document of the server that needs no session.
    ///
    /// # Errors
    /// Why there is none.
    pub fn document(&self, path: &str) -> Result<Element, Failure> {
        self.soap.document(path)
    }

    /// Whether the session is one: a cheap call that needs it.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn is_alive(&self, session: &Session) -> Result<(), CallError> {
        let views = Query {
            properties: &[("ContainerView", &["type"])],
            from: &session.views,
            along: Along::Themselves,
            page: 100,
        };
        retrieve(self, session, &views, &mut |_| {})
    }

    /// Logs in and makes the views.
    fn login(&self) -> Result<Session, Failure> {
        let refused = format!("refused/{}", self.settings.name);
        if let Some(stored) = self.context.state().get::<String>(&refused) {
            return Err(Failure::denied(stored.value));
        }
        let session = self.try_login().map_err(Failure::from);
        if let Err(Failure {
            kind: FailureKind::Denied,
            message: text,
            ..
        }) = &session
        {
            self.context.state().put(&refused, text, Keep::at_most(AFTER_REFUSAL));
        }
        session
    }

    fn try_login(&self) -> Result<Session, CallError> {
        let instance = Reference::new("ServiceInstance", "ServiceInstance");
        let content = self
            .soap
            .call(FIRST_VERSION, None, "RetrieveServiceContent", &instance, "")?;
        let content = content.value().ok_or_else(|| incomplete("RetrieveServiceContent"))?;
        let object = |name| {
            content
                .child(name)
                .and_then(Reference::of)
                .ok_or_else(|| incomplete(name))
        };
        let version = content
            .at(&["about", "apiVersion"])
            .map_or(FIRST_VERSION, |version| version.own_text());

        let (user, password) = self.settings.credentials.xml(self.context.keys())?;
        let who = format!("<userName>{user}</userName><password>{password}</password>");
        let login = self
            .soap
            .call(version, None, "Login", &object("sessionManager")?, &who)?;
        let mut session = Session {
            cookie: login
                .cookie
                .clone()
                .ok_or_else(|| incomplete("the cookie of the session"))?,
            version: version.into(),
            user: user_of(&login).unwrap_or_default().into(),
            collector: object("propertyCollector")?,
            search_index: object("searchIndex")?,
            disks: content
                .child("vStorageObjectManager")
                .and_then(Reference::of)
                .unwrap_or_default(),
            views: Vec::new(),
        };
        let (manager, root) = (object("viewManager")?, object("rootFolder")?);
        for part in self.parts(&session, root)? {
            let what = [
                &part.write("container"),
                "<type>VirtualMachine</type><recursive>true</recursive>",
            ];
            let made = self.call(&session, "CreateContainerView", &manager, &what.concat())?;
            session
                .views
                .push(made.reference().ok_or_else(|| incomplete("CreateContainerView"))?);
        }
        info!(vcenter = self.settings.name, "logged in");
        Ok(session)
    }

    /// The parts of the inventory that count: the root, or the datacenters that are named.
    fn parts(&self, session: &Session, root: Reference) -> Result<Vec<Reference>, CallError> {
        if self.settings.datacenters.is_empty() {
            return Ok(vec![root]);
        }
        let mut parts = Vec::new();
        for name in &self.settings.datacenters {
            let path = format!("<inventoryPath>{}</inventoryPath>", escape(name.trim_matches('/')));
            let found = self.call(session, "FindByInventoryPath", &session.search_index, &path)?;
            parts.push(
                found
                    .reference()
                    .filter(|found| found.kind == "Datacenter" || found.kind == "Folder")
                    .ok_or_else(|| {
                        let text = [
                            "there is no datacenter \"",
                            name,
                            "\" that this user may see; correct its name, or write its path",
                        ];
                        Failure::not_found(text.concat())
                    })?,
            );
        }
        Ok(parts)
    }
}

/// The name of the user whose session it is.
fn user_of(login: &Answer) -> Option<&str> {
    login
        .value()?
        .text("userName")
        .filter(|name| !name.contains(['\n', '\r']))
}

fn incomplete(what: &str) -> CallError {
    Failure::other(format!("the server's answer lacks {what}")).into()
}
