//! Tags, which only vCenter's REST API has: those of many objects in one call, then the name and category of each tag once.
//!
//! Newer servers have the API under `/api`, older ones and those of tests under `/rest`, where each answer is wrapped into `value`.

use std::time::Duration;

use cloudwit_guest_sdk::http::Request;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::token::{Token, Tried};
use cloudwit_guest_sdk::url::percent_encode;
use serde::Serialize;
use serde_json::Value;

use crate::config::settings::VCenterSettings;
use crate::table::Table;
use crate::vcenter::soap::Reference;

/// Objects in one call; the server takes up to 2,000.
const OBJECTS: usize = 500;

/// Names of tags and categories are read again after this time.
const NAMES_KEPT: Duration = Duration::from_secs(10 * 60);

/// A session without use ends by itself after some minutes, and a refused one is renewed.
const SESSION_LIFE: u64 = 60 * 60;

/// Where newer servers have the API.
const NEW: &str = "/api";

/// Where older servers have it.
const OLD: &str = "/rest";

/// A tag by its display names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The category's name.
    pub category: String,
    /// The tag's name.
    pub name: String,
}

/// A session of the REST API. Kept as a text: where the API is, a blank, the id.
struct RestSession<'a> {
    api: &'a str,
    id: &'a str,
}

impl<'a> RestSession<'a> {
    fn read(text: &'a str) -> Self {
        let (api, id) = text.split_once(' ').unwrap_or_default();
        Self { api, id }
    }

    fn is_new(&self) -> bool {
        self.api == NEW
    }

    fn path(&self, rest: &str) -> String {
        let root = if self.is_new() {
            "/api/cis/tagging/"
        } else {
            "/rest/com/vmware/cis/tagging/"
        };
        format!("{root}{rest}")
    }
}

#[derive(Serialize)]
struct ObjectIds<'a> {
    object_ids: Vec<ObjectId<'a>>,
}

#[derive(Serialize)]
struct ObjectId<'a> {
    id: &'a str,
    r#type: &'a str,
}

/// The tags of one vCenter.
#[derive(Debug)]
pub struct Tags<'a> {
    http: Http,
    settings: &'a VCenterSettings,
    context: Context,
}

impl<'a> Tags<'a> {
    /// For this vCenter. Requests nothing yet.
    pub fn new(settings: &'a VCenterSettings, context: Context) -> Self {
        Self {
            http: context.http().base(&settings.url()),
            settings,
            context,
        }
    }

    /// The tags of these objects, in the order in which the server returns them. Objects without any may be left out.
    ///
    /// # Errors
    /// The server's error.
    pub fn attached(&self, objects: &[&Reference]) -> Result<Vec<(Reference, Vec<Tag>)>, Failure> {
        let (key, state) = (format!("tags/{}", self.settings.name), self.context.state());
        let mut names = Table::kept(&state, &key);
        let mut attached = Vec::new();
        for page in objects.chunks(OBJECTS) {
            for (object, ids) in self.associations(page)? {
                let mut tags = Vec::new();
                for id in ids {
                    tags.extend(self.named(&id, &mut names)?);
                }
                attached.push((object, tags));
            }
        }
        names.keep(&state, &key, NAMES_KEPT);
        Ok(attached)
    }

    /// Objects and the ids of their tags.
    fn associations(&self, objects: &[&Reference]) -> Result<Vec<(Reference, Vec<String>)>, Failure> {
        let ids = objects.iter().map(|object| ObjectId {
            id: &object.value,
            r#type: &object.kind,
        });
        let body = ObjectIds {
            object_ids: ids.collect(),
        };
        let answer = self.ask(&|session| {
            let tilde = if session.is_new() { "" } else { "~" };
            let action = format!("tag-association?{tilde}action=list-attached-tags-on-objects");
            self.http.post(&session.path(&action)).json(&body)
        })?;
        let text = answer.text();
        read_associations(unwrapped(&parse(&text)?)).ok_or_else(unexpected)
    }

    /// A tag by its id, from the table of names or else from the server; none for one that was deleted meanwhile.
    fn named(&self, id: &str, names: &mut Table) -> Result<Option<Tag>, Failure> {
        if names.get(id).is_none() {
            let (name, category) = match self.read("tag", id) {
                Err(failure) if failure.is_not_found() => return Ok(None),
                tag => tag?,
            };
            let (category, _) = self.read("category", &category)?;
            names.set(id, &[&category, &name]);
        }
        let known = names.get(id);
        Ok(known.and_then(|values| match values.as_slice() {
            [category, name] => Some(Tag {
                category: (*category).into(),
                name: (*name).into(),
            }),
            _ => None,
        }))
    }

    /// Name and category id of a tag, or the name of a category.
    fn read(&self, kind: &str, id: &str) -> Result<(String, String), Failure> {
        let answer = self.ask(&|session| {
            let marker = if session.is_new() { "/" } else { "/id:" };
            self.http
                .get(&session.path(&format!("{kind}{marker}{}", percent_encode(id))))
        })?;
        let text = answer.text();
        let tree = parse(&text)?;
        let object = unwrapped(&tree);
        let field = |name: &str| object.get(name).and_then(Value::as_str).map(String::from);
        Ok((
            field("name").ok_or_else(unexpected)?,
            field("category_id").unwrap_or_default(),
        ))
    }

    /// Sends within a session, and once again in a new one when it is over.
    fn ask(&self, request: &dyn Fn(&RestSession<'_>) -> Request) -> Result<Response, Failure> {
        let name = format!("rest/{}", self.settings.name);
        let login = || Ok((self.login()?, self.context.now() + SESSION_LIFE));
        let answer = Token::with(&self.context.state(), &name, login, |session: &String| {
            let session = RestSession::read(session);
            Tried::by_status(request(&session).header("vmware-api-session-id", session.id).send_any())
        });
        answer?.success()
    }

    fn login(&self) -> Result<String, Failure> {
        let basic = self.settings.credentials.basic(self.context.keys())?;
        let ask = |path| {
            self.http
                .post(path)
                .header("authorization", basic.clone())
                .send_optional()
        };
        let (api, answer) = match ask("/api/session")? {
            Some(answer) => (NEW, Some(answer)),
            None => (OLD, ask("/rest/com/vmware/cis/session")?),
        };
        let answer = answer.ok_or_else(|| {
            Failure::not_found("the server tells no tags: it has neither /api/session nor /rest/com/vmware/cis/session")
        })?;
        let text = answer.text();
        let tree = parse(&text)?;
        let id = unwrapped(&tree).as_str().ok_or_else(unexpected)?;
        Ok(format!("{api} {id}"))
    }
}

/// Only the older API wraps; a tag or an association has no such key of its own.
fn unwrapped(tree: &Value) -> &Value {
    tree.get("value").unwrap_or(tree)
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|mistake| Failure::unavailable(format!("the answer is no whole JSON: {mistake}")))
}

fn unexpected() -> Failure {
    Failure::other("the server's answer about tags is not what was expected")
}

fn read_associations(list: &Value) -> Option<Vec<(Reference, Vec<String>)>> {
    let Value::Array(items) = list else { return None };
    let one = |item: &Value| {
        let object = item.get("object_id")?;
        let object = Reference::new(object.get("type")?.as_str()?, object.get("id")?.as_str()?);
        let ids = match item.get("tag_ids")? {
            Value::Array(ids) => ids.as_slice(),
            // Some servers answer so when there are none.
            Value::Null => &[],
            _ => return None,
        };
        Some((object, ids.iter().filter_map(Value::as_str).map(String::from).collect()))
    };
    items.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
