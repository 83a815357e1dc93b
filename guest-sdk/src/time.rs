//! Times as clouds write them; within a provider a time is seconds since 1970.

use crate::http_date::days_since_1970;

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
    let (days, second) = (unix / 86_400, unix % 86_400);
    let (year, month, day) = date(days);
    let mut text = String::with_capacity(20);
    push(&mut text, year, 4);
    for (mark, part) in [
        ('-', month),
        ('-', day),
        ('T', second / 3_600),
        (':', second / 60 % 60),
        (':', second % 60),
    ] {
        text.push(mark);
        push(&mut text, part, 2);
    }
    text.push('Z');
    text
}

/// Reads an RFC 3339 time; parts of a second are dropped, a time without an offset is UTC (OpenStack writes such ones). None when it is no time, or one
/// before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes
            .get(from..to)
            .filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(
            digits
                .iter()
                .fold(0, |number, digit| number * 10 + u64::from(digit - b'0')),
        )
    };
    let marks = [(4, b"--"), (7, b"--"), (10, b"Tt"), (13, b"::"), (16, b"::")];
    if !marks.iter().all(|(at, allowed)| {
        bytes
            .get(*at)
            .is_some_and(|byte| allowed.contains(byte) || (*at == 10 && *byte == b' '))
    }) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = year >= 1970 && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let local = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let rest = text.get(19..)?;
    let rest = match rest.strip_prefix('.') {
        Some(parts) => parts.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    match rest {
        "" | "Z" | "z" => Some(local),
        _ => offset(rest).and_then(|(east, seconds)| {
            if east {
                local.checked_sub(seconds)
            } else {
                Some(local + seconds)
            }
        }),
    }
}

/// `+02:00`: whether east of Greenwich, and how many seconds.
fn offset(text: &str) -> Option<(bool, u64)> {
    let (east, clock) = match text.strip_prefix('+') {
        Some(clock) => (true, clock),
        None => (false, text.strip_prefix('-')?),
    };
    let (hours, minutes) = clock
        .split_once(':')
        .filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some((east, (hours * 60 + minutes) * 60))
}

fn push(text: &mut String, number: u64, digits: usize) {
    let number = number.to_string();
    text.extend(std::iter::repeat_n('0', digits.saturating_sub(number.len())));
    text.push_str(&number);
}

/// Days of this month.
pub(crate) fn days_in(year: u64, month: u64) -> u64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_since_1970(next_year, next, 1) - days_since_1970(year, month, 1)
}

/// Year, month and day of the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // At most one year too late, since no year has fewer days.
    let mut year = 1970 + days / 365;
    while days_since_1970(year, 1, 1) > days {
        year -= 1;
    }
    let mut month = 12;
    while days_since_1970(year, month, 1) > days {
        month -= 1;
    }
    (year, month, days - days_since_1970(year, month, 1) + 1)
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
            ("2016-12-31T23:59:60Z", 1_483_228_800),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(parse_rfc3339(text), Some(unix), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "soon",
            "2024-03-01",
            "2024-03-01T00:00",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-32T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:61Z",
            "2024-01-01T00:00:00X",
            "2024-01-01T00:00:00+5:00",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00+00:60",
            "2024-01-01T00:00:00+0000",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "+024-01-01T00:00:00Z",
            "2024-01-01T00:00:00.\u{e9}Z",
            "2024-01-01T00:00:0\u{e9}",
            "2024_01_01T00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_the_calendar_comes_back() {
        for day in 0..200 * 366 {
            let unix = day * 86_400 + day % 86_400;
            assert_eq!(parse_rfc3339(&rfc3339(unix)), Some(unix), "{}", rfc3339(unix));
        }
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(amz_date(1_440_938_160 + 86_399 - 45_360), "20150830T235959Z");
    }
}
