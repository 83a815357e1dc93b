//! Load balancers of the provider `aws`: the component that is shipped, in the real host, against moto, which checks every signature.
//!
//! | module | what it shows |
//! | ------ | ------------- |
//! | `life` | made, kept without a write, changed, deleted without a trace; how many calls that takes |
//! | `crashes` | the same when any of the requests fails, before or after its effect |
//! | `bad_days` | quotas, throttling, foreign things, edits and deletions by hand |
//! | `adoption` | what upstream's controller left behind stays as it is |
//! | `cluster` | the real process on a real API server |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "aws_balancers/adoption.rs"]
mod adoption;
#[path = "aws_balancers/bad_days.rs"]
mod bad_days;
#[path = "aws_balancers/cluster.rs"]
mod cluster;
#[path = "aws_balancers/crashes.rs"]
mod crashes;
#[path = "aws_balancers/life.rs"]
mod life;
#[path = "aws_balancers/stand.rs"]
mod stand;
