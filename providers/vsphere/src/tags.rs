//! Tags, which only vCenter's REST API tells: those of many objects in one call, then the name and category of each tag once.
//!
//! Newer servers have the API under `/api`, older ones and those of tests under `/rest`, where each answer is wrapped into `value`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::http::Request;
use cloudwit_guest_sdk::json::Json;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::token::{Token, Tried};
use cloudwit_guest_sdk::url::percent_encode;
use serde::{Deserialize, Serialize};

use crate::settings::VCenterSettings;
use crate::soap::Reference;

/// Objects in one call; the server takes up to 2,000.
const OBJECTS: usize = 500;

/// Names of tags and categories are read anew after this time.
const NAMES_KEPT: Duration = Duration::from_secs(10 * 60);

/// vCenter ends a session after five minutes without use at the least; a refused one is renewed anyway.
const SESSION_LIFE: u64 = 60 * 60;

/// A tag as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// The category's name.
    pub category: String,
    /// The tag's name.
    pub name: String,
}

/// A session of the REST API.
#[derive(PartialEq, Serialize, Deserialize)]
struct RestSession {
    /// Whether it speaks `/api`; else `/rest`.
    new: bool,
    id: String,
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
    /// For this vCenter. Asks nothing yet.
    pub fn new(settings: &'a VCenterSettings, context: Context) -> Self {
        Self {
            http: context.http().base(&settings.url()),
            settings,
            context,
        }
    }

    /// The tags of these objects, in the order in which the server tells them. Objects without any are left out.
    ///
    /// # Errors
    /// What the server said.
    pub fn attached(&self, objects: &BTreeSet<&Reference>) -> Result<BTreeMap<Reference, Vec<Tag>>, Failure> {
        let objects: Vec<&Reference> = objects.iter().copied().collect();
        let mut ids: Vec<(Reference, Vec<String>)> = Vec::new();
        for page in objects.chunks(OBJECTS) {
            let body = ObjectIds {
                object_ids: page
                    .iter()
                    .map(|object| ObjectId {
                        id: &object.value,
                        r#type: &object.kind,
                    })
                    .collect(),
            };
            let read = self.ask(
                |session| {
                    let action = "tag-association?action=list-attached-tags-on-objects";
                    let old_action = "tag-association?~action=list-attached-tags-on-objects";
                    self.http
                        .post(&path(session, if session.new { action } else { old_action }))
                        .json(&body)
                },
                read_association,
            )?;
            ids.extend(read);
        }
        let mut names = self.names();
        let mut changed = false;
        for id in ids.iter().flat_map(|(_, ids)| ids) {
            if !names.contains_key(id) {
                changed = true;
                let tag = self.tag(id)?;
                names.insert(id.clone(), tag);
            }
        }
        if changed {
            self.context
                .state()
                .put(&self.names_key(), &names, Keep::at_most(NAMES_KEPT));
        }
        let tags = |ids: Vec<String>| ids.iter().filter_map(|id| names.get(id).cloned().flatten()).collect();
        Ok(ids.into_iter().map(|(object, ids)| (object, tags(ids))).collect())
    }

    fn names_key(&self) -> String {
        ["tags/", &self.settings.name].concat()
    }

    /// The tags known already; none for one that was deleted while it was read.
    fn names(&self) -> BTreeMap<String, Option<Tag>> {
        self.context
            .state()
            .get(&self.names_key())
            .map(|stored| stored.value)
            .unwrap_or_default()
    }

    /// A tag by its id.
    fn tag(&self, id: &str) -> Result<Option<Tag>, Failure> {
        let read = |kind: &'static str, id: &str| {
            self.ask(
                |session| {
                    let id = percent_encode(id);
                    let marker = if session.new { "/" } else { "/id:" };
                    self.http.get(&path(session, &[kind, marker, &id].concat()))
                },
                |object| {
                    let field = |name: &str| object.get(name).and_then(Json::as_text).map(String::from);
                    Some((field("name")?, field("category_id").unwrap_or_default()))
                },
            )
        };
        let (name, category) = match read("tag", id) {
            Err(failure) if failure.is_not_found() => return Ok(None),
            tag => tag?,
        };
        let (category, _) = read("category", &category)?;
        Ok(Some(Tag { category, name }))
    }

    /// Asks within a session, and once again in a new one when it is over.
    fn ask<T>(
        &self,
        request: impl Fn(&RestSession) -> Request,
        read: impl Fn(&Json<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let name = ["rest/", &self.settings.name].concat();
        let login = || Ok((self.login()?, self.context.now() + SESSION_LIFE));
        let response = Token::with(&self.context.state(), &name, login, |session| {
            let request = request(session).header("vmware-api-session-id", session.id.clone());
            Tried::by_status(request.send_any())
        })?
        .success()?;
        let text = response.text();
        let tree = parse(&text)?;
        // Only the older API wraps; a tag or a list of associations has no such key of its own.
        let value = tree.get("value").unwrap_or(&tree);
        read(value).ok_or_else(|| Failure::other("the server's answer about tags is not what was expected"))
    }

    fn login(&self) -> Result<RestSession, Failure> {
        let basic = self.settings.credentials.basic();
        let ask = |path| {
            self.http
                .post(path)
                .header("authorization", basic.clone())
                .send_optional()
        };
        let (new, answer) = match ask("/api/session")? {
            Some(answer) => (true, Some(answer)),
            None => (false, ask("/rest/com/vmware/cis/session")?),
        };
        let answer = answer.ok_or_else(|| {
            Failure::not_found(
                "the server has neither /api/session nor /rest/com/vmware/cis/session, so it tells no tags",
            )
        })?;
        let text = answer.text();
        let tree = parse(&text)?;
        let id = tree.get("value").unwrap_or(&tree).as_text().map(String::from);
        let id = id.ok_or_else(|| Failure::other("the server's REST login gives no session"))?;
        Ok(RestSession { new, id })
    }
}

fn path(session: &RestSession, rest: &str) -> String {
    let root = if session.new {
        "/api/cis/tagging/"
    } else {
        "/rest/com/vmware/cis/tagging/"
    };
    [root, rest].concat()
}

fn parse(text: &str) -> Result<Json<'_>, Failure> {
    Json::parse(text).map_err(|mistake| Failure::Unavailable(["the answer is no whole JSON: ", &mistake].concat()))
}

/// Objects and the ids of their tags.
fn read_association(list: &Json<'_>) -> Option<Vec<(Reference, Vec<String>)>> {
    let Json::List(items) = list else { return None };
    let one = |item: &Json<'_>| {
        let object = item.get("object_id")?;
        let object = Reference::new(object.get("type")?.as_text()?, object.get("id")?.as_text()?);
        let Json::List(ids) = item.get("tag_ids")? else {
            return None;
        };
        Some((object, ids.iter().filter_map(Json::as_text).map(String::from).collect()))
    };
    items.iter().map(one).collect()
}

#[cfg(test)]
#[path = "tags_tests.rs"]
mod tests;
