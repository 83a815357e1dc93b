//! Trouble of a cause: how bad it is, what it holds up, and the next step. Pure.

use cloudwit_controllers::report::cause::CauseKind;

use crate::status::causes::CauseFacts;
use crate::status::verdict::{State, Trouble, count};

/// What a cause means for who runs the cluster.
pub fn trouble(cause: &CauseFacts) -> Trouble {
    let CauseFacts { provider, message, .. } = cause;
    let behind = behind(cause);
    let (what, next_step) = match cause.kind {
        CauseKind::Unavailable => (
            format!("The cloud of provider {provider} does not answer as it should: {message}"),
            "It is retried automatically. Is the cloud up, and does this process reach it? API hosts below show when it last answered.",
        ),
        CauseKind::Denied => (
            format!("The cloud denies requests of provider {provider}: {message}"),
            "Check the credentials and what they allow. A changed secret is taken without a restart.",
        ),
        CauseKind::Fault => (
            format!("Provider {provider} misbehaves: {message}"),
            "The calls are made again by themselves. Send its last lines below to the makers of the provider, or go back to the version before.",
        ),
        CauseKind::ApiServer => (
            format!("The API server does not take what is written: {message}"),
            "Check the rights of the service account, and admission webhooks.",
        ),
        CauseKind::RateLimited => (
            format!("The cloud throttles provider {provider}: {message}"),
            "Requests resume by themselves. If it happens often, set a lower requestsPerSecond in the grant, or request a higher quota.",
        ),
        CauseKind::Cloud | CauseKind::Pending => (
            format!("{behind}: {message}"),
            "Each is retried automatically; details are below, under what waits.",
        ),
        CauseKind::Object => (
            format!("{behind}; the object is invalid: {message}"),
            "The object has an Event with this message. Nothing else is blocked.",
        ),
    };
    let has_behind = !matches!(cause.kind, CauseKind::Cloud | CauseKind::Object | CauseKind::Pending);
    Trouble {
        state: severity(cause),
        what: sentence(what),
        since: cause.since,
        next_step: next_step.into(),
        section: "waiting",
        behind: (has_behind && !behind.is_empty()).then(|| format!("{behind}.")),
        objects: Some(cause.objects.clone()),
    }
}

/// What holds up several objects or a whole task is not the trouble of one of them.
fn severity(cause: &CauseFacts) -> State {
    let is_wide = !cause.tasks.is_empty() || cause.objects.total > 1;
    match cause.kind {
        CauseKind::Unavailable | CauseKind::Denied | CauseKind::Fault | CauseKind::ApiServer if is_wide => {
            State::Failing
        }
        CauseKind::Object => State::Notice,
        _ => State::Attention,
    }
}

/// `13 Nodes wait to be initialised; the routes of the cloud could not be listed`.
fn behind(cause: &CauseFacts) -> String {
    let counts = cause
        .counts
        .iter()
        .map(|(controller, number)| waiting(controller, *number));
    let tasks = cause.tasks.iter().map(|task| match cause.counts.is_empty() {
        true => (*task).to_owned(),
        false => uncapital(task),
    });
    counts.chain(tasks).collect::<Vec<_>>().join("; ")
}

/// How many objects of a controller wait, in words.
pub fn waiting(controller: &str, number: usize) -> String {
    let (one, many) = match controller {
        "cloud-node-controller" => ("Node waits to be initialised", "Nodes wait to be initialised"),
        "service-lb-controller" => (
            "Service waits for its load balancer",
            "Services wait for their load balancers",
        ),
        "node-route-controller" => (
            "Node has routes that are not right",
            "Nodes have routes that are not right",
        ),
        "tagging-controller" => (
            "Node's machine waits for its tags",
            "Nodes' machines wait for their tags",
        ),
        "csi" => ("volume operation fails", "volume operations fail"),
        _ => (
            "Node is not Ready, and the cloud cannot say whether its machine exists",
            "Nodes are not Ready, and the cloud cannot say whether their machines exist",
        ),
    };
    count(number, one, many)
}

fn uncapital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// With one full stop at its end.
fn sentence(mut text: String) -> String {
    text.truncate(text.trim_end_matches(['.', ' ']).len());
    text + "."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::status::causes::Affected;

    fn cause(kind: CauseKind, objects: usize, tasks: &[&'static str]) -> CauseFacts {
        let object = |number| Affected {
            kind: "Node",
            name: format!("node-{number}"),
            explain: None,
        };
        let counts = match objects {
            0 => BTreeMap::new(),
            _ => BTreeMap::from([("cloud-node-controller", objects)]),
        };
        CauseFacts {
            provider: "east".into(),
            kind,
            message: "unavailable: 503.".into(),
            other_messages: 0,
            since: None,
            tasks: tasks.to_vec(),
            counts,
            objects: (0..objects).map(object).collect::<Vec<_>>().into(),
        }
    }

    #[test]
    fn an_outage_is_critical_and_names_all_that_it_holds_up() {
        let outage = trouble(&cause(
            CauseKind::Unavailable,
            13,
            &["The routes of the cloud could not be listed"],
        ));
        assert_eq!(
            (outage.state, outage.what.as_str()),
            (
                State::Failing,
                "The cloud of provider east does not answer as it should: unavailable: 503."
            )
        );
        assert_eq!(
            outage.behind.as_deref(),
            Some("13 Nodes wait to be initialised; the routes of the cloud could not be listed.")
        );
        assert_eq!(outage.objects.map(|objects| objects.total), Some(13));
    }

    #[test]
    fn severity_follows_from_whose_trouble_it_is() {
        let state = |kind, objects| trouble(&cause(kind, objects, &[])).state;
        assert_eq!(state(CauseKind::Unavailable, 1), State::Attention);
        assert_eq!(state(CauseKind::Denied, 2), State::Failing);
        assert_eq!(state(CauseKind::ApiServer, 2), State::Failing);
        assert_eq!(state(CauseKind::Cloud, 40), State::Attention);
        assert_eq!(state(CauseKind::RateLimited, 40), State::Attention);
        assert_eq!(state(CauseKind::Object, 1), State::Notice);
        assert_eq!(
            trouble(&cause(CauseKind::Unavailable, 0, &["Failed to list"])).state,
            State::Failing
        );
    }

    #[test]
    fn a_mistake_in_one_object_begins_with_the_object() {
        let mistake = trouble(&cause(CauseKind::Object, 1, &[]));
        assert!(
            mistake
                .what
                .starts_with("1 Node waits to be initialised; the object is invalid: "),
            "{mistake:?}"
        );
        assert_eq!(mistake.behind, None);
    }
}
