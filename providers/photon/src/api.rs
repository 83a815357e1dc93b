//! One call of Photon Controller's API: a token of Lightwave or none, JSON, pages, tasks that are polled for a while.

use std::time::Duration;

use cloudwit_guest_sdk::classify::{Case, Codes};
use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::http::paginate;
use cloudwit_guest_sdk::keys::Encoding;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Global, PASSWORD};
use crate::task::{Task, TaskState};

/// What tokens are good for.
const SCOPE: &str = "openid offline_access rs_photon_platform at_groups";

/// The cloud's error code for an id without a machine.
pub(crate) const NO_MACHINE: &str = "VmNotFound";

/// How often a task is polled in one call; the next one continues.
const LOOKS: usize = 3;

/// How long networks are cached: shorter than the pause between two syncs of Nodes' addresses, 300 s, and long enough for a search by address that
/// takes several calls.
const KEPT: Keep = Keep::at_most(Duration::from_secs(240));

/// How long a task that has not ended is cached: over several such pauses. Photon Controller's own client waits for half an hour.
const TASK_KEPT: Keep = Keep::at_most(Duration::from_secs(900));

/// What is left of a call's time when no further task is begun.
const RESERVE: Duration = Duration::from_secs(5);

/// How long the project's id is cached.
const PROJECT_KEPT: Keep = Keep::at_most(Duration::from_secs(600));

/// Something else is done with the machine or the disk.
pub(crate) const BUSY: &str = "ConcurrentTask";

/// What the cloud means by its codes, most of which come with the status 400, of answers and of tasks.
pub(crate) const CODES: Codes = Codes::new(&[
    (BUSY, Case::Conflict),
    ("StateError", Case::FailedPrecondition),
    ("InvalidVmState", Case::FailedPrecondition),
    ("SystemPaused", Case::Unavailable),
    ("QuotaError", Case::Exhausted),
    ("InsufficientCapacity", Case::Exhausted),
    ("NotEnoughDatastoreCapacity", Case::Exhausted),
    ("NoSuchResource", Case::Exhausted),
    ("FlavorNotFound", Case::Invalid),
]);

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-photon/", env!("CARGO_PKG_VERSION"));

/// The way to the API.
pub struct Api {
    http: Http,
    global: Global,
    context: Context,
    /// Where tokens come from, and what is sent there.
    login: Option<(String, Form)>,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Value>,
    next_page_link: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    name: String,
}

