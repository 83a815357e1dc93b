//! Diff of desired and observed state: what to create, change and delete.

/// The differences, in the order of desired and observed state.
#[derive(Debug, PartialEq, Eq)]
pub struct Diff<'a, W, S> {
    /// Desired and missing.
    pub create: Vec<&'a W>,
    /// Observed, but not as desired.
    pub change: Vec<(&'a W, &'a S)>,
    /// Observed and not desired.
    pub delete: Vec<&'a S>,
}

/// Compares desired with observed state. `key` returns whether two are the same object, `same` whether it is as desired.
///
/// Where the cloud shows one thing twice, both stay: deleting one of them could delete the other.
///
/// ```
/// use cloudwit_guest_sdk::reconcile::diff;
///
/// let wanted = [(80, "tcp"), (443, "tls")];
/// let seen = [("l-1", 443, "tcp"), ("l-2", 22, "tcp")];
/// let diff = diff(&wanted, &seen, |wanted, seen| wanted.0 == seen.1, |wanted, seen| wanted.1 == seen.2);
/// assert_eq!(diff.create, [&(80, "tcp")]);
/// assert_eq!(diff.change, [(&(443, "tls"), &("l-1", 443, "tcp"))]);
/// assert_eq!(diff.delete, [&("l-2", 22, "tcp")]);
/// ```
pub fn diff<'a, W, S>(
    wanted: &'a [W],
    seen: &'a [S],
    key: impl Fn(&W, &S) -> bool,
    same: impl Fn(&W, &S) -> bool,
) -> Diff<'a, W, S> {
    let (mut create, mut change) = (Vec::new(), Vec::new());
    for one in wanted {
        match seen.iter().find(|there| key(one, there)) {
            None => create.push(one),
            Some(there) if !same(one, there) => change.push((one, there)),
            Some(_) => {}
        }
    }
    let unwanted = |there: &&S| !wanted.iter().any(|one| key(one, there));
    Diff {
        create,
        change,
        delete: seen.iter().filter(unwanted).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_the_cloud_shows_twice_stay() {
        let diff = diff(
            &[1],
            &[(1, 'a'), (1, 'b'), (2, 'c')],
            |one, there| *one == there.0,
            |_, _| true,
        );
        assert_eq!(
            (diff.create.len(), diff.change.len(), diff.delete),
            (0, 0, vec![&(2, 'c')])
        );
    }

    #[test]
    fn first_of_two_is_changed() {
        let diff = diff(
            &[1],
            &[(1, 'a'), (1, 'b')],
            |one, there| *one == there.0,
            |_, there| there.1 == 'b',
        );
        assert_eq!(diff.change, [(&1, &(1, 'a'))]);
    }
}
