//! Names of calls, unique over processes.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

/// When this process made its first call, in nanoseconds since 1970, and its id, which distinguish processes of one moment.
static PROCESS: LazyLock<(i128, u32)> = LazyLock::new(|| (Timestamp::now().as_nanosecond(), std::process::id()));

static CALLS: AtomicU64 = AtomicU64::new(1);

/// The name of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId(u64);

impl CallId {
    /// One that no other call has.
    pub fn new() -> Self {
        Self(CALLS.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (began, process) = *PROCESS;
        write!(f, "{began:x}-{process:x}-{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_differ_and_keep_the_contract() {
        let (one, other) = (CallId::new().to_string(), CallId::new().to_string());
        assert_ne!(one, other);
        assert!((1..=64).contains(&one.len()));
        assert!(one.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()), "{one}");
    }
}
