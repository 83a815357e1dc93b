use std::cell::{Cell, RefCell};

use super::*;
use crate::testing::FakeHost;
use crate::types::FailureKind;

/// A cloud that answers each change with the result of `say`, and records what it was sent.
struct Lab<'s> {
    say: &'s dyn Fn(&str) -> Result<Vec<String>, Failure>,
    stands: Jobs,
    sent: RefCell<Vec<String>>,
}

impl Apply for Lab<'_> {
    type Change = &'static str;

    fn text(change: &&'static str) -> String {
        (*change).to_owned()
    }

    fn codes(text: &str) -> Change<'_> {
        Change::new(text).done_by(&["Exists"]).busy_by(&["Locked"])
    }

    fn deletes(change: &&'static str) -> bool {
        change.starts_with("delete")
    }

    fn apply(&self, id: &str, change: &&'static str) -> Result<Vec<String>, Failure> {
        self.sent.borrow_mut().push(format!("{change} of {id}"));
        (self.say)(change)
    }

    fn jobs(&self, jobs: Vec<String>) -> Result<Jobs, Failure> {
        self.sent.borrow_mut().push(jobs.join("+"));
        Ok(self.stands.clone())
    }
}

fn lab(say: &dyn Fn(&str) -> Result<Vec<String>, Failure>) -> Lab<'_> {
    Lab {
        say,
        stands: Jobs::default(),
        sent: RefCell::default(),
    }
}

/// What is planned in turn; done after that.
fn plan(rounds: &'static [&'static [&'static str]]) -> impl FnMut() -> Result<Next<usize, &'static str>, Failure> {
    let mut planned = 0;
    move || {
        planned += 1;
        Ok(match rounds.get(planned - 1) {
            Some(changes) => Next::Changes(changes.to_vec()),
            None => Next::Done(planned),
        })
    }
}

fn token(failure: &Failure) -> String {
    match &failure.kind {
        FailureKind::Pending(token) => token.clone(),
        other => panic!("{other:?}: {}", failure.message()),
    }
}

fn run(lab: &Lab<'_>, token: Option<&str>, rounds: &'static [&'static [&'static str]]) -> Result<usize, Failure> {
    Rounds::new(lab, "lb-1", token)?.run(plan(rounds))
}

#[test]
fn rounds_follow_until_nothing_is_left() {
    let _host = FakeHost::new();
    let lab = lab(&|_| Ok(Vec::new()));
    assert_eq!(run(&lab, None, &[&["a", "b"], &["c"]]), Ok(3));
    assert_eq!(*lab.sent.borrow(), ["a of lb-1", "b of lb-1", "c of lb-1"]);
}

#[test]
fn plan_that_never_ends_is_a_conflict() {
    let _host = FakeHost::new();
    let (lab, planned) = (lab(&|_| Ok(Vec::new())), Cell::new(0));
    let next = || {
        planned.set(planned.get() + 1);
        Ok(Next::<(), _>::Changes(Vec::new()))
    };
    let failure = Rounds::new(&lab, "lb-1", None).unwrap().run(next).unwrap_err();
    assert_eq!(failure, Failure::conflict("something else changes lb-1 back each time"));
    assert_eq!(planned.get(), ROUNDS);
}

#[test]
fn not_found_ends_deletions_alone() {
    let _host = FakeHost::new();
    let lab = lab(&|change| match change {
        "exists" => Err(Failure::conflict("no").with_code("Exists")),
        _ => Err(Failure::not_found("no")),
    });
    assert_eq!(run(&lab, None, &[&["delete", "exists"]]), Ok(2));
    assert!(run(&lab, None, &[&["change"]]).unwrap_err().is_not_found());
}

#[test]
fn busy_cloud_is_pending_and_keeps_what_was_made() {
    let _host = FakeHost::new();
    let busy = lab(&|change| match change {
        "b" => Err(Failure::conflict("at work").with_code("Locked")),
        _ => Ok(Vec::new()),
    });
    let first = run(&busy, None, &[&["a", "b"]]).unwrap_err();
    assert_eq!(first.message(), "at work");
    let again = run(&busy, Some(&token(&first)), &[&["a"]]).unwrap_err();
    let text = "the cloud took a change of lb-1 without effect: a";
    assert_eq!(again, Failure::other(text));
    assert_eq!(
        Rounds::new(&busy, "lb-2", Some(&token(&first)))
            .unwrap()
            .run(plan(&[&["a"]])),
        Ok(2),
        "the token of another thing counts for nothing"
    );
}

#[test]
fn jobs_are_awaited_by_the_token() {
    let _host = FakeHost::new();
    let mut lab = lab(&|change| match change {
        "fails" => Err(Failure::unavailable("down")),
        change => Ok(vec![format!("job-{change}")]),
    });
    let first = run(&lab, None, &[&["a", "b", "fails", "c"]]).unwrap_err();
    assert_eq!(first.message(), "lb-1 is being changed");
    lab.stands.running = vec!["job-b".into()];
    let second = run(&lab, Some(&token(&first)), &[]).unwrap_err();
    assert_eq!(second.retry_after, Some(1_200));
    lab.stands.running = Vec::new();
    assert_eq!(run(&lab, Some(&token(&second)), &[]), Ok(1));
    let sent = ["a of lb-1", "b of lb-1", "fails of lb-1", "job-a+job-b", "job-b"];
    assert_eq!(*lab.sent.borrow(), sent);
    let down = run(&lab, None, &[&["fails", "a"]]);
    assert_eq!(down, Err(Failure::unavailable("down")), "nothing to wait for");
}

#[test]
fn what_a_failed_job_was_to_do_is_made_again() {
    let _host = FakeHost::new();
    let mut lab = lab(&|_| Ok(vec!["job".into()]));
    let first = token(&run(&lab, None, &[&["a"]]).unwrap_err());
    let kept = run(&lab, Some(&first), &[&["a"]]).unwrap_err();
    assert_eq!(kept.kind, FailureKind::Other, "{kept:?}");
    lab.stands.failed = true;
    token(&run(&lab, Some(&first), &[&["a"]]).unwrap_err());
}

#[test]
fn jobs_of_a_round_are_bounded() {
    let _host = FakeHost::new();
    let lab = lab(&|_| Ok(vec!["job".into()]));
    const MANY: [&str; 20] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
    ];
    let failure = run(&lab, None, &[&MANY]).unwrap_err();
    assert_eq!(lab.sent.borrow().len(), JOBS);
    assert!(token(&failure).len() < 4_096);
}

