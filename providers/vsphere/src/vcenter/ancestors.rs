//! What is above an object in vSphere's inventory: cluster, folders, datacenter. One call for many objects.

use crate::vcenter::properties::{Along, Query, retrieve};
use crate::vcenter::session::{Session, Sessions};
use crate::vcenter::soap::{CallError, Reference};

/// Objects in one page; each is a few hundred bytes.
const PAGE: u32 = 1_000;

/// No inventory is so deep.
const DEEPEST: usize = 64;

/// Objects and what is right above each.
#[derive(Debug, Default)]
pub struct Ancestors(Vec<(Reference, Reference)>);

impl Ancestors {
    /// Reads all that is above these objects.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn read(sessions: &Sessions<'_>, session: &Session, from: &[Reference]) -> Result<Self, CallError> {
        let query = Query {
            properties: &[("ManagedEntity", &["parent"]), ("VirtualMachine", &["parentVApp"])],
            from,
            along: Along::Parents,
            page: PAGE,
        };
        let mut above = Vec::new();
        retrieve(sessions, session, &query, &mut |object| {
            let parent = object.refers("parent").or_else(|| object.refers("parentVApp"));
            if let (Some(child), Some(parent)) = (object.reference(), parent) {
                above.push((child, parent));
            }
        })?;
        Ok(Self(above))
    }

    /// The object and all above it, from the bottom up.
    pub fn chain<'a>(&'a self, of: &'a Reference) -> impl Iterator<Item = &'a Reference> {
        let parent = |of: &&'a Reference| {
            let found = self.0.iter().find(|(child, _)| child == *of);
            found.map(|(_, parent)| parent)
        };
        std::iter::successors(Some(of), parent).take(DEEPEST)
    }
}
