//! What a running process has used, for the tables of `cargo xtask bench`.

use std::fs;

/// Clock ticks a second in `/proc`; the same on every Linux that Rust supports.
const TICKS: f64 = 100.0;

/// What a process has used since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// CPU time of all its threads, and of processes that it started and that have ended, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Largest resident memory in bytes.
    pub peak_memory: u64,
    /// Resident memory now, in bytes.
    pub memory: u64,
}

/// Reads `/proc`; `None` when the process is gone or the system has no `/proc`.
pub fn usage(pid: u32) -> Option<Usage> {
    parse(
        &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
        &fs::read_to_string(format!("/proc/{pid}/status")).ok()?,
    )
}

fn parse(stat: &str, status: &str) -> Option<Usage> {
    // The second field is the name in parentheses, which may hold blanks. Fields 14 to 17 are user and system time, its own and those of children that
    // it has waited for.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    let ticks: u64 = ticks.sum::<Option<u64>>()?;
    let bytes = |key: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(Usage {
        cpu_seconds: ticks as f64 / TICKS,
        peak_memory: bytes("VmHWM:")?,
        memory: bytes("VmRSS:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_memory_are_read_past_a_name_with_blanks() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 25 5 20 0 1 0 1 1 1 1";
        let usage = parse(stat, "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n").unwrap();
        assert_eq!(
            usage,
            Usage {
                cpu_seconds: 2.3,
                peak_memory: 2_097_152,
                memory: 1_048_576,
            }
        );
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_usage() {
        assert_eq!(usage(u32::MAX), None);
    }
}
