//! Changes that are made one after the other, over as many calls as the cloud needs.

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::context::{Context, RESERVE};
use crate::types::{Failure, FailureKind};

/// Polls after which waiting counts as failed: with the pauses of [`Steps::pending`] some five and a half minutes.
const LOOKS: u32 = 23;

/// Most changes that are kept, the last ones: more than there are in a cycle of changes that a cloud undoes in turn.
const CHANGES: usize = 64;

/// How soon a call continues that had no time left for its next change.
const NEXT: Duration = Duration::from_millis(100);

/// Changes of one thing in the cloud, and what was made of them in earlier calls: [`Steps::pending`] puts it into the token of its answer, and
/// [`Steps::read`] takes it from there.
///
/// The token only saves work. When it is lost, what was done is seen in the cloud.
///
/// ```
/// use std::time::Duration;
/// use cloudwit_guest_sdk::prelude::*;
/// use cloudwit_guest_sdk::reconcile::{Change, Steps};
///
/// /// Brings a load balancer in line: `next` plans the next change from what the cloud shows, `send` makes it.
/// fn converge(
///     context: &Context,
///     id: &str,
///     token: Option<&str>,
///     next: impl Fn() -> Result<Option<String>, Failure>,
///     send: impl Fn(&str) -> Result<(), Failure>,
/// ) -> Result<(), Failure> {
///     let mut steps = Steps::continued(token.and_then(Steps::read).as_ref(), id);
///     while let Some(change) = next()? {
///         let made = Change::new(&change).done_by(&["AlreadyExists"]).busy_by(&["PENDING_UPDATE"]);
///         steps.make(context, &made, || send(&change))?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    id: String,
    /// How often it was checked since its last change.
    looks: u32,
    /// Of the changes that were made since it was last right.
    marks: Vec<u32>,
    /// What the cloud is still at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<String>,
}

/// A change, as [`Steps::make`] needs it.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    text: &'a str,
    done_by: &'a [&'a str],
    busy_by: &'a [&'a str],
    busy_kind: Option<FailureKind>,
}

impl<'a> Change<'a> {
    /// Of this text, which identifies it: all of what is sent, readable.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            done_by: &[],
            busy_by: &[],
            busy_kind: None,
        }
    }

    /// These codes of the cloud mean that it was made already.
    pub fn done_by(self, codes: &'a [&'a str]) -> Self {
        Self { done_by: codes, ..self }
    }

    /// These codes of the cloud mean that another operation is in flight, after which it has to be planned again.
    pub fn busy_by(self, codes: &'a [&'a str]) -> Self {
        Self { busy_by: codes, ..self }
    }

    /// So does a failure of this kind, in a cloud that has no code for it.
    pub fn busy_when(self, kind: FailureKind) -> Self {
        Self {
            busy_kind: Some(kind),
            ..self
        }
    }
}

impl Steps {
    /// The first steps with the thing of this id.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            looks: 0,
            marks: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// Those of a token; none when it is of another version of the provider.
    pub fn read(token: &str) -> Option<Self> {
        let mut steps: Self = serde_json::from_str(token).ok()?;
        steps.marks.truncate(CHANGES);
        steps.jobs.truncate(CHANGES);
        Some(steps)
    }

    /// The former steps, or the first ones if those were with another thing.
    pub fn continued(former: Option<&Self>, id: &str) -> Self {
        let own = former.filter(|former| former.id == id);
        own.map_or_else(
            || Self::new(id),
            |own| Self {
                looks: 0,
                ..own.clone()
            },
        )
    }

    /// The id of what is changed.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many jobs continue.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Adds jobs that continue in the cloud, which are in the token then.
    pub(super) fn add_jobs(&mut self, jobs: Vec<String>) {
        self.jobs.extend(jobs);
    }

    /// The jobs, which are checked now.
    pub(super) fn take_jobs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.jobs)
    }

    /// Makes a change with `send`; none where it was made already.
    ///
    /// The same change is never made twice with one token: a cloud that stores another value than it was given would get it forever.
    ///
    /// # Errors
    /// `pending` where the cloud is busy or the call has no time left for a further change; a failure where the cloud took this change before,
    /// without effect; in a dry run what would be done; the error of `send`.
    pub fn make<T>(
        &mut self,
        context: &Context,
        change: &Change<'_>,
        send: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let (id, text) = (&self.id, change.text);
        if context.is_dry_run() {
            return Err(Failure::other(format!("dry run: would change {id} by {text}")));
        }
        let mark = mark(text);
        if self.marks.contains(&mark) {
            let text = format!("the cloud took a change of {id} without effect: {text}");
            // Not `unavailable`, over which the token is kept: the changes that were made are dropped, and it is tried once more after a pause.
            return Err(Failure::other(text));
        }
        if context.time_left() < RESERVE {
            return Err(self.answer(NEXT, format!("{id} is being changed")));
        }
        let is = |codes: &[&str], failure: &Failure| failure.code.as_deref().is_some_and(|code| codes.contains(&code));
        let made = match send() {
            Err(failure) if is(change.done_by, &failure) => None,
            Err(failure) if is(change.busy_by, &failure) || change.busy_kind.as_ref() == Some(&failure.kind) => {
                return Err(self.pending(failure.message()));
            }
            result => Some(result?),
        };
        self.looks = 0;
        if self.marks.len() >= CHANGES {
            self.marks.remove(0);
        }
        self.marks.push(mark);
        Ok(made)
    }

    /// The answer while the cloud works on it, and this is the progress: `pending`, first for a second, then each time a fifth longer, and
    /// `unavailable` after more than five minutes.
    pub fn pending(&self, state: impl Display) -> Failure {
        if self.looks >= LOOKS {
            return Failure::unavailable(format!("{state} for over five minutes"));
        }
        let milliseconds = (0..self.looks).fold(1_000_u64, |after, _| after * 6 / 5);
        self.answer(Duration::from_millis(milliseconds), state.to_string())
    }

    fn answer(&self, after: Duration, message: String) -> Failure {
        let next = Self {
            looks: self.looks + 1,
            ..self.clone()
        };
        let token = serde_json::to_string(&next).unwrap_or_default();
        Failure::pending(after, token, message)
    }
}

