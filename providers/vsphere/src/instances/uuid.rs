//! Ids of machines, and the two orders in which their bytes are written.
//!
//! vSphere writes a BIOS id as its bytes stand. What a Linux kernel reads from the same bytes has the first three groups reversed, since
//! SMBIOS 2.6 defines these as numbers with the low byte first; which of the two a Node carries depends on kernel and virtual hardware.

use std::fmt;

/// A UUID in lower case with dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uuid(String);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Uuid {
    /// Reads one with or without dashes, in whatever case; none when it is none, or the one of noughts that some hardware has.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text
            .trim()
            .chars()
            .filter(|c| *c != '-')
            .collect::<String>()
            .to_ascii_lowercase();
        let real = digits.len() == 32
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            && digits.bytes().any(|byte| byte != b'0');
        if !real {
            return None;
        }
        let group = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
        let groups = [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)];
        Some(Self(groups.join("-")))
    }

    /// The same with the bytes of the first three groups reversed.
    pub fn swapped(&self) -> Self {
        let mut groups = self.0.split('-').enumerate().map(|(index, group)| match index {
            0..3 => reversed(group),
            _ => group.into(),
        });
        let mut swapped = groups.next().unwrap_or_default();
        for group in groups {
            swapped.push('-');
            swapped.push_str(&group);
        }
        Self(swapped)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn reversed(group: &str) -> String {
    let starts = (0..group.len()).step_by(2).rev();
    starts.filter_map(|at| group.get(at..at + 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's example (`ConvertK8sUUIDtoNormal`).
    #[test]
    fn the_first_three_groups_are_reversed_and_the_others_are_not() {
        let kernel = Uuid::parse("56492e42-22ad-3911-6d72-59cc8f26bc90").unwrap();
        let vsphere = Uuid::parse("422e4956-ad22-1139-6d72-59cc8f26bc90").unwrap();
        assert_eq!(kernel.swapped(), vsphere);
        assert_eq!(vsphere.swapped(), kernel);
    }

    #[test]
    fn case_and_dashes_do_not_count_and_what_is_none_is_none() {
        let same = Uuid::parse("422E4956AD2211396D7259CC8F26BC90").unwrap();
        assert_eq!(same.as_str(), "422e4956-ad22-1139-6d72-59cc8f26bc90");
        for none in [
            "",
            "vm-12",
            "00000000-0000-0000-0000-000000000000",
            "422e4956-ad22-1139-6d72-59cc8f26bc9",
            "ä",
        ] {
            assert_eq!(Uuid::parse(none), None, "{none}");
        }
    }
}
