//! Lists over several pages, item by item.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::each_page;
use crate::types::Failure;
use crate::warn;

/// A page: its items as the cloud wrote them, and the token of the next page, where there is one.
pub type Page = (Vec<Value>, Option<String>);

/// All items of a list, which is called `what` in messages (`machines`); `page` gets the token of a page, none for the first.
///
/// ```
/// # use cloudwit_guest_sdk::{http::items::all, Failure};
/// # fn ask(_: Option<&str>) -> Result<(Vec<serde_json::Value>, Option<String>), Failure> { Ok((vec![1.into(), 2.into()], None)) }
/// let ports: Vec<u16> = all("ports", ask)?;
/// # assert_eq!(ports, [1, 2]);
/// # Ok::<(), Failure>(())
/// ```
///
/// # Errors
/// As [`paginate`](super::paginate); `other` when an item cannot be read, since it would count as one that does not exist.
pub fn all<T: DeserializeOwned>(
    what: &str,
    mut page: impl FnMut(Option<&str>) -> Result<Page, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    each_page::<Failure>(|token| {
        let (items, next) = page(token)?;
        for item in items {
            let odd = |mistake| Failure::other(format!("an item of the list {what} cannot be read: {mistake}"));
            all.push(serde_json::from_value(item).map_err(odd)?);
        }
        Ok(next)
    })?;
    Ok(all)
}

/// The same, one after the other: for lists in which one that cannot be read must cost no other. It is left out, and a line is logged.
///
/// # Errors
/// As [`paginate`](super::paginate).
pub fn each<T: DeserializeOwned>(
    what: &str,
    mut page: impl FnMut(Option<&str>) -> Result<Page, Failure>,
    mut each: impl FnMut(T),
) -> Result<(), Failure> {
    each_page::<Failure>(|token| {
        let (items, next) = page(token)?;
        for item in items {
            match serde_json::from_value(item) {
                Ok(item) => each(item),
                Err(mistake) => warn!(list = what, "left out of the list, it cannot be read: {mistake}"),
            }
        }
        Ok(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeHost;

    /// Two pages, the second of which has an item that is no number.
    fn page(token: Option<&str>) -> Result<Page, Failure> {
        Ok(match token {
            None => (vec![1.into(), 2.into()], Some("2".into())),
            Some(_) => (vec!["x".into(), 4.into()], None),
        })
    }

    #[test]
    fn item_that_cannot_be_read_fails_the_whole_list() {
        let failure = all::<u8>("ports", page).unwrap_err();
        assert_eq!(failure.kind, crate::types::FailureKind::Other);
        assert!(
            failure
                .message
                .starts_with("an item of the list ports cannot be read: ")
        );
        let first = |_: Option<&str>| Ok((vec![Value::from(7)], None));
        assert_eq!(all::<u8>("ports", first), Ok(vec![7]));
    }

    #[test]
    fn item_that_cannot_be_read_is_left_out_with_a_line() {
        let host = FakeHost::new();
        let mut seen = Vec::new();
        each("ports", page, |port: u8| seen.push(port)).unwrap();
        assert_eq!(seen, [1, 2, 4]);
        assert_eq!(host.logs().len(), 1);
        let down = |_: Option<&str>| Err(Failure::unavailable("down"));
        assert_eq!(each("ports", down, |_: u8| ()), Err(Failure::unavailable("down")));
    }
}
