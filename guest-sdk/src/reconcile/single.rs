//! Things of which a cloud may have several, and one is meant.

use crate::types::Failure;

/// The one that was found, if any. `what` is what they are: `load balancers of the name web`.
///
/// ```
/// use cloudwit_guest_sdk::reconcile::single;
///
/// assert_eq!(single(vec!["lb-1"], "load balancers", |id| id), Ok(Some("lb-1")));
/// let failure = single(vec!["lb-1", "lb-2"], "load balancers", |id| id).unwrap_err();
/// assert_eq!(failure.message(), "there are several load balancers: lb-1, lb-2; delete all but one");
/// ```
///
/// # Errors
/// `conflict` with the ids of all, where there are several: a guess would change the wrong one.
pub fn single<T>(mut found: Vec<T>, what: &str, id: impl Fn(&T) -> &str) -> Result<Option<T>, Failure> {
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().map(id).collect();
        let ids = ids.join(", ");
        return Err(Failure::conflict(format!(
            "there are several {what}: {ids}; delete all but one"
        )));
    }
    Ok(found.pop())
}
