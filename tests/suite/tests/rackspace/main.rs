//! The provider `rackspace` as an operator runs it: the real kube-apiserver, mimic (Rackspace's own simulator of its cloud), and the binary with the
//! built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_days;
mod calls;
mod nodes;
mod scene;