/// How the cloud refuses something, in an answer or a step of a task.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl Api {
    /// For this configuration. Sends nothing yet.
    ///
    /// # Errors
    /// When the secret is not granted.
    pub fn new(global: &Global, context: Context) -> Result<Self, Failure> {
        let login = match global.lightwave() {
            None => None,
            Some(url) => {
                let password = context.keys().placeholder_as(PASSWORD, Encoding::Form)?;
                let form = Form::new()
                    .field("grant_type", "password")
                    .field("username", global.username());
                let form = form.field("password", password).field("scope", SCOPE);
                Some((format!("{url}/openidconnect/token"), form))
            }
        };
        Ok(Self {
            http: context.http().base(global.target()).header("user-agent", AGENT),
            global: global.clone(),
            context,
            login,
        })
    }

    /// The machine of this id; none where the cloud itself reports it as not found.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn machine<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Failure> {
        self.request("GET", &format!("/vms/{id}"), None, &[NO_MACHINE])
    }

    /// All machines of the project, page by page.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn machines(&self) -> Result<Vec<Value>, Failure> {
        self.of_project("vms", "")
    }

    /// All things of this kind in the project, page by page.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn of_project(&self, kind: &str, query: &str) -> Result<Vec<Value>, Failure> {
        self.list(&format!(
            "{}/projects/{}/{kind}{query}",
            self.global.root(),
            self.project()?
        ))
    }

    /// All things of a list below the API's root, page by page.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn listed(&self, path: &str) -> Result<Vec<Value>, Failure> {
        self.list(&format!("{}{path}", self.global.root()))
    }

    /// A request below the API's root; none where the cloud itself refuses it with 404 and one of the codes `missing`.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        missing: &[&str],
    ) -> Result<Option<T>, Failure> {
        let response = self.send(method, &format!("{}{path}", self.global.root()), body)?;
        let says_so = |refusal: Refusal| missing.contains(&refusal.code.as_str());
        if response.status == 404 && response.json::<Refusal>().is_ok_and(says_so) {
            return Ok(None);
        }
        read(response).map(Some)
    }

    /// The id of the project.
    ///
    /// # Errors
    /// The cloud's error; when there is no such tenant or project.
    pub fn project(&self) -> Result<String, Failure> {
        let state = self.context.state();
        state.get_or_make("project", PROJECT_KEPT, Duration::from_secs(5), || {
            let root = self.global.root();
            if self.global.tenant().is_empty() {
                return self.project_by_id(self.global.project());
            }
            let tenant = self.named("tenant", &format!("{root}/tenants"), self.global.tenant())?;
            self.named(
                "project",
                &format!("{root}/tenants/{tenant}/projects"),
                self.global.project(),
            )
        })
    }

    /// What is connected to a machine.
    ///
    /// # Errors
    /// The cloud's error; `unavailable` while its task has not ended.
    pub fn connections(&self, machine: &str) -> Result<Vec<Value>, Failure> {
        let (state, key) = (self.context.state(), format!("task/{machine}"));
        let known = format!("networks/{machine}");
        if let Some(connections) = state.get(&known) {
            return Ok(connections.value);
        }
        if self.context.time_left() < RESERVE {
            return Err(Failure::unavailable(
                "the networks of further machines are asked for in the next call",
            ));
        }
        let root = self.global.root();
        // The name of the path changed with the API's root.
        let what = if root.is_empty() { "networks" } else { "subnets" };
        // A task that the cloud does not show is begun again.
        let look = |id: &str| {
            let task = self.get::<Task>(&format!("{root}/tasks/{id}"));
            task.inspect_err(|_| state.remove(&key))
        };
        let mut task: Task = match state.get::<String>(&key) {
            Some(begun) => look(&begun.value)?,
            None => self.get(&format!("{root}/vms/{machine}/{what}"))?,
        };
        for _ in 0..LOOKS {
            match task.state.is_running() {
                true => task = look(&task.id)?,
                false => break,
            }
        }
        match task.state {
            TaskState::Queued | TaskState::Started => {
                state.put(&key, &task.id, TASK_KEPT);
                Err(Failure::unavailable(format!(
                    "the task for the networks of {machine} goes on"
                )))
            }
            TaskState::Completed => {
                state.remove(&key);
                let connections = task.resource_properties["networkConnections"].as_array();
                let connections = connections.cloned().unwrap_or_default();
                // A look-up by address polls for them, and its task would begin again.
                state.put(&known, &connections, KEPT);
                Ok(connections)
            }
            TaskState::Error | TaskState::Other => {
                state.remove(&key);
                let failure = task.failure(&format!("the task for the networks of {machine}"));
                Err(Failure::unavailable(failure.message))
            }
        }
    }

    fn project_by_id(&self, id: &str) -> Result<String, Failure> {
        let response = self.send("GET", &format!("{}/projects/{id}", self.global.root()), None)?;
        if response.status == 404 {
            return Err(Failure::invalid(format!(
                "there is no project with the id {id}, or the user does not see it; with the project's name the tenant is needed too"
            )));
        }
        read::<Named>(response).map(|project| project.id)
    }

    fn named(&self, what: &str, path: &str, name: &str) -> Result<String, Failure> {
        let query = cloudwit_guest_sdk::url::percent_encode(name);
        let found = self.list(&format!("{path}?name={query}"))?.into_iter();
        let mut named = found.filter_map(|one| serde_json::from_value::<Named>(one).ok());
        let found = named.find(|one| one.name == name);
        let none = || Failure::invalid(format!("there is no {what} {name}, or the user does not see it"));
        found.map(|one| one.id).ok_or_else(none)
    }

    fn list(&self, first: &str) -> Result<Vec<Value>, Failure> {
        paginate(|next| {
            let page: Page = self.get(next.unwrap_or(first))?;
            let link = page.next_page_link.filter(|link| !link.is_empty());
            Ok((page.items, link.map(|link| self.below_target(&link)).transpose()?))
        })
    }

    /// The path of a link to a page. One that leads elsewhere is not followed, and a list without the rest is none.
    fn below_target(&self, link: &str) -> Result<String, Failure> {
        let path = link.strip_prefix(self.global.target()).unwrap_or(link);
        match path.starts_with('/') {
            true => Ok(path.to_owned()),
            false => Err(Failure::other(format!(
                "the list goes on at {link:?}, which is not below the target"
            ))),
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(self.send("GET", path, None)?)
    }

    fn send(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<Response, Failure> {
        let request = || {
            let request = self.http.request(method, path);
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        let Some((url, form)) = &self.login else {
            return request().send_any();
        };
        let obtain = || {
            self.token(url, form)
                .map_err(|failure| failure.context("getting a token of Lightwave"))
        };
        Token::with(&self.context.state(), "lightwave", obtain, |token: &String| {
            Tried::by_status(request().header("authorization", format!("Bearer {token}")).send_any())
        })
    }

    fn token(&self, url: &str, form: &Form) -> Result<(String, u64), Failure> {
        let response = self.http.post(url).form(form).send_any()?;
        // OAuth answers a wrong password with 400.
        if response.status == 400 {
            return Err(Failure::denied(format!(
                "400: {}",
                response.text().chars().take(200).collect::<String>()
            )));
        }
        let granted: Granted = response.success()?.json()?;
        Ok((granted.access_token, self.context.now() + granted.expires_in))
    }
}

/// Something that is not there is no machine that was requested.
fn read<T: DeserializeOwned>(response: Response) -> Result<T, Failure> {
    if response.status >= 400
        && let Ok(refusal) = response.json::<Refusal>()
        && CODES.case(&refusal.code).is_some()
    {
        return Err(CODES.failure(&response, &refusal.code, &refusal.message));
    }
    let response = response.success().map_err(|failure| match failure.is_not_found() {
        true => Failure::unavailable(format!("{}; are target and api-root right?", failure.message)),
        false => failure,
    });
    response?.json()
}

#[cfg(test)]
mod tests;
