//! Signatures: HMAC-SHA1 of the parameters in order, in lower case, under the user's secret key (CloudStack's developer guide, "Signing API Requests").

use cloudwit_guest_sdk::keys::{Hash, Key};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use data_encoding::BASE64;

/// The value of the parameter `signature` for these.
///
/// # Errors
/// `denied` when the key is not granted for this.
pub fn signature(key: &Key, parameters: &[(String, String)]) -> Result<String, Failure> {
    let mac = key.hmac(Hash::Sha1, signed_text(parameters).as_bytes())?;
    Ok(BASE64.encode(&mac))
}

/// What is signed.
fn signed_text(parameters: &[(String, String)]) -> String {
    let mut pairs: Vec<(String, String)> = parameters
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), encode(value).to_lowercase()))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// As Java's `URLEncoder` does, with `%20` for a blank: `*` is not escaped.
fn encode(value: &str) -> String {
    percent_encode(value).replace("%2A", "*")
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    /// Of CloudStack's developer guide.
    const SECRET: &str = "VDaACYb0LV9eNjTetIOElcVQkvJck_J_QljX_FcHRj87ZKiy0z0ty0ZsYBkoXkY9b7eq1EhwJaw7FF3akA3KBQ";
    const KEY: &str = "plgWJfZK4gyS3mOMTVmjUVg-X-jlWlnfaUJ9GAbBbf9EdM-kAYMmAiLqzzq1ElZLYq_u38zCm0bewzGUdP66mg";

    fn signed(parameters: &[(&str, &str)]) -> String {
        let host = FakeHost::new();
        host.secret("secret-key", SECRET);
        let key = host.context().keys().open("secret-key").unwrap();
        let owned = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        signature(&key, &owned.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_published_example_has_its_published_signature() {
        let request = [("apikey", KEY), ("command", "listUsers"), ("response", "json")];
        assert_eq!(signed(&request), "TTpdDq/7j/J58XCRHomKoQXEQds=");
        let unordered = [("response", "json"), ("command", "listUsers"), ("apiKey", KEY)];
        assert_eq!(signed(&unordered), "TTpdDq/7j/J58XCRHomKoQXEQds=");
    }

    /// Computed by the client `cs` 5.2.0.
    #[test]
    fn blanks_slashes_and_stars_are_signed_as_cs_does() {
        let request = [
            ("apiKey", "K"),
            ("command", "listVirtualMachines"),
            ("name", "node 1/a*b~c"),
            ("response", "json"),
        ];
        assert_eq!(signed(&request), "EhlQLouNVtvxWzb18qzgfGY5I4Q=");
    }
}
