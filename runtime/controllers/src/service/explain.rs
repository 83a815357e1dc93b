//! Explanations of Services. Pure; all of them continue `Service NAMESPACE/NAME `.

use k8s_openapi::api::core::v1::Service;

use crate::kube::service::{ingress, service_type};
use crate::options::classes::Classes;
use crate::queue::{KeyPlace, KeyState};
use crate::report::explain::next_try;
use crate::report::explain::{span, times};
use crate::service::plan::{dying, needs_cleanup, wants_balancer};
use crate::service::state::{BalancerState, Ensured, Record};

/// What the service controller has to say; nothing about a Service that is gone and left nothing behind.
pub fn balancer(
    service: Option<&Service>,
    record: Option<&Record>,
    queued: Option<KeyState>,
    classes: &Classes,
) -> Option<String> {
    let Some(service) = service else {
        return record.map(|record| {
            format!(
                "is gone from the cluster; {}",
                work(record, "its load balancer is being deleted", queued)
            )
        });
    };
    if classes.is_foreign_class(service) {
        let class = service
            .spec
            .as_ref()
            .and_then(|spec| spec.load_balancer_class.as_deref());
        return Some(format!(
            "is left alone: its class {} belongs to another controller.",
            class.unwrap_or_default()
        ));
    }
    if needs_cleanup(service, classes) || (dying(service) && record.is_some()) {
        let why = if dying(service) {
            "is being deleted; "
        } else {
            "no longer needs a load balancer; "
        };
        return Some(match record {
            Some(record) => format!("{why}{}", work(record, "its load balancer goes first", queued)),
            None => format!("{why}its load balancer goes first. {}", next_try(queued)),
        });
    }
    if !wants_balancer(service, classes) {
        return Some(format!("is of type {}: there is nothing to do.", service_type(service)));
    }
    Some(match record {
        Some(record) => wanted(service, record, queued),
        None => match addresses(service) {
            Some(at) => format!(
                "has its load balancer at {at}, says its status; {UNCONFIRMED}. {}",
                next_try(queued)
            ),
            None => format!("is queued for its first sync. {}", next_try(queued)),
        },
    })
}

/// Of a load balancer known from the Service's status alone: after a restart, or before it is checked after a change from outside.
const UNCONFIRMED: &str = "the provider has not confirmed it yet";

/// Where the load balancer is, says the Service's status; none when it says nothing.
fn addresses(service: &Service) -> Option<String> {
    let addresses: Vec<&str> = ingress(service)
        .iter()
        .filter_map(|point| point.ip.as_deref().or(point.hostname.as_deref()))
        .collect();
    (!addresses.is_empty()).then(|| addresses.join(", "))
}

fn wanted(service: &Service, record: &Record, queued: Option<KeyState>) -> String {
    let failing = record.is_failing();
    match record.state() {
        BalancerState::Elsewhere(_) => "is managed by another controller, according to the provider.".into(),
        BalancerState::Ensured { last, .. } if record.drift.is_check_due() && !failing => {
            format!(
                "{}. A drift check is due. {}",
                finished(service, last),
                next_try(queued)
            )
        }
        BalancerState::Ensured { last, .. } if record.waits_for().is_none() && !failing && queued.is_none() => {
            let unchecked = record.drift.failure().map_or_else(String::new, |reason| {
                format!(" The last drift check failed: {reason}. The next one comes after the period.")
            });
            format!("{}.{unchecked}", finished(service, last))
        }
        BalancerState::Ensured { .. } => work(record, "has a load balancer, which is being brought up to date", queued),
        BalancerState::Unknown
        | BalancerState::Ensuring(_)
        | BalancerState::Deleting { .. }
        | BalancerState::Deleted => {
            if let (Some(at), Some(_)) = (addresses(service), record.waits_for()) {
                return format!(
                    "has its load balancer at {at}, says its status, and {}",
                    work(record, "", queued)
                );
            }
            let known =
                addresses(service).map(|at| format!("has its load balancer at {at}, says its status; {UNCONFIRMED}"));
            work(record, known.as_deref().unwrap_or("has no load balancer yet"), queued)
        }
    }
}

fn finished(service: &Service, ensured: &Ensured) -> String {
    let behind = match ensured.targets.nodes.len() {
        0 => "no Node behind it: none is eligible".to_owned(),
        1 => "1 Node behind it".to_owned(),
        nodes => format!("{nodes} Nodes behind it"),
    };
    format!(
        "has its load balancer at {} with {behind}",
        addresses(service).unwrap_or_default()
    )
}

