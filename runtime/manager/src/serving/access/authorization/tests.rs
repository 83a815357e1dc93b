//! Stories about who may read what.

use std::time::Duration;

use clap::Parser;
use prometheus_client::registry::Registry;

use super::*;
use crate::flags::args::Args;
use crate::serving::access::fake_reviews::FakeReviews;

fn authorizer(flag: &str, reviews: Option<&FakeReviews>) -> Authorizer {
    let args = Args::parse_from(["cloudwit", flag]).authorization;
    let metrics = AccessMetrics::new(&mut Registry::default());
    Authorizer::new(&args, reviews.map(FakeReviews::reviewer), metrics)
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    }
}

#[tokio::test]
async fn open_paths_stay_open_and_others_closed_without_reviews() {
    let (default, star) = ("-v=0", "--authorization-always-allow-paths=/metrics*");
    for (flag, groups, path, allowed) in [
        (default, &[][..], "/healthz", true),
        (default, &[], "/healthz/ping", false),
        (default, &[], "/healthz/", false),
        (default, &[], "/metrics", false),
        (default, &[], "//healthz", false),
        (default, &[], "/", false),
        (default, &[], "", false),
        (default, &["system:masters"], "/metrics", true),
        (star, &[], "/metrics", true),
        (star, &[], "/metrics/slis", true),
        (star, &[], "//metrics", false),
        (star, &[], "/healthz", false),
        (star, &[], "/configz", false),
        ("--authorization-always-allow-paths=", &[], "/healthz", false),
        ("--authorization-always-allow-paths=", &[], "", false),
        ("--authorization-always-allow-paths=metrics", &[], "/metrics", true),
        ("--authorization-always-allow-paths=/", &[], "/", true),
        ("--authorization-always-allow-paths=/", &[], "/metrics", false),
        ("--authorization-always-allow-paths=*", &[], "/metrics", true),
    ] {
        let verdict = authorizer(flag, None).allows(&user("ann", groups), "get", path).await;
        assert_eq!(verdict == Verdict::Allowed, allowed, "{flag} {groups:?} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn api_server_reviews_user_verb_and_path_and_is_cached() {
    let reviews = FakeReviews::default();
    reviews.allow("ann", "get", "/metrics");
    let flag = "--authorization-webhook-cache-unauthorized-ttl=30s";
    let authorizer = authorizer(flag, Some(&reviews));
    let asked = || reviews.asked().len();
    let (ann, bob) = (user("ann", &["dev"]), user("bob", &["dev"]));
    let no = Verdict::NoOpinion(String::new());
    for _ in 0..2 {
        assert_eq!(authorizer.allows(&ann, "get", "/metrics").await, Verdict::Allowed);
        assert_eq!(authorizer.allows(&bob, "get", "/metrics").await, no);
        assert_eq!(authorizer.allows(&ann, "delete", "/metrics").await, no);
        assert_eq!(authorizer.allows(&ann, "get", "/configz").await, no);
    }
    assert_eq!(asked(), 4);
    assert_eq!(
        authorizer.allows(&user("ann", &[]), "get", "/metrics").await,
        Verdict::Allowed
    );
    assert_eq!(asked(), 5, "with other groups she is another user");
    tokio::time::advance(Duration::from_secs(11)).await;
    authorizer.allows(&ann, "get", "/metrics").await;
    assert_eq!(asked(), 6, "a yes holds for 10 s");
    authorizer.allows(&bob, "get", "/metrics").await;
    assert_eq!(asked(), 6, "a no for as long as the flag says");
}

#[tokio::test(start_paused = true)]
async fn a_no_is_stronger_than_a_yes_and_silence_is_neither() {
    let reviews = FakeReviews::default();
    reviews.allow("banned", "get", "/metrics");
    let authorizer = authorizer("-v=0", Some(&reviews));
    let banned = authorizer.allows(&user("banned", &[]), "get", "/metrics").await;
    assert_eq!(banned, Verdict::Denied(String::new()));
    reviews.down(true);
    let unknown = authorizer.allows(&user("ann", &[]), "get", "/metrics").await;
    assert_eq!(unknown, Verdict::Unknown("down".into()));
    assert_eq!(
        authorizer.allows(&user("ann", &[]), "get", "/healthz").await,
        Verdict::Allowed
    );
    reviews.down(false);
    reviews.allow("ann", "get", "/metrics");
    assert_eq!(
        authorizer.allows(&user("ann", &[]), "get", "/metrics").await,
        Verdict::Allowed
    );
}
