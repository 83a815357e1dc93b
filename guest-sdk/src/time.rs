//! Times as clouds write them; within a provider a time is seconds since 1970.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// `20150830T123600Z`, for `x-amz-date`. Its first eight characters are the date.
///
/// ```
/// assert_eq!(cloudwit_guest_sdk::time::amz_date(1_440_938_160), "20150830T123600Z");
/// ```
pub fn amz_date(unix: u64) -> String {
    rfc3339(unix).replace(['-', ':'], "")
}

/// `2015-08-30T12:36:00Z` (RFC 3339).
///
/// ```
/// # use cloudwit_guest_sdk::time::{parse_rfc3339, rfc3339};
/// assert_eq!(rfc3339(1_440_938_160), "2015-08-30T12:36:00Z");
/// assert_eq!(parse_rfc3339("2015-08-30T14:36:00.000000+02:00"), Some(1_440_938_160));
/// ```
pub fn rfc3339(unix: u64) -> String {
    let time = i64::try_from(unix)
        .ok()
        .and_then(|unix| Timestamp::from_second(unix).ok());
    time.unwrap_or(Timestamp::MAX).to_string()
}

/// Reads an RFC 3339 time; parts of a second are dropped, a time without an offset is UTC (OpenStack writes such ones). None when it is no time, or one
/// before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let utc = |text: &str| text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    let time = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => utc(text)?.timestamp(),
    };
    u64::try_from(time.as_second()).ok()
}

/// Whole seconds of a duration as Go and cloud configs write it: `5s`, `1m30s`, and a plain number of seconds. None when it is no duration, or less
/// than a second.
///
/// ```
/// # use cloudwit_guest_sdk::time::parse_duration;
/// assert_eq!(parse_duration("1m30s"), Some(90));
/// ```
pub fn parse_duration(text: &str) -> Option<i64> {
    let mut total = 0_i64;
    let mut rest = text.trim_ascii();
    if rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return rest.parse().ok().filter(|seconds| *seconds > 0);
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = rest.split_at(digits);
        let number: i64 = number.parse().ok()?;
        let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = unit.split_at(letters);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        rest = behind;
        total = total.checked_add(number.checked_mul(milliseconds)?)?;
    }
    Some(total / 1_000).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_many_kinds_are_read() {
        for (text, unix) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2015-08-30T12:36:00Z", 1_440_938_160),
            ("2024-02-29T23:59:59.999999Z", 1_709_251_199),
            ("2024-02-29t23:59:59z", 1_709_251_199),
            ("2024-03-01 00:00:00", 1_709_251_200),
            ("2024-03-01T00:00:00.000000", 1_709_251_200),
            ("2024-03-01T05:30:00+05:30", 1_709_251_200),
            ("2024-02-29T16:00:00.5-08:00", 1_709_251_200),
        ] {
            assert_eq!(parse_rfc3339(text), Some(unix), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "soon",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:00X",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [("5s", 5), ("1m30s", 90), ("1h", 3600), ("2500ms", 2), ("7", 7)] {
            assert_eq!(parse_duration(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "s",
            "5x",
            "0s",
            "-1s",
            "10ms",
            "99999999999999999999s",
            "9223372036854775807h",
        ] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }
}
