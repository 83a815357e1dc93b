//! Options of the provider host on this system.

use std::fs;
use std::path::PathBuf;

use cloudwit_host::{Compiler, CompilerLimits, HostOptions};

/// The container's memory limit, where it has one (cgroup v2).
const MEMORY_LIMIT: &str = "/sys/fs/cgroup/memory.max";

/// The host's options, with this folder for compiled code.
pub fn on_this_system(cache_dir: Option<PathBuf>) -> HostOptions {
    let limits = within(fs::read_to_string(MEMORY_LIMIT).ok().as_deref());
    HostOptions {
        cache_dir,
        compiler: Compiler::Apart(limits),
        ..HostOptions::default()
    }
}

/// The memory limit of this process's container, in bytes, where it has one.
pub fn container_memory() -> Option<u64> {
    fs::read_to_string(MEMORY_LIMIT).ok()?.trim().parse().ok()
}

/// The limits in a container of so much memory (`max` where there is no limit): compiling takes at most three quarters of it, since Kubernetes
/// lets the kernel end all processes of a container together when its memory is used up.
fn within(memory_max: Option<&str>) -> CompilerLimits {
    let limits = CompilerLimits::default();
    let share = memory_max
        .and_then(|text| text.trim().parse::<u64>().ok())
        .map(|most| most / 4 * 3);
    CompilerLimits {
        memory_bytes: share.map_or(limits.memory_bytes, |share| share.min(limits.memory_bytes)),
        most_memory_bytes: share.unwrap_or(limits.most_memory_bytes),
        ..limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_takes_at_most_three_quarters_of_memory() {
        let most = CompilerLimits::default().memory_bytes;
        for (memory_max, bytes) in [
            (None, most),
            (Some("max\n"), most),
            (Some("134217728\n"), 96 << 20),
            (Some("99999999999\n"), most),
        ] {
            assert_eq!(within(memory_max).memory_bytes, bytes, "{memory_max:?}");
        }
    }
}
