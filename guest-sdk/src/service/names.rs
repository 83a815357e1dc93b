//! Names shared by several upstream providers. They MUST NOT change: adoption depends on them.

/// Longest value of a label (apimachinery `validation.LabelValueMaxLength`).
const LABEL_VALUE: usize = 63;

/// The name of a load balancer: `a` and the Service's uid without dashes, at most 32 characters (kubernetes/cloud-provider
/// `cloud.go`, `DefaultLoadBalancerName`).
///
/// ```
/// # use cloudwit_guest_sdk::names::default_load_balancer_name;
/// assert_eq!(default_load_balancer_name("1bf6e8a3-6f0a-4d3e-9a3c-000000000001"), "a1bf6e8a36f0a4d3e9a3c00000000000");
/// ```
pub fn default_load_balancer_name(uid: &str) -> String {
    let mut name = String::with_capacity(32);
    name.push('a');
    name.extend(uid.chars().filter(|c| *c != '-').take(31));
    name
}

/// The text as the value of a label: each run of characters that no label may have becomes one dash, and the value begins and ends
/// with a letter or digit and has at most 63 characters.
///
/// ```
/// # use cloudwit_guest_sdk::names::label_value;
/// assert_eq!(label_value("zone 1 (north)"), "zone-1-north");
/// ```
pub fn label_value(text: &str) -> String {
    let mut value = String::with_capacity(text.len().min(LABEL_VALUE));
    let mut gap = false;
    for c in text.chars() {
        if !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            value.push('-');
        }
        value.push(c);
    }
    let edge = |c: char| !c.is_ascii_alphanumeric();
    let start = value.trim_start_matches(edge);
    let short = start.get(..LABEL_VALUE).unwrap_or(start);
    short.trim_end_matches(edge).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_value_is_always_one_that_the_api_server_takes() {
        let long = "x".repeat(62);
        for (text, value) in [
            ("nova", "nova"),
            ("", ""),
            ("...", ""),
            ("_a.b-c_", "a.b-c"),
            ("eu west/1", "eu-west-1"),
            ("\u{e9}t\u{e9}", "t"),
            ("a \u{2603} \u{2603} b", "a-b"),
            (&"y".repeat(70), &"y".repeat(63)),
            // Cut where a dash would be the last character.
            (&format!("{long}-yy"), &long),
            (&format!("--{long}zyy"), &format!("{long}z")),
        ] {
            assert_eq!(label_value(text), value, "{text}");
        }
    }

    #[test]
    fn a_short_uid_gives_a_short_name() {
        assert_eq!(default_load_balancer_name("1-2"), "a12");
    }
}