/// What is kept: how often it was dropped, and whether it was read.
#[derive(Default)]
struct Shelf {
    forgotten: Cell<u32>,
    read: Cell<bool>,
}

impl Kept for Shelf {
    fn is_unread(&self) -> bool {
        !self.read.get()
    }

    fn forget(&self) {
        self.forgotten.set(self.forgotten.get() + 1);
        self.read.set(false);
    }
}

fn run_locked(lab: &Lab<'_>, shelf: &Shelf) -> (Result<usize, Failure>, u32) {
    let result = Rounds::new(lab, "lb-1", None)
        .unwrap()
        .run_locked("members", shelf, plan(&[&["a"], &["b"]]));
    (result, shelf.forgotten.get())
}

#[test]
fn free_lock_costs_no_second_look() {
    let host = FakeHost::new();
    let lab = lab(&|_| Ok(Vec::new()));
    assert_eq!(run_locked(&lab, &Shelf::default()), (Ok(3), 2));
    assert_eq!(*lab.sent.borrow(), ["a of lb-1", "b of lb-1"]);
    assert!(
        host.context().state().lock("members", Duration::ZERO).is_some(),
        "released"
    );
}

#[test]
fn what_was_read_without_the_lock_is_read_again() {
    let _host = FakeHost::new();
    let lab = lab(&|_| Ok(Vec::new()));
    let shelf = Shelf::default();
    shelf.read.set(true);
    assert_eq!(run_locked(&lab, &shelf), (Ok(3), 2));
    assert_eq!(*lab.sent.borrow(), ["b of lb-1"], "the first plan counts for nothing");
}

#[test]
fn taken_lock_is_pending_before_any_change() {
    let host = FakeHost::new();
    let _held = host.context().state().lock("members", Duration::ZERO);
    let lab = lab(&|_| panic!("sent"));
    let (result, _) = run_locked(&lab, &Shelf::default());
    let failure = result.unwrap_err();
    assert_eq!(failure.message(), "lb-1 waits for other changes");
    token(&failure);
    assert_eq!(
        Rounds::new(&lab, "lb-1", None)
            .unwrap()
            .run_locked("members", &(), plan(&[])),
        Ok(1),
        "without a change there is nothing to wait for"
    );
}

#[test]
fn plans_go_on_where_others_are_done() {
    let then = |next: Next<u8, &'static str>| next.then(|done| Ok(Next::Done(done + 1)));
    assert_eq!(then(Next::change("a")), Ok(Next::Changes(vec!["a"])));
    assert_eq!(then(Next::Wait("busy".into())), Ok(Next::Wait("busy".into())));
    assert_eq!(then(Next::changes_or(Vec::new(), 1)), Ok(Next::Done(2)));
    assert_eq!(Next::<(), &str>::changes(Vec::new()), None);
}
