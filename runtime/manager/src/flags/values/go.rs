//! Flag values as Go's flag library reads them, with errors that name the fix.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Go's `strconv.ParseBool`.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false; write =true or =false")),
    }
}

/// A whole number in this range.
pub fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let (least, most) = (range.start(), range.end());
        let read = text.parse().ok().filter(|number| range.contains(number));
        read.ok_or_else(|| format!("{text:?} cannot be used; give a whole number from {least} to {most}"))
    }
}

/// A number.
pub fn decimal(text: &str) -> Result<f32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a valid number; write for example 20 or 0.5"))
}

/// An IP address.
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an IP address; write for example 127.0.0.1, 0.0.0.0 or ::"))
}

/// A URL.
pub fn url(text: &str) -> Result<http::Uri, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a valid URL; write for example https://10.0.0.1:6443"))
}

/// A list without its empty entries: `--flag=` clears the default, as upstream's empty value does.
pub fn entries(list: &[String]) -> Vec<String> {
    list.iter()
        .map(|entry| entry.trim().to_owned())
        .filter(|entry| !entry.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(boolean(text), Ok(true));
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(boolean(text), Ok(false));
        }
        assert!(
            boolean("yes")
                .unwrap_err()
                .contains("\"yes\" is neither true nor false")
        );
    }

    #[test]
    fn an_empty_value_clears_a_list() {
        assert!(entries(&[String::new()]).is_empty());
        assert_eq!(entries(&["/healthz ".into(), String::new()]), ["/healthz"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_boolean_or_a_mistake(text in "\\PC{0,300}") {
            let read = boolean(&text);
            let known = ["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"];
            proptest::prop_assert_eq!(read.is_ok(), known.contains(&text.as_str()));
        }

        #[test]
        fn entries_are_never_empty_nor_more(list in proptest::collection::vec("[ a,]{0,4}", 0..40)) {
            let left = entries(&list);
            proptest::prop_assert!(left.len() <= list.len());
            proptest::prop_assert!(left.iter().all(|entry| !entry.is_empty() && entry.trim() == entry));
        }
    }
}
