//! The addresses a machine was given by its metadata for cloud-init (`guestinfo.metadata`): those come first among the ones it has.

use std::net::IpAddr;

use cloudwit_guest_sdk::yaml;
use data_encoding::BASE64_NOPAD;
use serde_json::Value;

/// The static addresses in their order; none when there is no metadata, or when it is not in Base64 (upstream then reads none either).
///
/// # Errors
/// A message, when the metadata cannot be read: taking another address first would change the Node's.
pub fn configured_addresses(metadata: Option<&str>, encoding: Option<&str>) -> Result<Vec<IpAddr>, String> {
    let (Some(metadata), Some("base64")) = (metadata, encoding) else {
        return Ok(Vec::new());
    };
    let text = decoded(metadata)?;
    let tree = parsed(&text)?;
    let network = match tree.get("network.encoding").and_then(Value::as_str) {
        None | Some("") => return Ok(tree.get("network").map(addresses).unwrap_or_default()),
        Some("base64" | "b64") => tree.get("network").and_then(Value::as_str).unwrap_or_default(),
        Some(other) => {
            return Err(format!(
                "guestinfo.metadata: the network's encoding {other} is not known here"
            ));
        }
    };
    Ok(addresses(&parsed(&decoded(network)?)?))
}

fn decoded(text: &str) -> Result<String, String> {
    // With or without padding, in one line or several.
    let letters = text.trim().trim_end_matches('=').replace(['\r', '\n'], "");
    let bytes = BASE64_NOPAD
        .decode(letters.as_bytes())
        .map_err(|_| "guestinfo.metadata is no Base64")?;
    String::from_utf8(bytes).map_err(|_| "guestinfo.metadata is no text".into())
}

fn parsed(text: &str) -> Result<Value, String> {
    yaml::parse(text).map_err(|problem| format!("guestinfo.metadata: {}", problem.message))
}

/// `ethernets.*.addresses`, without the lengths of their networks.
fn addresses(network: &Value) -> Vec<IpAddr> {
    let Some(Value::Object(cards)) = network.get("ethernets") else {
        return Vec::new();
    };
    let lists = cards.iter().filter_map(|(_, card)| card.get("addresses"));
    let texts = lists.flat_map(|list| match list {
        Value::Array(items) => items.as_slice(),
        _ => &[],
    });
    let ip = |text: &str| text.split('/').next().and_then(|ip| ip.parse::<IpAddr>().ok());
    texts
        .filter_map(Value::as_str)
        .filter_map(ip)
        .map(|ip| ip.to_canonical())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(yaml: &str) -> Result<Vec<String>, String> {
        let encoded = data_encoding::BASE64.encode(yaml.as_bytes());
        configured_addresses(Some(&encoded), Some("base64"))
            .map(|addresses| addresses.iter().map(ToString::to_string).collect())
    }

    /// As Cluster API's provider for vSphere writes it.
    const CAPV: &str = "instance-id: \"node-1\"\nlocal-hostname: \"node-1\"\nwait-on-network:\n  ipv4: true\nnetwork:\n  version: 2\n  \
        ethernets:\n    id0:\n      match:\n        macaddress: \"00:50:56:aa:bb:cc\"\n      set-name: \"eth0\"\n      wakeonlan: true\n      \
        addresses:\n      - \"10.0.0.7/24\"\n      - \"fd00::7/64\"\n      gateway4: \"10.0.0.1\"\n    id1:\n      addresses: [10.1.0.7/16]\n";

    #[test]
    fn addresses_are_reported_in_their_order_without_networks() {
        assert_eq!(of(CAPV).unwrap(), ["10.0.0.7", "fd00::7", "10.1.0.7"]);
    }

    #[test]
    fn a_network_of_its_own_encoding_is_read_too() {
        let inner = data_encoding::BASE64.encode(b"version: 2\nethernets:\n  eth0:\n    addresses: [192.0.2.4/24]\n");
        for encoding in ["base64", "b64"] {
            assert_eq!(
                of(&format!("network: {inner}\nnetwork.encoding: {encoding}\n")).unwrap(),
                ["192.0.2.4"]
            );
        }
    }

    #[test]
    fn missing_metadata_is_none_and_unreadable_is_reported() {
        for (metadata, encoding) in [
            (None, None),
            (Some("x"), None),
            (Some("x"), Some("gzip+base64")),
            (None, Some("base64")),
        ] {
            assert_eq!(configured_addresses(metadata, encoding), Ok(vec![]));
        }
        assert_eq!(of("local-hostname: a\n").unwrap(), [""; 0]);
        assert!(
            configured_addresses(Some("%%"), Some("base64"))
                .unwrap_err()
                .contains("no Base64")
        );
        assert!(of("network: [").unwrap_err().starts_with("guestinfo.metadata: "));
    }
}
