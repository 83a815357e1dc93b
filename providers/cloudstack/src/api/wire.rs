//! Values as CloudStack writes them: ids and ports are text or numbers, depending on its version and the command.

use serde::{Deserialize, Deserializer};

/// Text, whether it is written as text or as a number; empty for null.
///
/// # Errors
/// When it is neither.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(u64),
        Nothing(()),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
        Written::Nothing(()) => String::new(),
    })
}

/// A list with commas or blanks between, sorted; networks as [`cidr`](cloudwit_guest_sdk::cidr) shows them.
pub fn networks(list: &str) -> Vec<String> {
    let entries = list.split([',', ' ']).filter(|entry| !entry.is_empty());
    let shown = entries.map(|entry| match cloudwit_guest_sdk::cidr::parse(entry) {
        Ok(network) => network.to_string(),
        Err(_) => entry.to_owned(),
    });
    let mut networks: Vec<String> = shown.collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}
