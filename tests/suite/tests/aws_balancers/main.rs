//! Load balancers of the provider `aws`: the component that is shipped, in the real host, against moto, which checks every signature.
//!
//! | module | what it shows |
//! | ------ | ------------- |
//! | `life` | made, kept without a write, changed, deleted without a trace; how many calls that takes |
//! | `crashes` | the same when any of the requests fails, before or after its effect |
//! | `annotations` | what becomes of annotations that `life` does not change |
//! | `bad_days` | quotas, throttling, foreign things, edits and deletions by hand |
//! | `adoption` | what upstream's controller left behind stays as it is |
//! | `cluster` | the real process on a real API server |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adoption;
mod annotations;
mod bad_days;
mod cluster;
mod crashes;
mod life;
mod stand;
