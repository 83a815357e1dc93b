//! Things by id: as many as possible in one call, although one id that AWS does not know makes it refuse the whole call.
//!
//! AWS names such ids in its refusal. They are set aside, with that as the answer for them, and the others are asked for again. Should the
//! refusal name none of ours, the ids are halved until it is clear which one is meant.

use crate::api::error::AwsError;

/// Ids that a call was refused for, each with the refusal.
pub(crate) type Refused<'i> = Vec<(&'i str, AwsError)>;

/// Asks for all of these. `codes` are those by which AWS says that an id is wrong, or nobody's.
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

/// Whether the id looks like all of AWS's: a prefix such as `i-`, and 8 or 17 hexadecimal digits.
pub(crate) fn is_plain(prefix: &str, id: &str) -> bool {
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
