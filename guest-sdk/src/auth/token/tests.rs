//! Logins that are shared, renewed and refused.

use std::cell::Cell;

use super::*;
use crate::testing::{FakeAnswer, FakeHost};
use crate::types::FailureKind;

const START: u64 = 1_000_000;

/// A cloud that gives out `token-1`, `token-2` and so on, each good for an hour.
#[derive(Default)]
struct Logins(Cell<u32>);

impl Logins {
    fn obtain(&self) -> Result<(String, u64), Failure> {
        self.0.set(self.0.get() + 1);
        Ok((format!("token-{}", self.0.get()), host::unix_seconds() + 3_600))
    }
}

fn start() -> (FakeHost, State) {
    let host = FakeHost::new();
    host.now(START);
    let state = host.context().state();
    (host, state)
}

fn value(state: &State, logins: &Logins) -> String {
    Token::cached(state, "lab", || logins.obtain()).unwrap().value
}

#[test]
fn a_token_is_obtained_once_and_renewed_a_little_before_its_end() {
    let (host, state) = start();
    let logins = Logins::default();
    assert_eq!(value(&state, &logins), "token-1");
    host.now(START + 3_600 - 301);
    assert_eq!(value(&state, &logins), "token-1");
    host.now(START + 3_600 - 300);
    assert_eq!(value(&state, &logins), "token-2");
    assert_eq!(logins.0.get(), 2);
}

#[test]
fn a_short_token_is_renewed_when_a_tenth_of_its_life_is_left() {
    let (host, state) = start();
    let get = |name: &str| {
        Token::cached(&state, "short", || Ok((name.to_owned(), host::unix_seconds() + 100)))
            .unwrap()
            .value
    };
    assert_eq!(get("a"), "a");
    host.now(START + 89);
    assert_eq!(get("b"), "a");
    host.now(START + 90);
    assert_eq!(get("c"), "c");
}

#[test]
fn of_many_calls_one_logs_in_and_the_others_wait_for_its_token() {
    let (host, state) = start();
    let logins = Logins::default();
    // While this call waits for the lock, the one that held it stored its token.
    host.locked("token/lab", move || {
        let _ = Token::cached(&state, "lab", || Ok(("theirs".to_owned(), START + 3_600)));
    });
    assert_eq!(value(&state, &logins), "theirs");
    assert_eq!(logins.0.get(), 0);
}

#[test]
fn the_lock_is_held_while_logging_in_and_free_afterwards() {
    let (_host, state) = start();
    let free = || state.lock("token/lab", Duration::ZERO).is_some();
    let token = Token::cached(&state, "lab", || {
        assert!(!free(), "another call would log in too");
        Ok((7, START + 3_600))
    });
    assert_eq!(token.unwrap().value, 7);
    assert!(free());
}

#[test]
fn login_that_fails_keeps_nothing_and_gives_reason() {
    let (_host, state) = start();
    let failed = Token::<String>::cached(&state, "lab", || Err(Failure::denied("wrong password")));
    assert_eq!(failed.unwrap_err(), Failure::denied("wrong password"));
    assert_eq!(value(&state, &Logins::default()), "token-1");
}

#[test]
fn while_renewing_fails_the_old_token_is_used_until_its_end() {
    let (host, state) = start();
    assert_eq!(value(&state, &Logins::default()), "token-1");
    let renew =
        || Token::<String>::cached(&state, "lab", || Err(Failure::unavailable("down"))).map(|token| token.value);
    host.now(START + 3_599);
    assert_eq!(renew(), Ok("token-1".into()));
    assert!(host.logs()[0].message.contains("down"), "{:?}", host.logs());
    host.now(START + 3_600);
    assert_eq!(renew(), Err(Failure::unavailable("down")));
}

#[test]
fn expired_token_on_arrival_is_not_requested_in_a_loop() {
    let (host, state) = start();
    let count = Cell::new(0);
    let get = || {
        Token::cached(&state, "lab", || {
            count.set(count.get() + 1);
            Ok((count.get(), START - 500))
        })
        .unwrap()
        .value
    };
    assert_eq!((get(), get()), (1, 1), "our clock is ahead, most likely");
    host.now(START + 60);
    assert_eq!(get(), 2);
}

#[test]
fn refused_token_is_dropped_and_the_request_made_once_again() {
    let (host, state) = start();
    host.serve(|request| match request.header("x-auth-token") {
        Some("token-2") => FakeAnswer::new(200, &[], "yes"),
        _ => FakeAnswer::new(401, &[], "no"),
    });
    let logins = Logins::default();
    let http = host.context().http();
    let ask = || {
        Token::with(
            &state,
            "lab",
            || logins.obtain(),
            |token: &String| Tried::by_status(http.get("https://lab.test/x").header("x-auth-token", token).send_any()),
        )
    };
    assert_eq!(ask().unwrap().text(), "yes");
    assert_eq!((logins.0.get(), host.requests().len()), (2, 2));
    assert_eq!(ask().unwrap().text(), "yes");
    assert_eq!((logins.0.get(), host.requests().len()), (2, 3), "the new one is kept");
}

#[test]
fn second_refusal_is_denied_without_third_request() {
    let (host, state) = start();
    host.serve(|_| FakeAnswer::new(401, &[], "no"));
    let logins = Logins::default();
    let http = host.context().http();
    let ask = || {
        Token::with(
            &state,
            "lab",
            || logins.obtain(),
            |token: &String| Tried::by_status(http.get("https://lab.test/x").header("x-auth-token", token).send_any()),
        )
    };
    assert_eq!(
        ask().unwrap_err(),
        Failure::denied("GET https://lab.test/x: 401 Unauthorized: no")
    );
    assert_eq!((logins.0.get(), host.requests().len()), (2, 2));
}

#[test]
fn other_answers_and_failures_do_not_cost_the_token() {
    let (host, state) = start();
    let logins = Logins::default();
    let http = host.context().http();
    let ask = || {
        Token::with(
            &state,
            "lab",
            || logins.obtain(),
            |_: &String| Tried::by_status(http.get("https://lab.test/x").send_any()),
        )
    };
    host.expect("GET", "https://lab.test/x").answers_with(403, &[], "");
    assert_eq!(ask().unwrap().status, 403);
    host.expect("GET", "https://lab.test/x").breaks();
    assert!(matches!(
        ask(),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    assert_eq!(logins.0.get(), 1);
}

#[test]
fn late_refusal_keeps_a_token_renewed_meanwhile() {
    let (_host, state) = start();
    let logins = Logins::default();
    let old = Token::cached(&state, "lab", || logins.obtain()).unwrap();
    let same = Token::cached(&state, "lab", || logins.obtain()).unwrap();
    old.forget(&state);
    assert_eq!(value(&state, &logins), "token-2");
    same.forget(&state);
    assert_eq!(value(&state, &logins), "token-2");
}

#[test]
fn a_token_is_not_shown() {
    let (_host, state) = start();
    let token = Token::cached(&state, "lab", || Logins::default().obtain()).unwrap();
    assert!(!format!("{token:?}").contains("token-1"), "{token:?}");
}
