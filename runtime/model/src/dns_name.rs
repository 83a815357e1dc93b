//! Which texts are names: of Nodes, hosts and search domains.

/// The most bytes of a name without its last dot (RFC 1035, 2.3.4).
pub const MAX_NAME: usize = 253;

/// The most bytes of a label (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

/// Whether a Node can be called so: a DNS subdomain (`k8s.io/apimachinery/pkg/util/validation`, `IsDNS1123Subdomain`).
pub fn is_node_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().last()];
        ends.iter().all(|end| end.is_some_and(inner)) && label.bytes().all(|byte| inner(byte) || byte == b'-')
    };
    text.len() <= MAX_NAME && text.split('.').all(label)
}

/// Whether it can be a host or a search domain: labels of letters, digits, `-` and `_`, with or without the last dot; the root is one too.
pub fn is_domain(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().last()];
        label.len() <= MAX_LABEL
            && ends.iter().all(|end| end.is_some_and(inner))
            && label.bytes().all(|byte| inner(byte) || byte == b'-')
    };
    if text == "." {
        return true;
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    name.len() <= MAX_NAME && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names_are_those_of_kubernetes() {
        for good in ["a", "node-1", "ip-10-0-0-1.ec2.internal", &"a".repeat(253), "0.0"] {
            assert!(is_node_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            "-a",
            "a-",
            "A",
            "a_b",
            "a..b",
            "ä",
            "a b",
            "a\n",
            &"a".repeat(254),
        ] {
            assert!(!is_node_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn domains_are_those_of_rfc_1035_and_underscores() {
        for good in [".", "a", "a.", "Example.COM", "_tcp.example.com.", &"a".repeat(63)] {
            assert!(is_domain(good), "{good}");
        }
        let long = vec!["a".repeat(63); 4].join(".");
        for bad in [
            "",
            "..",
            ".a",
            "a..b",
            "-a",
            "a-",
            "a b",
            "a;b",
            "a\noptions debug",
            "ä",
            &"a".repeat(64),
            &long,
        ] {
            assert!(!is_domain(bad), "{bad:?}");
        }
    }
}
