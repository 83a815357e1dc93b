//! Things by id: as many as possible in one call, although AWS refuses the whole call for one unknown id.
//!
//! AWS names such ids in its refusal. They are set aside, with that as the answer for them, and the others are requested again. If the
//! refusal names none of the requested ids, they are halved until it is clear which one is meant.

use crate::api::error::AwsError;

/// Ids that a call was refused for, each with the refusal.
pub(crate) type Refused<'i> = Vec<(&'i str, AwsError)>;

/// Requests all of these. `codes` are the error codes of AWS for an id that is malformed or does not exist.
///
/// # Errors
/// What prevents every look-up.
pub(crate) fn ask_by_ids<'i>(
    ids: &[&'i str],
    codes: &[&str],
    ask: &mut dyn FnMut(&[&'i str]) -> Result<(), AwsError>,
    refused: &mut Refused<'i>,
) -> Result<(), AwsError> {
    if ids.is_empty() {
        return Ok(());
    }
    let error = match ask(ids) {
        Ok(()) => return Ok(()),
        Err(error) if error.is(codes) => error,
        Err(error) => return Err(error),
    };
    let words: Vec<&str> = error
        .message
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .collect();
    let (named, rest): (Vec<&str>, Vec<&str>) = ids.iter().copied().partition(|id| words.contains(id));
    let meant = if ids.len() == 1 { ids } else { &named };
    for id in meant {
        refused.push((id, error.clone()));
    }
    match ids {
        [_] => Ok(()),
        _ if !named.is_empty() => ask_by_ids(&rest, codes, ask, refused),
        several => {
            let (left, right) = several.split_at(several.len() / 2);
            ask_by_ids(left, codes, ask, refused)?;
            ask_by_ids(right, codes, ask, refused)
        }
    }
}

/// Whether the id has the form of all of AWS's: a prefix such as `i-`, and 8 or 17 hexadecimal digits.
pub(crate) fn is_plain(prefix: &str, id: &str) -> bool {
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
