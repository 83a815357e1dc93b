//! HTTP dates (RFC 9110, 5.6.7) in all three forms that a recipient must accept, for `Retry-After` and `Date`.
//!
//! `Sun, 06 Nov 1994 08:49:37 GMT` is the one that senders may still write, `Sunday, 06-Nov-94 08:49:37 GMT` (RFC 850) and
//! `Sun Nov  6 08:49:37 1994` (C's `asctime`) are the obsolete ones.

use crate::time::days_in;

/// Seconds from the answer's `Date`, else from `now` (seconds since 1970), until this date. 0 when it is past, none when it is no date.
pub(crate) fn seconds_until(date: &str, sent: Option<&str>, now: u64) -> Option<u64> {
    let from = sent.and_then(|sent| parse(sent, now)).unwrap_or(now);
    parse(date, now).map(|until| until.saturating_sub(from))
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Seconds since 1970. `now` decides the century of a year with two digits.
pub(crate) fn parse(date: &str, now: u64) -> Option<u64> {
    let date = date.trim_ascii();
    let Some((_, rest)) = date.split_once(',') else {
        // asctime: the day of the month is padded by a blank.
        let mut words = date.split_ascii_whitespace().skip(1);
        let (month, day, clock, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
        return words
            .next()
            .is_none()
            .then(|| seconds(year.parse().ok()?, month, day, clock))?;
    };
    let rest = rest.trim_ascii_start().strip_suffix(" GMT")?;
    let (day, clock) = rest.rsplit_once(' ')?;
    let mut parts = day.split(['-', ' ']);
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let number: u64 = year.parse().ok()?;
    let rfc850 = rest.contains('-');
    let year = match (rfc850, year.len()) {
        (true, 2) => century(number, now),
        (false, 4) => number,
        _ => return None,
    };
    parts.next().is_none().then(|| seconds(year, month, day, clock))?
}

/// The year that these two digits mean: one that is not more than 50 years ahead of `now` (RFC 9110, 5.6.7).
fn century(digits: u64, now: u64) -> u64 {
    let today = 1970 + now / 31_556_952; // seconds in a mean Gregorian year
    let year = today - today % 100 + digits;
    if year > today + 50 { year - 100 } else { year }
}

fn seconds(year: u64, month: &str, day: &str, clock: &str) -> Option<u64> {
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let day: u64 = day.parse().ok()?;
    let mut clock = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1970..=9999).contains(&year) && (1..=days_in(year, month)).contains(&day);
    let in_day = hour < 24 && minute < 60 && second < 61 && clock.next().is_none();
    (in_range && in_day).then(|| ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970-01-01 to this day of the Gregorian calendar. Years are counted from March, so that the leap day comes last.
pub(crate) fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days_before_month = (153 * month + 2) / 5;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + year / 4 - year / 100 + year / 400 + days_before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22.
    const NOW: u64 = 1_795_305_600;

    #[test]
    fn known_dates_are_read() {
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT", NOW), Some(0));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT", NOW), Some(784_111_777));
        assert_eq!(parse("Thu, 29 Feb 2024 23:59:59 GMT", NOW), Some(1_709_251_199));
        assert_eq!(parse("Fri, 01 Mar 2024 00:00:00 GMT", NOW), Some(1_709_251_200));
    }

    #[test]
    fn obsolete_forms_are_the_same_time() {
        for text in [
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            " Sun Nov 06 08:49:37 1994 ",
        ] {
            assert_eq!(parse(text, NOW), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds_until("Thu Jan  1 00:00:09 1970", None, 2), Some(7));
        let sent = Some("Sunday, 06-Nov-94 08:49:30 GMT");
        assert_eq!(seconds_until("Sun Nov  6 08:49:37 1994", sent, NOW), Some(7));
    }

    #[test]
    fn two_digit_year_is_at_most_50_years_ahead() {
        let year = |digits: u64| century(digits, NOW);
        assert_eq!(
            (year(26), year(27), year(76), year(77), year(99)),
            (2026, 2027, 2076, 1977, 1999)
        );
        assert_eq!(parse("Wednesday, 01-Jan-70 00:00:05 GMT", 9), Some(5));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "soon",
            "Sun, 06 Nov 1994",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 31 Feb 2024 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37",
            "Sunday, 06-Nov-94-1 08:49:37 GMT",
            "Sun Nov  6 08:49:37",
            "Sun Nov  6 08:49:37:01 1994",
            "Sun Nov  6 08:49:37 1994 GMT",
            "Sun Nov  6 08:49:37 99999999999999999999",
        ] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn a_past_date_means_now() {
        assert_eq!(seconds_until("Thu, 01 Jan 1970 00:00:05 GMT", None, 9), Some(0));
    }
}
