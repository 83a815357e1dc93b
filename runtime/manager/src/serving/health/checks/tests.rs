//! What readers of the health pages see.

use super::*;

fn checks() -> Checks {
    let mut checks = Checks::default();
    checks.add(|| {
        vec![
            Check::live("leaderElection", State::Healthy),
            Check::ready("informer-sync", State::Failed("Nodes".into())),
            Check::ready("brake", State::Warning("many".into())),
        ]
    });
    checks
}

#[tokio::test]
async fn readiness_fails_with_a_reason_for_those_who_are_known() {
    let (code, text) = checks().look(Page::Readyz, &Wish::default()).await;
    assert_eq!(code, 500);
    assert_eq!(
        text,
        "[+]ping ok\n[+]leaderElection ok\n[-]informer-sync failed: reason withheld\n[+]brake ok\nreadyz check failed\n"
    );
    let (_, text) = checks()
        .look(
            Page::Readyz,
            &Wish {
                reasons: true,
                ..Wish::default()
            },
        )
        .await;
    assert!(
        text.contains("[-]informer-sync failed: Nodes\n[+]brake ok, but: many\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_process_that_is_not_ready_lives() {
    assert_eq!(
        checks().look(Page::Livez, &Wish::default()).await,
        (StatusCode::OK, "ok".into())
    );
    let verbose = Wish {
        verbose: true,
        ..Wish::default()
    };
    let (code, text) = checks().look(Page::Healthz, &verbose).await;
    assert_eq!(
        (code.as_u16(), text.as_str()),
        (200, "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n")
    );
}

#[tokio::test]
async fn a_check_can_be_left_out_or_be_the_only_one() {
    let exclude = Wish {
        exclude: vec!["informer-sync".into(), "nope".into()],
        verbose: true,
        ..Wish::default()
    };
    let (code, text) = checks().look(Page::Readyz, &exclude).await;
    assert_eq!(code, 200);
    assert!(
        text.contains("[+]informer-sync excluded: ok\n") && text.contains("no matches for \"nope\""),
        "{text}"
    );
    let only = async |name: &str| {
        checks()
            .look(
                Page::Readyz,
                &Wish {
                    only: Some(name.into()),
                    ..Wish::default()
                },
            )
            .await
            .0
            .as_u16()
    };
    assert_eq!(
        (
            only("leaderElection").await,
            only("informer-sync").await,
            only("nope").await
        ),
        (200, 500, 404)
    );
}

#[tokio::test]
async fn every_check_is_counted_until_the_counts_are_reset() {
    let checks = checks();
    checks.look(Page::Readyz, &Wish::default()).await;
    checks.look(Page::Readyz, &Wish::default()).await;
    let text = checks.slis().text();
    assert!(
        text.contains("kubernetes_healthcheck{name=\"informer-sync\",type=\"readyz\"} 0\n"),
        "{text}"
    );
    assert!(
        text.contains("kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"readyz\"} 2\n"),
        "{text}"
    );
    assert!(
        text.contains("kubernetes_healthchecks_total{name=\"informer-sync\",status=\"error\",type=\"readyz\"} 2\n"),
        "{text}"
    );
    checks.slis().reset();
    assert!(!checks.slis().text().contains("ping"));
}
