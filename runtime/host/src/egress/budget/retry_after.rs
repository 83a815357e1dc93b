//! Pause set by an answer: `Retry-After` of 429 and 503 (RFC 9110, 10.2.3), seconds or HTTP date.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, StatusCode, header};
use httpdate::parse_http_date;

use crate::egress::budget::rate_limit::MAX_PAUSE;

/// The wait that is requested, at most [`MAX_PAUSE`]; none when none is, when it cannot be read, or when it is over already.
///
/// `now` only counts when the answer has no `Date` of its own: two times of the cloud's clock need no clock of ours to be right.
pub fn wait(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => {
            let until = parse_http_date(text).ok()?;
            let sent = headers.get(header::DATE).and_then(|sent| sent.to_str().ok());
            let from = sent.and_then(|sent| parse_http_date(sent).ok());
            until.duration_since(from.unwrap_or(now)).ok()?
        }
    };
    (!wait.is_zero()).then_some(wait.min(MAX_PAUSE))
}

/// The header to answer with: whole seconds, rounded up, at least one.
pub fn header(wait: Duration) -> (HeaderName, u64) {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    (header::RETRY_AFTER, seconds.max(1))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    /// A header's value, right or wrong.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "-?[0-9]{1,25}".prop_map(String::into_bytes),
            "(Sun|Mon), [0-9]{1,3} (Nov|Feb) -?[0-9]{1,6} [0-9]{1,3}:[0-9]{2}:[0-9]{2} (GMT|[+-][0-9]{1,5})"
                .prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #[test]
        fn wait_is_bounded_for_any_header(status in 400_u16..600, after in value(), date in value(), now: u32) {
            let (Ok(after), Ok(date)) = (HeaderValue::from_bytes(&after), HeaderValue::from_bytes(&date)) else {
                return Ok(());
            };
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, after), (header::DATE, date)]);
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now.into());
            if let Some(wait) = wait(StatusCode::from_u16(status).unwrap(), &headers, now) {
                prop_assert!(wait > Duration::ZERO && wait <= MAX_PAUSE);
            }
        }
    }

    fn asked(status: u16, headers: &[(HeaderName, &str)]) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect();
        let now = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        wait(StatusCode::from_u16(status).unwrap(), &headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_read_of_429_and_503_alone() {
        let after = |text| (header::RETRY_AFTER, text);
        for status in [429, 503] {
            assert_eq!(asked(status, &[after("7")]), Some(7));
            assert_eq!(asked(status, &[after("Sun, 06 Nov 1994 08:50:37 GMT")]), Some(60));
        }
        for status in [200, 301, 500, 502] {
            assert_eq!(asked(status, &[after("7")]), None);
        }
        for none in ["0", "-1", "soon", "", "1.5", "Sun, 06 Nov 1994 08:49:36 GMT"] {
            assert_eq!(asked(429, &[after(none)]), None, "{none}");
        }
        assert_eq!(asked(429, &[]), None);
    }

    /// RFC 9110, 5.6.7: recipients accept all three.
    #[test]
    fn all_three_forms_of_a_date_are_read() {
        for date in [
            "Sun, 06 Nov 1994 08:50:37 GMT",
            "Sunday, 06-Nov-94 08:50:37 GMT",
            "Sun Nov  6 08:50:37 1994",
        ] {
            assert_eq!(asked(429, &[(header::RETRY_AFTER, date)]), Some(60), "{date}");
            let sent = (header::DATE, date);
            let after = (header::RETRY_AFTER, "Sun, 06 Nov 1994 08:50:47 GMT");
            assert_eq!(asked(503, &[after, sent]), Some(10), "{date}");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_clouds_own_clock() {
        let headers = [
            (header::RETRY_AFTER, "Mon, 01 Jan 2001 00:00:10 GMT"),
            (header::DATE, "Mon, 01 Jan 2001 00:00:00 GMT"),
        ];
        assert_eq!(asked(503, &headers), Some(10));
    }

    #[test]
    fn what_is_answered_is_never_less_than_the_wait() {
        assert_eq!(header(Duration::from_millis(1)).1, 1);
        assert_eq!(header(Duration::from_millis(2001)).1, 3);
        assert_eq!(header(Duration::from_secs(2)).1, 2);
    }
}
