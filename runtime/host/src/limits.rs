//! Limits of one provider: memory, time, concurrency, output.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of a page of linear memory, in bytes.
const PAGE: u64 = 64 << 10;

/// Limits of one provider. Durations are written as `5s`, `500ms` or `1m 30s`, sizes as a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Limits {
    /// Size of the component, as a file and unpacked, in bytes. What compiling it may use follows from its size.
    #[schemars(range(min = PAGE, max = Self::MOST_COMPONENT_BYTES))]
    pub component_bytes: u64,
    /// Memory of one call, in bytes. A call that exceeds it ends.
    #[schemars(range(min = 16 * PAGE, max = 256 << 20))]
    pub memory_bytes: u64,
    /// CPU time of one call, 10ms to 10m. Waiting for the cloud does not count.
    #[serde(with = "duration_text")]
    #[schemars(with = "String", example = "500ms", extend("x-milliseconds" = [10, 600_000]))]
    pub cpu_time: Duration,
    /// Time of one call from the moment it runs, waiting included, 100ms to 1h. The wait for a free instance has the same bound.
    #[serde(with = "duration_text")]
    #[schemars(with = "String", example = "1m 30s", extend("x-milliseconds" = [100, 3_600_000]))]
    pub wall_time: Duration,
    /// Calls at the same time.
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: u32,
    /// Log text and output of one call, in bytes; the rest is dropped with one line that says so.
    #[schemars(range(min = 1024, max = 64 << 20))]
    pub output_bytes: u64,
    /// Size of one answer of the provider, and of what it gives to one function of the host, in bytes.
    #[schemars(range(min = PAGE, max = 1 << 30))]
    pub answer_bytes: u64,
    /// Events one call may send.
    #[schemars(range(min = 0, max = 10_000))]
    pub events: u32,
    /// Requests of one call in flight, until the response is read to its end or dropped. Further ones wait.
    #[schemars(range(min = 1, max = 1000))]
    pub requests_per_call: u32,
    /// Requests of all calls in flight.
    #[schemars(range(min = 1, max = 4000))]
    pub requests: u32,
    /// What the requests in flight of one call may hold in memory, in bytes: their bodies, and 512 KiB for each response. A request that does
    /// not fit waits.
    #[schemars(range(min = 2 << 20, max = 1 << 30))]
    pub buffered_bytes_per_call: u64,
    /// The same for all calls together, in bytes.
    #[schemars(range(min = 2 << 20, max = 1 << 30))]
    pub buffered_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            component_bytes: 32 << 20,
            memory_bytes: 64 << 20,
            cpu_time: Duration::from_secs(5),
            wall_time: Duration::from_secs(60),
            concurrency: 16,
            output_bytes: 64 << 10,
            answer_bytes: 16 << 20,
            events: 100,
            requests_per_call: 16,
            requests: 64,
            buffered_bytes_per_call: 8 << 20,
            buffered_bytes: 32 << 20,
        }
    }
}

impl Limits {
    /// The most that [`component_bytes`](Self::component_bytes) may be.
    pub const MOST_COMPONENT_BYTES: u64 = 256 << 20;

    /// Finds all values that make no sense, a sentence each. `max_memory_bytes` is
    /// [`HostOptions::max_memory_bytes`](crate::HostOptions).
    pub fn problems(&self, max_memory_bytes: usize) -> Vec<String> {
        let most = u64::try_from(max_memory_bytes).unwrap_or(u64::MAX);
        let mut problems = Vec::new();
        let mut range = |name: &str, value: u64, least: u64, most: u64, unit: &str| {
            if value < least || value > most {
                problems.push(format!(
                    "limits.{name}: {value}{unit} is out of range; give {least} to {most}{unit}"
                ));
            }
        };
        range(
            "componentBytes",
            self.component_bytes,
            PAGE,
            Self::MOST_COMPONENT_BYTES,
            "",
        );
        range("memoryBytes", self.memory_bytes, 16 * PAGE, most, "");
        range("cpuTime", millis(self.cpu_time), 10, 600_000, " ms");
        range("wallTime", millis(self.wall_time), 100, 3_600_000, " ms");
        range("concurrency", self.concurrency.into(), 1, 10_000, "");
        range("outputBytes", self.output_bytes, 1024, 64 << 20, "");
        range("answerBytes", self.answer_bytes, PAGE, 1 << 30, "");
        range("events", self.events.into(), 0, 10_000, "");
        range("requestsPerCall", self.requests_per_call.into(), 1, 1000, "");
        range("requests", self.requests.into(), 1, 4000, "");
        range(
            "bufferedBytesPerCall",
            self.buffered_bytes_per_call,
            2 << 20,
            1 << 30,
            "",
        );
        range("bufferedBytes", self.buffered_bytes, 2 << 20, 1 << 30, "");
        problems
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Durations as text.
mod duration_text {
    use std::time::Duration;

    use jiff::SignedDuration;
    use jiff::fmt::friendly::SpanPrinter;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        let duration = SignedDuration::try_from(*duration).map_err(S::Error::custom)?;
        serializer.collect_str(&SpanPrinter::new().duration_to_string(&duration))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<SignedDuration>()
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok())
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "{text:?} is not a valid duration; write for example \"5s\" or \"500ms\""
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 256 << 20;

    #[test]
    fn what_is_left_out_has_its_default_and_durations_are_text() {
        let limits: Limits =
            serde_saphyr::from_str("cpuTime: 500ms\nwallTime: 1m 30s\nmemoryBytes: 1048576\n").unwrap();
        assert_eq!(limits.cpu_time, Duration::from_millis(500));
        assert_eq!(limits.wall_time, Duration::from_secs(90));
        assert_eq!(limits.memory_bytes, 1 << 20);
        assert_eq!(limits.concurrency, Limits::default().concurrency);
        assert_eq!(limits.problems(MOST), Vec::<String>::new());
    }

    #[test]
    fn a_word_that_is_no_duration_is_named() {
        for text in ["soon", "-5s", "5"] {
            let error = serde_saphyr::from_str::<Limits>(&format!("cpuTime: {text}\n"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("{text:?} is not a valid duration")), "{error}");
        }
    }

    #[test]
    fn an_unknown_limit_is_refused() {
        assert!(serde_saphyr::from_str::<Limits>("memory: 1\n").is_err());
    }

    #[test]
    fn all_values_out_of_range_are_named_at_once() {
        let limits = Limits {
            memory_bytes: 1 << 40,
            cpu_time: Duration::ZERO,
            concurrency: 0,
            ..Limits::default()
        };
        let problems = limits.problems(MOST);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(
            problems[1],
            "limits.cpuTime: 0 ms is out of range; give 10 to 600000 ms"
        );
    }
}
