use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    election: LeaderElectionArgs,
}

fn of(flags: &[&str]) -> Result<Option<Election>, Vec<String>> {
    Flags::parse_from(["x"].iter().chain(flags)).election.election()
}

#[test]
fn upstreams_defaults_are_kept() {
    let election = of(&[]).unwrap().unwrap();
    assert_eq!(
        election,
        Election {
            timing: Timing {
                lease_duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry_period: Duration::from_secs(2),
            },
            name: "cloud-controller-manager".into(),
            namespace: "kube-system".into(),
            migration: None,
        }
    );
    assert_eq!(
        of(&["--leader-elect=false", "--leader-elect-resource-lock=x"]),
        Ok(None)
    );
}

#[test]
fn wrong_relations_are_reported_together() {
    let wrong = of(&[
        "--leader-elect-lease-duration=10s",
        "--leader-elect-renew-deadline=10s",
        "--leader-elect-retry-period=9s",
        "--leader-elect-resource-lock=endpoints",
        "--leader-elect-resource-name=",
    ])
    .unwrap_err();
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    assert_eq!(
        wrong[0],
        "--leader-elect-lease-duration=10s has to be longer than --leader-elect-renew-deadline=10s"
    );
    assert!(
        wrong[1].contains("longer than 1.2 times --leader-elect-retry-period=9s"),
        "{wrong:?}"
    );
    assert!(wrong[2].contains("resourceLock value must be \"leases\""), "{wrong:?}");
    assert!(of(&["--leader-elect-retry-period=0s"]).is_err());
}

#[test]
fn a_migration_needs_a_lease_of_its_own() {
    let migration = of(&["--enable-leader-migration"]).unwrap().unwrap().migration;
    assert_eq!(migration, Some(Migration::default()));
    let wrong = of(&[
        "--enable-leader-migration",
        "--leader-elect-resource-name=cloud-provider-extraction-migration",
    ])
    .unwrap_err();
    assert!(wrong[0].contains("is the name of the main Lease too"), "{wrong:?}");
}

#[test]
fn controllers_are_led_by_the_lease_they_belong_to() {
    let election = of(&["--enable-leader-migration"]).unwrap();
    let candidates = Candidates::new("me".into(), election);
    let (_, migrated) = candidates.migrated.as_ref().unwrap();
    candidates.migrated.as_ref().unwrap().0.renew(Duration::MAX);
    assert!(migrated.is_leading());
    let leading = |controller| candidates.leadership_of(controller).unwrap().is_leading();
    assert!(!leading(Controller::CloudNode));
    assert!(
        leading(Controller::ServiceLb) && leading(Controller::NodeRoute) && leading(Controller::CloudNodeLifecycle)
    );
}

#[test]
fn overdue_leader_is_unhealthy_and_waiting_replica_is_not() {
    let now = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(100));
    let clock = now.clone();
    let (term, leadership) = Leadership::elected(std::sync::Arc::new(move || {
        Duration::from_secs(clock.load(std::sync::atomic::Ordering::SeqCst))
    }));
    let health = LeadershipHealth {
        terms: vec![leadership],
        limit: Duration::from_secs(35),
    };
    assert_eq!(health.check(), Ok(()));
    term.renew(Duration::from_secs(110));
    now.store(145, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(health.check(), Ok(()));
    now.store(146, std::sync::atomic::Ordering::SeqCst);
    assert!(health.check().is_err());
    term.end();
    assert_eq!(health.check(), Ok(()), "it does not believe to lead any more");
}