/// 32 bits of FNV-1a: enough to recognize a change from one call to the next.
fn mark(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeHost;

    fn token(failure: &Failure) -> &str {
        match &failure.kind {
            FailureKind::Pending(token) => token,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn checks_grow_by_a_fifth_and_end_after_330_seconds() {
        let mut steps = Steps::new("lb-1");
        let mut waited = Vec::new();
        let end = loop {
            let answer = steps.pending("lb-1 is PENDING_CREATE");
            if !matches!(answer.kind, FailureKind::Pending(_)) {
                break answer;
            }
            waited.push(answer.retry_after.unwrap());
            steps = Steps::read(token(&answer)).unwrap();
        };
        assert_eq!(waited[..4], [1_000, 1_200, 1_440, 1_728]);
        assert_eq!(waited.len(), 23);
        let seconds = waited.iter().sum::<u32>() / 1_000;
        assert!((320..335).contains(&seconds), "{seconds}");
        assert_eq!(
            end,
            Failure::unavailable("lb-1 is PENDING_CREATE for over five minutes")
        );
    }

    #[test]
    fn one_change_is_made_once_also_over_several_calls() {
        let host = FakeHost::new();
        let context = host.context();
        let mut steps = Steps::new("lb-1");
        assert_eq!(steps.make(&context, &Change::new("PUT a"), || Ok(7)), Ok(Some(7)));
        let waits = steps.pending("lb-1 is PENDING_UPDATE");
        let former = Steps::read(token(&waits)).unwrap();
        let mut steps = Steps::continued(Some(&former), "lb-1");
        let again = steps.make(&context, &Change::new("PUT a"), || -> Result<(), Failure> {
            panic!("it was made")
        });
        let text = "the cloud took a change of lb-1 without effect: PUT a";
        assert_eq!(again, Err(Failure::other(text)));
        assert_eq!(steps.make(&context, &Change::new("PUT b"), || Ok(())), Ok(Some(())));
        let mut other = Steps::continued(Some(&former), "lb-2");
        assert_eq!(other.make(&context, &Change::new("PUT a"), || Ok(())), Ok(Some(())));
    }

    #[test]
    fn codes_of_the_cloud_mean_done_or_busy() {
        let host = FakeHost::new();
        let context = host.context();
        let failed = |code: &str| Failure::conflict("no").with_code(code);
        let mut steps = Steps::new("lb-1");
        let change = Change::new("POST a").done_by(&["Exists"]).busy_by(&["Locked"]);
        let busy = steps
            .make(&context, &change, || Err::<(), _>(failed("Locked")))
            .unwrap_err();
        assert_eq!(Steps::read(token(&busy)).unwrap().marks, [0_u32; 0], "it was not made");
        let refused = steps.make(&context, &change, || Err::<(), _>(failed("Other")));
        assert_eq!(refused, Err(failed("Other")));
        let by_kind = Change::new("POST b").busy_when(FailureKind::Conflict);
        assert!(token(&steps.make(&context, &by_kind, || Err::<(), _>(failed(""))).unwrap_err()).contains("lb-1"));
        assert_eq!(
            steps.make(&context, &change, || Err::<(), _>(failed("Exists"))),
            Ok(None)
        );
        assert!(steps.make(&context, &change, || Ok(())).is_err(), "it was made");
    }

    #[test]
    fn no_change_is_begun_without_time_or_in_a_dry_run() {
        let host = FakeHost::new();
        let never = || -> Result<(), Failure> { panic!("sent") };
        host.call_seconds(9);
        let late = Steps::new("lb-1")
            .make(&host.context(), &Change::new("PUT a"), never)
            .unwrap_err();
        assert_eq!((late.retry_after, late.message()), (Some(100), "lb-1 is being changed"));
        assert!(token(&late).contains("lb-1"));
        let host = FakeHost::new();
        host.dry_run();
        let dry = Steps::new("lb-1").make(&host.context(), &Change::new("PUT a"), never);
        assert_eq!(dry, Err(Failure::other("dry run: would change lb-1 by PUT a")));
    }

    #[test]
    fn token_of_other_version_is_ignored_and_changes_are_bounded() {
        for token in ["", "lb-1", "{}", "lb-1 1 2,x"] {
            assert_eq!(Steps::read(token), None, "{token}");
        }
        let host = FakeHost::new();
        let mut steps = Steps::new("lb-1");
        for number in 0..1_000 {
            let made = steps.make(&host.context(), &Change::new(&number.to_string()), || Ok(()));
            assert_eq!(made, Ok(Some(())));
        }
        assert_eq!(steps.marks.len(), CHANGES);
        assert!(token(&steps.pending("x")).len() < 4_096);
    }
}
