//! Tracing spans of the controllers, one for each piece of work.
//!
//! Each is around the calls of the cloud and the writes it leads to.
//!
//! Work on one object has the object's key. Work on many at once (a look-up that Nodes share, a pass of the lifecycle controller) has their
//! number instead, and the calls below it; the work on each of them then points to it with a link, since a span has one parent only. What the
//! spans say is listed in docs/reference/tracing.md. Log lines carry the same words.

use tracing::Span;
use tracing::field::Empty;

use crate::options::Controller;
use crate::queue::Outcome;
use cloudwit_model::Retry;

/// Work of a controller on the object with this key.
pub(crate) fn on_object(controller: Controller, key: &str) -> Span {
    tracing::info_span!(parent: None, "reconcile", controller = controller.name(), object = key, result = Empty)
}

/// A part of a controller's current work that is about one object.
pub(crate) fn part_on_object(controller: Controller, key: &str) -> Span {
    tracing::info_span!(
        "reconcile",
        controller = controller.name(),
        object = key,
        result = Empty
    )
}

/// Work of a controller on so many objects at once.
pub(crate) fn on_many(controller: Controller, objects: usize) -> Span {
    tracing::info_span!(parent: None, "reconcile", controller = controller.name(), objects, result = Empty)
}

/// Says how the work ended.
pub(crate) fn ended(span: &Span, well: bool) {
    span.record("result", if well { "done" } else { "failed" });
}

/// How work ended, as a closed set.
pub(crate) fn result(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Retry(Retry::After(_)) => "later",
        Outcome::Retry(Retry::Never) => "given_up",
        Outcome::Retry(Retry::Soon | Retry::Backoff | Retry::Slowly) => "failed",
    }
}
