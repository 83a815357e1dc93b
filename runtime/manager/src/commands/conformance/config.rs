//! `info`: a provider describes itself and checks its configuration, whatever it is.

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

const PART: &str = "info";

/// Configurations that no provider was written for.
const ODD: [(&str, &str); 6] = [
    ("nothing", ""),
    ("a line end", "\n"),
    ("half of a JSON text", "{\"a\": ["),
    ("a list", "[1, 2, 3]"),
    ("another format", "<config><a>1</a></config>"),
    ("characters of all kinds", "\u{0}\u{7f}\u{fffd}\u{1f600} = : {} [] \"'"),
];

/// Tries them.
pub async fn run(trial: &Trial, report: &mut Report) {
    for (what, text) in ODD {
        let mut promise = Promise::of(PART, format!("describe and check end with {what} as configuration"));
        trial.faults.requests();
        if let Some(provider) = promise.answered(trial.configured(text).await) {
            promise.answered(provider.check().await);
        }
        let requests = trial.faults.requests();
        promise.holds(requests == 0, || {
            format!("{requests} requests were made; these functions make none")
        });
        report.add(promise);
    }
    let mut promise = Promise::of(PART, "probe reaches the cloud");
    promise.answered(trial.provider.probe().await);
    let requests = trial.faults.requests();
    promise.holds(requests > 0, || "it made no request".into());
    report.add(promise);
}
