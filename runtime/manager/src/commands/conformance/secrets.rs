//! Secrets: nothing that a provider writes contains one.

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

/// Looks at all that was written in the trials before.
pub fn run(trial: &Trial, report: &mut Report) {
    let mut promise = Promise::of("secrets", "no log line, failure or Event contains a secret");
    let mut texts = trial.redacted_texts();
    texts.dedup();
    for text in texts {
        promise.holds(false, || format!("the host took it out of {text:?}"));
    }
    report.add(promise);
}
