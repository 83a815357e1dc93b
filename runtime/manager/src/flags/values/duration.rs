//! Durations in Go's syntax: `10s`, `5m0s`, `1h30m`, `250ms`, `1.5h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration that a person typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

/// Seconds in each unit, the longer names first so that `ms` is not read as `m`.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        let wrong = || format!("{text:?} is not a valid duration; write for example 10s, 5m0s or 1h30m");
        let mut rest = text;
        let mut seconds = 0.0;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let (number, unit_and_more) = rest.split_at(digits);
            let number: f64 = number.parse().map_err(|_| wrong())?;
            let (unit, factor) = UNITS
                .into_iter()
                .find(|(unit, _)| unit_and_more.starts_with(unit))
                .ok_or_else(wrong)?;
            seconds += number * factor;
            rest = &unit_and_more[unit.len()..];
        }
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| wrong())
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60);
        match (hours, minutes, millis % 1000) {
            (0, 0, ms) if ms > 0 => write!(f, "{millis}ms"),
            (0, 0, _) => write!(f, "{seconds}s"),
            (0, m, _) => write!(f, "{m}m{seconds}s"),
            (h, m, _) => write!(f, "{h}h{m}m{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_upstream_reads() {
        for (text, millis) in [
            ("0", 0),
            ("10s", 10_000),
            ("5m0s", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1.5h", 5_400_000),
            ("1h0m0.5s", 3_600_500),
        ] {
            assert_eq!(text.parse(), Ok(GoDuration(Duration::from_millis(millis))), "{text}");
        }
    }

    #[test]
    fn rest_is_reported_with_its_mistakes() {
        for text in ["", "10", "s", "10 s", "-5s", "5x", "1..5s", "10s5"] {
            let error = text.parse::<GoDuration>().unwrap_err();
            assert!(error.contains("write for example 10s"), "{text}: {error}");
        }
    }

    #[test]
    fn prints_as_upstream_does() {
        for text in ["10s", "5m0s", "1h30m0s", "250ms", "0s"] {
            assert_eq!(text.parse::<GoDuration>().unwrap().to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_duration_or_a_mistake(text in "\\PC{0,300}") {
            let _ = text.parse::<GoDuration>();
        }

        #[test]
        fn numbers_and_units_never_panic(text in "([0-9.]{0,30}(ns|us|µs|ms|s|m|h|d| |-|)){0,30}") {
            if let Err(error) = text.parse::<GoDuration>() {
                proptest::prop_assert!(error.contains("write for example 10s"));
            }
        }

        #[test]
        fn what_is_printed_is_read_again(millis in 0_u64..10_000_000_000) {
            let written = GoDuration(Duration::from_millis(millis)).to_string();
            let read: GoDuration = written.parse().unwrap();
            let lost = Duration::from_millis(millis).abs_diff(read.0);
            proptest::prop_assert!(lost < Duration::from_secs(1), "{written}");
        }
    }
}
