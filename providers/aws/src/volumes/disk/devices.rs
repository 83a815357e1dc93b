//! Names of devices, one for each volume of an instance.
//!
//! EC2 requires a name with each attachment, and never the same for two volumes of an instance. On Nitro the machine calls the device otherwise; its serial
//! names the volume.

/// `/dev/xvd` and two letters, from `aa` to `dx`: what EC2 takes (upstream's `devicemanager/device_names.go`). The names of root devices are none of them, nor those
/// of images, so they distinguish a Pod's volume from the machine's own.
const PREFIX: &str = "/dev/xvd";

/// The last name.
const LAST: [u8; 2] = *b"dx";

/// The names, in order.
fn names() -> impl Iterator<Item = String> {
    let pairs = (b'a'..=LAST[0]).flat_map(|first| (b'a'..=b'z').map(move |second| [first, second]));
    let pairs = pairs.take_while(|pair| *pair <= LAST);
    pairs.map(|[first, second]| format!("{PREFIX}{}{}", char::from(first), char::from(second)))
}

/// The first name that is not in use.
pub(crate) fn free_name(used: &[String]) -> Option<String> {
    names().find(|name| !used.contains(name))
}

/// Whether a volume with this name was attached for a Pod: by Cloudwit, by upstream's driver, or by the in-tree plugin.
pub(crate) fn is_of_a_pod(name: &str) -> bool {
    let letters = name.strip_prefix(PREFIX).unwrap_or_default().as_bytes();
    letters.len() == 2 && letters.iter().all(u8::is_ascii_lowercase) && *letters <= LAST[..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_in_order_until_there_are_none() {
        assert_eq!(free_name(&[]).as_deref(), Some("/dev/xvdaa"));
        let mut used = vec!["/dev/xvda".to_owned(), "/dev/xvdaa".to_owned(), "/dev/xvdac".to_owned()];
        assert_eq!(free_name(&used).as_deref(), Some("/dev/xvdab"));
        while let Some(name) = free_name(&used) {
            assert!(is_of_a_pod(&name), "{name}");
            used.push(name);
        }
        assert_eq!((names().count(), names().last().as_deref()), (102, Some("/dev/xvddx")));
    }

    #[test]
    fn machines_own_devices_are_told_from_those_of_pods() {
        for own in [
            "/dev/xvda",
            "/dev/sda1",
            "/dev/sdf",
            "/dev/xvddy",
            "/dev/xvdAA",
            "/dev/xvdaaa",
            "",
        ] {
            assert!(!is_of_a_pod(own), "{own}");
        }
        assert!(is_of_a_pod("/dev/xvdba"), "the in-tree plugin's");
    }
}
