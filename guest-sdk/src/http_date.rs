//! HTTP dates (RFC 9110, 5.6.7), as far as `Retry-After` needs them: the one format that senders may still write,
//! `Sun, 06 Nov 1994 08:49:37 GMT`.

/// Seconds from the answer's `Date`, else from `now` (seconds since 1970), until this date. 0 when it is past, none when it is no date.
pub(crate) fn seconds_until(date: &str, sent: Option<&str>, now: u64) -> Option<u64> {
    let from = sent.and_then(parse).unwrap_or(now);
    parse(date).map(|until| until.saturating_sub(from))
}

/// Seconds since 1970.
pub(crate) fn parse(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, rest) = date.trim_ascii().split_once(',')?;
    let rest = rest.trim_ascii_start().strip_suffix(" GMT")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1970..=9999).contains(&year) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    in_range.then(|| ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
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

    #[test]
    fn known_dates_are_read() {
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(parse("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "soon",
            "Sun, 06 Nov 1994",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_past_date_means_now() {
        assert_eq!(seconds_until("Thu, 01 Jan 1970 00:00:05 GMT", None, 9), Some(0));
    }
}
