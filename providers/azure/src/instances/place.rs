//! Where a machine is: the collection that its id names.

use crate::arm::ids;

/// A resource group's own machines, or those of a uniform scale set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// `/subscriptions/SUB/resourceGroups/GROUP`, in small letters but for the words.
    pub group: String,
    /// The scale set.
    pub scale_set: Option<String>,
}

impl Place {
    /// Of a virtual machine's id; none for any other id.
    pub fn of(id: &str) -> Option<Self> {
        let parts: Vec<&str> = id.strip_prefix('/')?.split('/').collect();
        let is = |at: usize, word: &str| parts.get(at).is_some_and(|part| part.eq_ignore_ascii_case(word));
        let compute =
            is(0, "subscriptions") && is(2, "resourceGroups") && is(4, "providers") && is(5, "Microsoft.Compute");
        let odd = |part: &&str| part.is_empty() || part.contains(['?', '#', '%', ' ']) || **part == *"..";
        if !compute || parts.iter().any(odd) {
            return None;
        }
        let scale_set = match parts.len() {
            8 if is(6, "virtualMachines") => None,
            10 if is(6, "virtualMachineScaleSets") && is(8, "virtualMachines") => {
                Some(parts.get(7)?.to_ascii_lowercase())
            }
            _ => return None,
        };
        let (subscription, group) = (ids::part(id, "subscriptions")?, ids::part(id, "resourceGroups")?);
        let group = format!(
            "/subscriptions/{}/resourceGroups/{}",
            subscription.to_ascii_lowercase(),
            group.to_ascii_lowercase()
        );
        Some(Self { group, scale_set })
    }

    /// Path of the collection.
    pub fn machines(&self) -> String {
        match &self.scale_set {
            None => format!("{}/providers/Microsoft.Compute/virtualMachines", self.group),
            Some(set) => format!(
                "{}/providers/Microsoft.Compute/virtualMachineScaleSets/{set}/virtualMachines",
                self.group
            ),
        }
    }
}
