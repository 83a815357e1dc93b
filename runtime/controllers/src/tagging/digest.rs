//! Digest of an operator's tags, as upstream writes it on Nodes.

use cloudwit_model::Tags;
use md5::{Digest as _, Md5};

/// Upstream's digest of tags, so that machines that its controller tagged are not tagged again (`getChecksumOfTags`): MD5 of `key=value`, sorted and joined by
/// commas, in hexadecimal.
pub fn digest(tags: &Tags) -> String {
    let mut pairs: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort_unstable();
    let digest = Md5::digest(pairs.join(","));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    /// Made by `printf 'a=1,b=2' | md5sum`.
    #[test]
    fn digest_is_upstreams() {
        assert_eq!(
            digest(&tags(&[("b", "2"), ("a", "1")])),
            "9dc867b7f2bf1e40160f90e46628512e"
        );
        // Upstream sorts `key=value`, not keys: a dash stands before the equals sign.
        assert_eq!(
            digest(&tags(&[("a", "1"), ("a-b", "2")])),
            "dc82128ad3a623f00d27a6a1d6c4a643"
        );
    }
}
