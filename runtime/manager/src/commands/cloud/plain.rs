//! Texts that shells, systemd and the kubelet's flags take as they are.

use anyhow::bail;

/// Whether nothing in the text means anything to a shell or to systemd, quoted or not: letters, digits and what provider ids have besides.
fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|sign| sign.is_alphanumeric() || "-._:/@%+=,~".contains(sign))
}

/// The text, if it is plain.
///
/// # Errors
/// When something in it means something to a shell, with the formats that can have it.
pub fn plain<'a>(what: &str, text: &'a str) -> anyhow::Result<&'a str> {
    if is_plain(text) {
        return Ok(text);
    }
    bail!(
        "{what} is {text:?}, in which something means something to a shell or to systemd; it is not written into flags or an environment: use --output=json or \
         --output=kubelet-config"
    )
}

/// Whether it can be the value of a label (`k8s.io/apimachinery/pkg/util/validation`, `IsValidLabelValue`), and not an empty one.
pub fn is_label_value(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().last()];
    text.len() <= 63
        && ends
            .iter()
            .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_of_all_clouds_are_plain() {
        for id in [
            "aws:///us-east-1a/i-0123456789abcdef0",
            "azure:///subscriptions/0/resourceGroups/my_rg/providers/Microsoft.Compute/virtualMachineScaleSets/x/virtualMachines/0",
            "gce://my-proj/us-central1-b/node-1",
            "openstack:///a3b9c2d4-0000-4000-8000-000000000001",
            "sim://vm-1",
        ] {
            assert!(plain("it", id).is_ok(), "{id}");
        }
    }

    #[test]
    fn what_a_shell_reads_is_refused() {
        for bad in [
            "a b", "a'b", "a\"b", "a$b", "a`b`", "a\\b", "a;b", "a*", "a\nb", "a&b", "a|b", "a#b", "$(x)", "a>b",
            "a\tb",
        ] {
            assert!(plain("it", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn label_values_are_those_of_kubernetes() {
        assert!(is_label_value("us-east-1a") && is_label_value("A_b.c"));
        for bad in ["", "-a", "a-", "a/b", "a b", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad:?}");
        }
    }
}
