//! Operations under way: one for each volume or snapshot.
//!
//! An equal request joins the operation that runs, another one gets an error with what is under way. An operation keeps running when the RPC that began it is gone,
//! since its sidecar retries. One without waiting RPCs is replaced by another request about the same volume, at the latest when the call it is in has
//! ended: an attachment that never comes does not keep its volume from being detached.
//!
//! Requests are equal when their secrets are, too. An operation alone has those, for as long as it runs; what is kept and shown has a fingerprint at most.
//!
//! What came of an operation is read by those who wait for it; success is found again in the cloud. That there is no room is not: where no RPC waits when an operation
//! ends so, the next equal request gets the refusal ([`Unread`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{CloudError, Failure, SecretsFingerprint, VolumeSecrets};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::engine::failures::{FailedOperation, Failures};
use crate::engine::steps::Steps;
use crate::engine::unread::Unread;
use crate::engine::work::{Done, Request, Subject, Trouble, Work};

/// An operation without a waiting RPC for so long is abandoned. Sidecars retry within five minutes.
const FORSAKEN: Duration = Duration::from_secs(10 * 60);

/// Operations under way. What a cluster requests at once is far less: sidecars have 10 to 100 workers.
const MOST: usize = 5_000;

/// All operations of a driver.
#[derive(Debug, Clone)]
pub struct Operations(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    steps: Steps,
    running: Mutex<HashMap<Subject, Running>>,
    failures: Mutex<Failures>,
    /// Locked while `running` is, so that no request comes between the end of an operation and its refusal.
    unread: Mutex<Unread>,
}

#[derive(Debug, Clone)]
struct Running {
    work: Arc<Work>,
    secrets: SecretsFingerprint,
    since: Instant,
    /// RPCs that wait for it are its receivers.
    progress: Arc<watch::Sender<Progress>>,
    superseded: CancellationToken,
}

#[derive(Debug, Clone)]
enum Progress {
    /// A call is in flight.
    Asked,
    /// The cloud works on it.
    Waiting {
        /// What is waited for.
        message: String,
        /// When the next call is made.
        next: Instant,
    },
    Ended(Result<Done, Trouble>),
    /// Another operation replaced it, or it was not requested any more.
    GivenUp,
}

impl Progress {
    fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::GivenUp)
    }
}

/// An operation for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What is done: `attach volume vol-1 to node-1`.
    pub work: String,
    /// About what.
    pub subject: Subject,
    /// For how long.
    pub age: Duration,
    /// What the cloud is waited for.
    pub waits_for: Option<String>,
    /// Time until the next call; none while one is in flight.
    pub next: Option<Duration>,
    /// RPCs that wait for it.
    pub waiting: usize,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The cloud's answer.
    Trouble(Trouble),
    /// Another operation on the same volume is under way: this one.
    Busy(String),
    /// Time is up. What the cloud is waited for.
    Deadline(String),
}

impl Operations {
    pub(crate) fn over(steps: Steps) -> Self {
        Self(Arc::new(Shared {
            steps,
            running: Mutex::default(),
            failures: Mutex::default(),
            unread: Mutex::default(),
        }))
    }

    pub(crate) fn steps(&self) -> &Steps {
        &self.0.steps
    }

    /// Does this, or waits for the operation that does it already, at most until the deadline.
    ///
    /// # Errors
    ///
    /// See [`Refused`].
    pub async fn run(&self, request: impl Into<Request>, deadline: Instant) -> Result<Done, Refused> {
        let mut progress = self.join(request.into())?;
        // Whether it is over or time is up shows in the progress itself.
        let _ = timeout_at(deadline, progress.wait_for(Progress::is_over)).await;
        match &*progress.borrow() {
            Progress::Ended(result) => result.clone().map_err(Refused::Trouble),
            Progress::GivenUp => Err(Refused::Busy("another one that took its place".to_owned())),
            Progress::Waiting { message, .. } => Err(Refused::Deadline(message.clone())),
            Progress::Asked => Err(Refused::Deadline("the cloud has not answered yet".to_owned())),
        }
    }

    /// All that are under way, the oldest first.
    pub fn all(&self) -> Vec<Operation> {
        let mut all: Vec<Operation> = self.0.running.lock().iter().map(described).collect();
        all.sort_by(|one, other| other.age.cmp(&one.age).then_with(|| one.subject.cmp(&other.subject)));
        all
    }

    /// The last failure of each volume and snapshot, the latest first, unless an operation on it has succeeded since.
    pub fn failures(&self) -> Vec<FailedOperation> {
        self.0.failures.lock().all(Instant::now())
    }

    /// How many are under way.
    pub fn count(&self) -> usize {
        self.0.running.lock().len()
    }

