//! Admission webhooks: selected by `--webhooks`, served by every replica on a port of their own.
//!
//! ```text
//!   API server -> serving::https -> router (bounds, metrics) -> review (framing)
//!                                                                  |
//!                                              volume_label: question -> gather -> provider
//!                                                                  |
//!                                                                patch -> answer
//! ```
//!
//! They only read from the cloud, so leadership does not matter to them.

pub mod metrics;
pub mod review;
pub mod router;
pub mod volume_label;

/// A webhook that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Webhook {
    /// Labels of the cloud and the affinity that follows from them for PersistentVolumes whose source names a disk.
    PersistentVolumeLabel,
}

impl Webhook {
    /// All there are.
    pub const ALL: [Self; 1] = [Self::PersistentVolumeLabel];

    /// Its name in `--webhooks` and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::PersistentVolumeLabel => "persistent-volume-label",
        }
    }

    /// Where it is served.
    pub fn path(self) -> &'static str {
        match self {
            Self::PersistentVolumeLabel => "/persistent-volume-label",
        }
    }
}

/// The webhooks of these entries, or one message for each that names none.
///
/// As with `--controllers`, the first entry that names a webhook decides and `*` stands for all the rest; but no entry selects none.
pub fn select(entries: &[String]) -> Result<Vec<Webhook>, Vec<String>> {
    let entries = crate::flags::values::go::entries(entries);
    let known = |name: &str| Webhook::ALL.into_iter().find(|one| one.name() == name);
    let wrong: Vec<String> = entries
        .iter()
        .filter(|entry| *entry != "*" && known(entry.strip_prefix('-').unwrap_or(entry)).is_none())
        .map(|entry| {
            let names = Webhook::ALL.map(Webhook::name).join(", ");
            format!("--webhooks: {entry:?} is not in the list of known webhooks; known: *, {names}")
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let first = |webhook: Webhook| {
        entries.iter().find_map(|entry| match entry.strip_prefix('-') {
            Some(off) => (off == webhook.name()).then_some(false),
            None => (entry == webhook.name()).then_some(true),
        })
    };
    let all = entries.iter().any(|entry| entry == "*");
    let selected = |webhook: &Webhook| first(*webhook).unwrap_or(all);
    Ok(Webhook::ALL.into_iter().filter(selected).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> Result<Vec<Webhook>, Vec<String>> {
        select(&list.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn webhooks_are_selected_by_name_or_star_and_none_without() {
        const LABEL: &[Webhook] = &[Webhook::PersistentVolumeLabel];
        for (list, selected) in [
            ("", &[][..]),
            ("*", LABEL),
            (" persistent-volume-label ", LABEL),
            ("*,-persistent-volume-label", &[]),
            ("persistent-volume-label,-persistent-volume-label", LABEL),
            ("-persistent-volume-label,persistent-volume-label", &[]),
        ] {
            assert_eq!(of(list).unwrap(), selected, "{list:?}");
        }
    }

    #[test]
    fn unknown_names_are_refused_one_by_one() {
        let wrong = of("a,persistent-volume-label,-b").unwrap_err();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("\"a\" is not in the list of known webhooks; known: *, persistent-volume-label"));
    }
}
