//! The property collector: many properties of many objects in few calls, page by page.
//!
//! Pages are handed over one by one and not collected: one is a megabyte of XML.

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::xml::{Element, escape};

use crate::vcenter::session::{Session, Sessions};
use crate::vcenter::soap::{Answer, CallError, Fault, Reference};

/// What to read: `PropertyFilterSpec`.
#[derive(Debug)]
pub struct Query<'a> {
    /// Types and what is read of each.
    pub properties: &'a [(&'a str, &'a [&'a str])],
    /// Where to begin.
    pub from: &'a [Reference],
    /// Where to go from there.
    pub along: Along,
    /// Objects in one page.
    pub page: u32,
}

/// Where a query goes from its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Nowhere: these objects. Those that do not exist are left out of the answer.
    These,
    /// Nowhere either, but all of these have to exist.
    Themselves,
    /// To the members of these views, which have to exist.
    Views,
    /// To all that is above these objects, and the objects themselves.
    Parents,
    /// To the datastores of the parts of the inventory that these views are of.
    Datastores,
}

/// The way from a view to its members; the view itself is skipped.
const MEMBERS: &str = "<skip>true</skip><selectSet xsi:type=\"TraversalSpec\"><name>members</name><type>ContainerView</type>\
                       <path>view</path><skip>false</skip></selectSet>";

/// The way up. A machine in a vApp has no folder, but the vApp above it.
const UP: &str = "<skip>false</skip>\
    <selectSet xsi:type=\"TraversalSpec\"><name>up</name><type>ManagedEntity</type><path>parent</path><skip>false</skip>\
    <selectSet><name>up</name></selectSet></selectSet>\
    <selectSet xsi:type=\"TraversalSpec\"><name>vapp</name><type>VirtualMachine</type><path>parentVApp</path><skip>false</skip>\
    <selectSet><name>up</name></selectSet></selectSet>";

/// The way from a view to its folder or datacenter, and down to the datastores of each datacenter.
const STORES: &str = "<skip>true</skip>\
    <selectSet xsi:type=\"TraversalSpec\"><name>part</name><type>ContainerView</type><path>container</path><skip>true</skip>\
    <selectSet><name>down</name></selectSet><selectSet><name>stores</name></selectSet></selectSet>\
    <selectSet xsi:type=\"TraversalSpec\"><name>down</name><type>Folder</type><path>childEntity</path><skip>true</skip>\
    <selectSet><name>down</name></selectSet><selectSet><name>stores</name></selectSet></selectSet>\
    <selectSet xsi:type=\"TraversalSpec\"><name>stores</name><type>Datacenter</type><path>datastore</path><skip>false</skip></selectSet>";

impl Query<'_> {
    fn spec(&self) -> String {
        let mut spec = String::from("<specSet>");
        for (kind, paths) in self.properties {
            spec.push_str("<propSet><type>");
            spec.push_str(kind);
            spec.push_str("</type><all>false</all>");
            for path in *paths {
                spec.push_str("<pathSet>");
                spec.push_str(&escape(path));
                spec.push_str("</pathSet>");
            }
            spec.push_str("</propSet>");
        }
        let way = match self.along {
            Along::These | Along::Themselves => "<skip>false</skip>",
            Along::Views => MEMBERS,
            Along::Parents => UP,
            Along::Datastores => STORES,
        };
        for object in self.from {
            spec.push_str("<objectSet>");
            spec.push_str(&object.write("obj"));
            spec.push_str(way);
            spec.push_str("</objectSet>");
        }
        // An ended view would else look like an empty one.
        if matches!(self.along, Along::These | Along::Parents) {
            spec.push_str("<reportMissingObjectsInResults>true</reportMissingObjectsInResults>");
        }
        spec.push_str("</specSet><options><maxObjects>");
        spec.push_str(&self.page.to_string());
        spec.push_str("</maxObjects></options>");
        spec
    }
}

/// One object of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a>(&'a Element);

impl<'a> Object<'a> {
    /// What it is.
    pub fn reference(self) -> Option<Reference> {
        self.0.child("obj").and_then(Reference::of)
    }

    /// A property; none when it is unset or may not be read.
    pub fn value(self, path: &str) -> Option<&'a Element> {
        let set = self.0.children("propSet");
        let mut named = set.filter(|property| property.text("name") == Some(path));
        named.next().and_then(|property| property.child("val"))
    }

    /// A property that is a text or a number.
    pub fn text(self, path: &str) -> Option<&'a str> {
        self.value(path).map(Element::own_text).filter(|text| !text.is_empty())
    }

    /// A property that refers to an object.
    pub fn refers(self, path: &str) -> Option<Reference> {
        self.value(path).and_then(Reference::of)
    }

    /// Properties that could not be read, and why, as types of faults.
    pub fn unreadable(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.children("missingSet").map(|missing| {
            let fault = missing
                .at(&["fault", "fault"])
                .and_then(|fault| fault.attribute("type"));
            let kind = fault.and_then(|kind| kind.rsplit(':').next());
            (missing.text("path").unwrap_or_default(), kind.unwrap_or_default())
        })
    }
}

/// Reads everything the query finds and hands each object over.
///
/// # Errors
/// The fault, or why there is no answer. What `each` has got until then is not all.
pub fn retrieve(
    sessions: &Sessions<'_>,
    session: &Session,
    query: &Query<'_>,
    each: &mut dyn FnMut(Object<'_>),
) -> Result<(), CallError> {
    let call = |method: &str, what: &str| sessions.call(session, method, &session.collector, what);
    retrieve_by(&call, query, each)
}

/// The same, where the collector is called by `call` with a method and its parameters.
///
/// # Errors
/// As [`retrieve`].
pub fn retrieve_by(
    call: &dyn Fn(&str, &str) -> Result<Answer, CallError>,
    query: &Query<'_>,
    each: &mut dyn FnMut(Object<'_>),
) -> Result<(), CallError> {
    if query.from.is_empty() {
        return Ok(());
    }
    each_page(|token| {
        let (method, what) = match token {
            None => ("RetrievePropertiesEx", query.spec()),
            Some(token) => (
                "ContinueRetrievePropertiesEx",
                format!("<token>{}</token>", escape(token)),
            ),
        };
        let answer = call(method, &what)?;
        // No value at all: nothing was found.
        let Some(result) = answer.value() else { return Ok(None) };
        for object in result.children("objects") {
            let object = Object(object);
            if let Some((_, kind)) = object.unreadable().find(|(_, kind)| *kind == "NotAuthenticated") {
                return Err(CallError::Fault(Fault {
                    kind: kind.into(),
                    object: object.reference(),
                    message: "the session is over".into(),
                }));
            }
            each(object);
        }
        Ok(result.text("token").map(Into::into))
    })
}