    fn join(&self, Request { work, secrets }: Request) -> Result<watch::Receiver<Progress>, Refused> {
        let (subject, fingerprint) = (work.subject(), secrets.fingerprint());
        let mut running = self.0.running.lock();
        let previous = match running.get(&subject) {
            Some(same) if *same.work == work && same.secrets == fingerprint => return Ok(same.progress.subscribe()),
            Some(other) if other.waiting() > 0 => {
                let differs = if *other.work == work {
                    ", with other secrets"
                } else {
                    ""
                };
                return Err(Refused::Busy(format!("{}{differs}", other.work)));
            }
            Some(forsaken) => Some(forsaken.clone()),
            None if running.len() >= MOST => {
                let error = Failure::Unavailable(format!("{MOST} operations are under way").into()).into();
                let in_flight = false;
                return Err(Refused::Trouble(Trouble { error, in_flight }));
            }
            None => None,
        };
        if let Some(trouble) = self.0.unread.lock().take(&subject, &work, fingerprint, Instant::now()) {
            return Err(Refused::Trouble(trouble));
        }
        let (send, progress) = watch::channel(Progress::Asked);
        let this = Running {
            work: Arc::new(work),
            secrets: fingerprint,
            since: Instant::now(),
            progress: Arc::new(send),
            superseded: CancellationToken::new(),
        };
        running.insert(subject.clone(), this.clone());
        drop(tokio::spawn(self.clone().go(subject, this, secrets, previous)));
        Ok(progress)
    }

    async fn go(self, subject: Subject, this: Running, secrets: VolumeSecrets, previous: Option<Running>) {
        if let Some(previous) = previous {
            previous.superseded.cancel();
            // No RPC waits for it, but its call may still be in flight. An error would mean that it is gone.
            let _ = previous.progress.subscribe().wait_for(Progress::is_over).await;
        }
        // While it waited a third one may have taken its place.
        let end = if this.superseded.is_cancelled() {
            Progress::GivenUp
        } else {
            self.until_done(&this, &secrets).await
        };
        match &end {
            Progress::Ended(Err(trouble)) => self.0.failures.lock().note(&this.work, &trouble.error, Instant::now()),
            Progress::Ended(Ok(_)) => self.0.failures.lock().forget(&subject),
            Progress::Asked | Progress::Waiting { .. } | Progress::GivenUp => {}
        }
        let mut running = self.0.running.lock();
        if running
            .get(&subject)
            .is_some_and(|entry| Arc::ptr_eq(&entry.work, &this.work))
        {
            running.remove(&subject);
            if let Progress::Ended(Err(trouble)) = &end
                && this.waiting() == 0
            {
                let mut unread = self.0.unread.lock();
                unread.keep(&this.work, this.secrets, trouble, Instant::now());
            }
        }
        drop(running);
        this.progress.send_replace(end);
    }

    /// Calls until the answer is not pending any more, or the operation is abandoned.
    async fn until_done(&self, this: &Running, secrets: &VolumeSecrets) -> Progress {
        let mut token: Option<String> = None;
        let mut waited_for = Instant::now();
        loop {
            let asked = self.0.steps.perform(&this.work, secrets, token.as_deref()).await;
            let (after, next, message) = match asked {
                Err(CloudError::Failure(Failure::Pending { after, token, message })) => (after, token, message),
                Err(error) => {
                    let in_flight = token.is_some();
                    return Progress::Ended(Err(Trouble { error, in_flight }));
                }
                Ok(done) => return Progress::Ended(Ok(done)),
            };
            token = Some(next);
            if this.waiting() > 0 {
                waited_for = Instant::now();
            } else if waited_for.elapsed() > FORSAKEN {
                return Progress::GivenUp;
            }
            let next = Instant::now() + after;
            this.progress.send_replace(Progress::Waiting { message, next });
            tokio::select! {
                () = this.superseded.cancelled() => return Progress::GivenUp,
                () = sleep(after) => {}
            }
        }
    }
}

impl Running {
    /// RPCs that wait.
    fn waiting(&self) -> usize {
        self.progress.receiver_count()
    }
}

fn described((subject, running): (&Subject, &Running)) -> Operation {
    let (waits_for, next) = match &*running.progress.borrow() {
        Progress::Waiting { message, next } => (
            Some(message.clone()),
            Some(next.saturating_duration_since(Instant::now())),
        ),
        Progress::Asked | Progress::Ended(_) | Progress::GivenUp => (None, None),
    };
    Operation {
        work: running.work.to_string(),
        subject: subject.clone(),
        age: running.since.elapsed(),
        waits_for,
        next,
        waiting: running.waiting(),
    }
}

#[cfg(test)]
mod tests;
