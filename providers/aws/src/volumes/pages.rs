//! Lists in pages of any size: volumes and snapshots of the cluster.
//!
//! EC2 gives no page of fewer than five things. So a page of ours may be a part of one of EC2's, and the token of the next one records which: how many things to
//! skip, how many were requested, and EC2's own token.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::Call;
use crate::api::error::AwsError;
use crate::tags::ec2_tags;
use crate::volumes::disk::{Disk, DiskState};

/// Smallest and largest page of EC2 (`DescribeVolumes`, `DescribeSnapshots`).
const SIZES: (u32, u32) = (5, 500);

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    /// Things of EC2's page to skip.
    skip: usize,
    /// Size of EC2's page.
    size: u32,
    /// EC2's token; empty for its first page.
    token: String,
}

impl Cursor {
    /// The first page.
    fn first(limit: u32) -> Self {
        Self {
            skip: 0,
            size: limit.clamp(SIZES.0, SIZES.1),
            token: String::new(),
        }
    }

    /// Reads what an earlier page gave.
    ///
    /// # Errors
    /// `aborted` for a foreign one.
    fn read(text: &str) -> Result<Self, Failure> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let (skip, size, token) = (parts.next()?, parts.next()?, parts.next()?);
            let size = size.parse().ok().filter(|size| (SIZES.0..=SIZES.1).contains(size))?;
            Some(Self {
                skip: skip.parse().ok()?,
                size,
                token: token.into(),
            })
        };
        read().ok_or_else(|| Failure::aborted("the list goes on nowhere: the token is none of this provider's"))
    }

    fn text(&self) -> String {
        format!("{}.{}.{}", self.skip, self.size, self.token)
    }

    /// The part of EC2's page that is ours, and where the next one begins.
    fn cut<T>(self, mut items: Vec<T>, limit: u32, next: &str) -> (Vec<T>, Option<String>) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let end = self.skip.saturating_add(limit);
        let after = match (items.len() > end, next) {
            (true, _) => Some(Self {
                skip: end,
                ..self.clone()
            }),
            (false, "") => None,
            (false, next) => Some(Self {
                skip: 0,
                token: next.into(),
                ..self.clone()
            }),
        };
        items.truncate(end);
        let ours = items.split_off(self.skip.min(items.len()));
        (ours, after.map(|cursor| cursor.text()))
    }
}

impl Aws {
    /// A page of what this call lists. What cannot be read is left out, with a line in the log.
    ///
    /// # Errors
    /// `aborted` for a token that is not good any more; the error of AWS.
    pub(super) fn page<T>(
        &self,
        call: Call<'_>,
        list: &str,
        (after, limit): (Option<&str>, u32),
        read: &dyn Fn(&Element) -> Result<Option<T>, Failure>,
    ) -> Result<(Vec<T>, Option<String>), Failure> {
        let cursor = match after {
            None => Cursor::first(limit),
            Some(after) => Cursor::read(after)?,
        };
        let token = Some(cursor.token.as_str()).filter(|token| !token.is_empty());
        let call = call.field("MaxResults", cursor.size).field_opt("NextToken", token);
        let answer = call.send().map_err(|error| stale(error, token.is_some()))?;
        let next = crate::api::reading::text(&answer, "nextToken");
        let items: Vec<&Element> = answer.all(&[list, "item"]).collect();
        let (items, next) = cursor.cut(items, limit, &next);
        let mut found = Vec::new();
        for item in items {
            match read(item) {
                Ok(one) => found.extend(one),
                Err(failure) => warn!(reason = failure.message, "left out of a list"),
            }
        }
        Ok((found, next))
    }

    /// The filter for what carries the cluster's tag.
    pub(super) fn only_ours<'a>(&self, call: Call<'a>) -> Call<'a> {
        call.filter("tag-key", self.cluster.keys())
    }
}

/// EC2's tokens expire after a while; the list begins again then.
fn stale(error: AwsError, has_token: bool) -> Failure {
    let is_stale = has_token && error.is(&["InvalidNextToken", "InvalidPaginationToken", "InvalidParameterValue"]);
    let failure = Failure::from(error);
    match is_stale {
        true => Failure::new(FailureKind::Aborted, failure.message),
        false => failure,
    }
}

impl VolumeListing for Aws {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let call = self.only_ours(self.api.ec2("DescribeVolumes"));
        let read = |item: &Element| {
            let disk = Disk::read(item)?;
            let is_there = !matches!(disk.state, DiskState::Gone | DiskState::Failed);
            Ok((is_there && self.cluster.marks(&ec2_tags(item))).then(|| disk.volume(&disk.id)))
        };
        let (volumes, next) = self.page(call, "volumeSet", (after, limit), &read)?;
        Ok(VolumePage { volumes, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages of a list of so many things in pages of EC2, as ours of so many.
    fn pages(sizes: &[usize], limit: u32) -> Vec<Vec<usize>> {
        let (mut pages, mut cursor) = (Vec::new(), Cursor::first(limit));
        loop {
            let at: usize = cursor.token.parse().unwrap_or_default();
            let begin: usize = sizes[..at].iter().sum();
            let next = if at + 1 < sizes.len() {
                (at + 1).to_string()
            } else {
                String::new()
            };
            let (page, after) = cursor.cut((begin..begin + sizes[at]).collect(), limit, &next);
            pages.push(page);
            match after {
                Some(after) => cursor = Cursor::read(&after).unwrap(),
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_of_any_size_have_everything_once_and_in_order() {
        for (sizes, limit, expected) in [
            (&[0][..], 1, &[0][..]),
            (&[3], 1, &[1, 1, 1]),
            (&[5, 2], 2, &[2, 2, 1, 2]),
            (&[5, 5, 1], 5, &[5, 5, 1]),
            (&[7], 1000, &[7]),
            (&[2], 2, &[2]),
        ] {
            let pages = pages(sizes, limit);
            let lengths: Vec<usize> = pages.iter().map(Vec::len).collect();
            assert_eq!(lengths, expected, "{sizes:?} {limit}");
            let all: Vec<usize> = pages.concat();
            assert_eq!(all, (0..sizes.iter().sum()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn tokens_of_others_are_aborted() {
        for text in ["", "x", "1.5", "x.5.t", "0.4.t", "0.501.t", "-1.5.t"] {
            assert_eq!(Cursor::read(text).unwrap_err().kind, FailureKind::Aborted, "{text}");
        }
        let cursor = Cursor::read("2.5.a.b/c==").unwrap();
        assert_eq!((cursor.skip, cursor.token.as_str()), (2, "a.b/c=="));
    }
}