/// What is waited for, since when, why, and when it continues.
fn work(record: &Record, otherwise: &str, queued: Option<KeyState>) -> String {
    let since = queued.map_or_else(String::new, |state| format!(" since {}", span(state.unfinished)));
    let tries = times(queued.map_or(0, |state| state.failures));
    let failure = record.failure().map_or_else(String::new, |failure| {
        format!(" Last answer of the provider: {failure}.")
    });
    let refusal = record.refusal().map_or_else(String::new, |refusal| {
        format!(" The last write to the Service failed: {refusal}.")
    });
    match (record.waits_for(), queued.map(|state| state.place)) {
        (Some(waits_for), Some(KeyPlace::Waiting(pause))) => {
            format!(
                "waits for the cloud{since}: {waits_for}; next call in {}.{failure}{refusal}",
                span(pause)
            )
        }
        (Some(waits_for), _) => {
            format!(
                "waits for the cloud{since}: {waits_for}.{failure}{refusal} {}",
                next_try(queued)
            )
        }
        (None, _) => format!("{otherwise}{since}{tries}.{failure}{refusal} {}", next_try(queued)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cloudwit_model::Failure;

    use super::*;
    use crate::service::state::Operation;
    use crate::service::state::testing::{balancer as lb, ensured, nodes, of_type};

    fn queued(failures: u32, seconds: u64) -> Option<KeyState> {
        Some(KeyState {
            place: KeyPlace::Waiting(Duration::from_secs(seconds)),
            failures,
            unfinished: Duration::from_secs(65),
        })
    }

    #[test]
    fn service_waiting_for_cloud_shows_reason_and_next_attempt() {
        let service = lb().finalizer();
        let mut record = Record::new(service.arc(), &Classes::default());
        record.start(Operation::Ensure);
        let message = "the cloud builds load balancer lb-1".to_owned();
        record.note_pending("t".into(), message, nodes(&["a"]));
        assert_eq!(
            balancer(Some(&service.0), Some(&record), queued(0, 4), &Classes::default()).unwrap(),
            "waits for the cloud since 1 m 5 s: the cloud builds load balancer lb-1; next call in 4 s."
        );
    }

    #[test]
    fn continuing_balancer_reports_address_and_remaining_work() {
        let service = lb().finalizer().ingress("1.1.1.1");
        let mut record = Record::new(service.arc(), &Classes::default());
        record.start(Operation::Ensure);
        record.note_pending("t".into(), "targets are added".to_owned(), nodes(&["a"]));
        assert_eq!(
            balancer(Some(&service.0), Some(&record), queued(0, 4), &Classes::default()).unwrap(),
            "has its load balancer at 1.1.1.1, says its status, and waits for the cloud since 1 m 5 s: targets are added; next call in 4 s."
        );
    }

    #[test]
    fn failing_service_gives_reason_and_how_often() {
        let service = lb().finalizer();
        let mut record = Record::new(service.arc(), &Classes::default());
        record.start(Operation::Ensure);
        record.fail(&Failure::Denied("no rights".into()).into());
        assert_eq!(
            balancer(Some(&service.0), Some(&record), queued(3, 300), &Classes::default()).unwrap(),
            "has no load balancer yet since 1 m 5 s (3 tries). Last answer of the provider: denied: no rights. Next try in 5 m."
        );
        assert!(
            balancer(None, Some(&record), queued(3, 300), &Classes::default())
                .unwrap()
                .starts_with("is gone from the cluster; its load")
        );
        assert_eq!(balancer(None, None, None, &Classes::default()), None);
    }

    #[test]
    fn status_proves_the_balancer_after_a_restart() {
        let service = lb().finalizer().ingress("1.1.1.1");
        let mut record = Record::new(service.arc(), &Classes::default());
        let say =
            |record: Option<&Record>| balancer(Some(&service.0), record, queued(3, 300), &Classes::default()).unwrap();
        let known = "has its load balancer at 1.1.1.1, says its status; the provider has not confirmed it yet";
        assert_eq!(say(None), format!("{known}. Next try in 5 m."));
        record.start(Operation::Ensure);
        record.fail(&Failure::Unavailable("no route to host".into()).into());
        assert_eq!(
            say(Some(&record)),
            format!(
                "{known} since 1 m 5 s (3 tries). Last answer of the provider: unavailable: no route to host. Next try in 5 m."
            )
        );
    }

    #[test]
    fn service_with_nothing_to_do_reports_it() {
        let service = lb().finalizer().ingress("1.1.1.1");
        let say = |service: &Service, record: Option<&Record>| {
            balancer(Some(service), record, None, &Classes::default()).unwrap()
        };
        let done = say(&service.0, Some(&ensured(&service)));
        assert_eq!(done, "has its load balancer at 1.1.1.1 with 1 Node behind it.");
        assert_eq!(
            say(&of_type("ClusterIP").0, None),
            "is of type ClusterIP: there is nothing to do."
        );
        assert!(say(&lb().class().0, None).starts_with("is left alone: its class example.com/other"));
        assert!(say(&lb().finalizer().dying().0, None).starts_with("is being deleted; its load balancer goes first."));
    }

    #[test]
    fn drift_check_is_reported_while_running_and_on_failure() {
        let service = lb().finalizer().ingress("1.1.1.1");
        let mut record = ensured(&service);
        record.drift.request_check();
        let now = Some(KeyState {
            place: KeyPlace::Running,
            failures: 0,
            unfinished: Duration::ZERO,
        });
        assert_eq!(
            balancer(Some(&service.0), Some(&record), now, &Classes::default()).unwrap(),
            "has its load balancer at 1.1.1.1 with 1 Node behind it. A drift check is due. It is being \
             worked on right now."
        );
        record.drift.check_failed("unavailable: down".into());
        assert_eq!(
            balancer(Some(&service.0), Some(&record), None, &Classes::default()).unwrap(),
            "has its load balancer at 1.1.1.1 with 1 Node behind it. The last drift check failed: \
             unavailable: down. The next one comes after the period."
        );
        record.note_shown(Some(vec![crate::service::state::testing::point("1.1.1.1")]));
        assert_eq!(record.drift.failure(), None);
    }

    #[test]
    fn rejected_write_reports_the_api_servers_answer() {
        let service = lb();
        let mut record = Record::new(service.arc(), &Classes::default());
        record.note_write(Some("the API server refuses it: forbidden".into()));
        assert_eq!(
            balancer(Some(&service.0), Some(&record), queued(2, 10), &Classes::default()).unwrap(),
            "has no load balancer yet since 1 m 5 s (2 tries). The last write to the Service failed: the API server refuses \
             it: forbidden. Next try in 10 s."
        );
        record.note_write(None);
        assert_eq!(record.refusal(), None);
    }
}
