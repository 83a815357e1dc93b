//! Flags and headers of the manager.

use cloudwit::fuzzing::{GoDuration, ProxyHeaders, boolean, entries};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::texts;

/// Values of flags are read or refused; what is shown is read as the same again.
pub fn flag_values(data: &[u8]) {
    let (text, more) = texts(data);
    if let Ok(duration) = text.parse::<GoDuration>() {
        let shown = duration.to_string();
        let again: GoDuration = shown.parse().expect("what is shown can be read");
        // It is shown to the millisecond, or to the second from a minute on.
        assert!(
            duration.0.abs_diff(again.0).as_secs() <= 1,
            "{text} is shown as {shown}"
        );
    }
    assert_eq!(
        boolean(&text).is_ok(),
        [
            "1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"
        ]
        .contains(&text.as_str())
    );
    let kept = entries(&[text, more]);
    assert!(kept.iter().all(|entry| !entry.is_empty() && entry.trim() == entry));
}

/// A front proxy's headers are gone after they were read, and nothing else is; there is no user without a name.
pub fn proxy_headers(data: &[u8]) {
    let proxy = ProxyHeaders {
        allowed_names: Vec::new(),
        username: vec!["X-Remote-User".into()],
        group: vec!["X-Remote-Group".into()],
        uid: vec!["X-Remote-Uid".into()],
        extra_prefix: vec!["X-Remote-Extra-".into()],
    };
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let [name, value] = [(); 2].map(|()| parts.next().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let before = headers.clone();
    let user = proxy.take(&mut headers);
    assert!(user.is_none_or(|user| !user.name.is_empty()));
    let is_proxys = |name: &HeaderName| {
        name.as_str().starts_with("x-remote-extra-")
            || ["x-remote-user", "x-remote-group", "x-remote-uid"].contains(&name.as_str())
    };
    assert!(headers.keys().all(|name| !is_proxys(name)), "{headers:?}");
    let others = before.iter().filter(|(name, _)| !is_proxys(name)).count();
    assert_eq!(headers.len(), others, "{before:?}");
}
