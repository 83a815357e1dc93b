//! Signatures: ACS3-HMAC-SHA256 of a request, and HMAC-SHA1 of the parameters of an RPC call (Alibaba Cloud's API reference, "Request syntax and
//! signature method V3", "V2 RPC").

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::keys::{Derivation, Hash, Key, Keys};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use data_encoding::{BASE64, HEXLOWER};

/// What signs.
pub enum Secret<'a> {
    /// The host, with a secret that it keeps.
    Host(Key),
    /// A secret that the cloud gave for a while.
    Held(&'a str),
}

impl Secret<'_> {
    /// HMAC of the data under the secret with `suffix` behind it.
    fn hmac(&self, keys: Keys, hash: Hash, suffix: &str, data: &[u8]) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Host(key) => {
                let how = Derivation {
                    prefix: Vec::new(),
                    suffix: suffix.into(),
                    as_hex: false,
                };
                key.hmac_with(hash, data, &how)
            }
            Self::Held(secret) => Ok(keys.hmac(hash, format!("{secret}{suffix}").as_bytes(), data)),
        }
    }
}

/// Parameters in order, as a query.
pub fn query(parameters: &[(String, String)]) -> String {
    let mut parameters: Vec<&(String, String)> = parameters.iter().collect();
    parameters.sort();
    let form = parameters
        .iter()
        .fold(Form::new(), |form, (name, value)| form.field(name, value));
    form.encode()
}

/// SHA-256 as text.
pub fn hash_text(keys: Keys, data: &[u8]) -> String {
    HEXLOWER.encode(&keys.digest(Hash::Sha256, data))
}

/// The value of `Authorization` for a POST to `/`. `headers` are those that are signed, with small names; one is the hash of the body.
///
/// # Errors
/// `denied` when the key is not granted for this.
pub fn acs3(
    keys: Keys,
    secret: &Secret<'_>,
    key_id: &str,
    query: &str,
    mut headers: Vec<(&str, String)>,
) -> Result<String, Failure> {
    headers.sort_unstable();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let lines = headers.iter().map(|(name, value)| format!("{name}:{value}\n"));
    let (names, lines) = (names.join(";"), lines.collect::<String>());
    let body = headers.iter().find(|(name, _)| *name == "x-acs-content-sha256");
    let body = body.map_or("", |(_, hash)| hash);
    let request = format!("POST\n/\n{query}\n{lines}\n{names}\n{body}");
    let text = format!("ACS3-HMAC-SHA256\n{}", hash_text(keys, request.as_bytes()));
    let signature = HEXLOWER.encode(&secret.hmac(keys, Hash::Sha256, "", text.as_bytes())?);
    Ok(format!(
        "ACS3-HMAC-SHA256 Credential={key_id},SignedHeaders={names},Signature={signature}"
    ))
}

/// The value of the parameter `Signature`.
///
/// # Errors
/// `denied` when the key is not granted for this.
pub fn rpc(keys: Keys, secret: &Secret<'_>, method: &str, parameters: &[(String, String)]) -> Result<String, Failure> {
    let text = format!("{method}&%2F&{}", percent_encode(&query(parameters)));
    Ok(BASE64.encode(&secret.hmac(keys, Hash::Sha1, "&", text.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    fn owned(parameters: &[(&str, &str)]) -> Vec<(String, String)> {
        parameters
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    /// By the host, and by a secret that the provider holds.
    fn both(secret: &'static str, sign: impl Fn(Keys, &Secret<'_>) -> Result<String, Failure>, expected: &str) {
        let host = FakeHost::new();
        host.secret("s", secret);
        let keys = host.context().keys();
        let by_host = sign(keys, &Secret::Host(keys.open("s").unwrap())).unwrap();
        let by_us = sign(keys, &Secret::Held(secret)).unwrap();
        assert_eq!((by_host.as_str(), by_us.as_str()), (expected, expected));
    }

    /// Of the API reference, "Method to sign RPC requests".
    #[test]
    fn the_published_rpc_example_has_its_published_signature() {
        let parameters = owned(&[
            ("Timestamp", "2016-02-23T12:46:24Z"),
            ("Format", "XML"),
            ("AccessKeyId", "testid"),
            ("Action", "DescribeRegions"),
            ("SignatureMethod", "HMAC-SHA1"),
            ("SignatureNonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
            ("Version", "2014-05-26"),
            ("SignatureVersion", "1.0"),
        ]);
        both(
            "testsecret",
            |keys, secret| rpc(keys, secret, "GET", &parameters),
            "OLeaidS1JvxuMvnyHOwuJ+uX5qY=",
        );
    }

    /// Of the API reference, "Signature method V3".
    #[test]
    fn the_published_acs3_example_has_its_published_signature() {
        let query = query(&owned(&[
            ("RegionId", "cn-shanghai"),
            ("ImageId", "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"),
        ]));
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let headers = vec![
            ("host", "ecs.cn-shanghai.aliyuncs.com".to_owned()),
            ("x-acs-action", "RunInstances".to_owned()),
            ("x-acs-content-sha256", empty.to_owned()),
            ("x-acs-date", "2023-10-26T10:22:32Z".to_owned()),
            ("x-acs-signature-nonce", "3156853299f313e23d1673dc12e1703d".to_owned()),
            ("x-acs-version", "2014-05-26".to_owned()),
        ];
        let expected = "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;\
                        x-acs-signature-nonce;x-acs-version,Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0";
        both(
            "YourAccessKeySecret",
            |keys, secret| acs3(keys, secret, "YourAccessKeyId", &query, headers.clone()),
            expected,
        );
        let host = FakeHost::new();
        assert_eq!(hash_text(host.context().keys(), b""), empty);
    }

    #[test]
    fn a_long_secret_is_hashed_first() {
        let long: &'static str = Box::leak("x".repeat(65).into_boxed_str());
        // By Python's hmac.
        both(
            long,
            |keys, secret| rpc(keys, secret, "POST", &owned(&[("a", "b*~ ")])),
            "iaI0lG3CiensjuYE6O4SH0jVe0Y=",
        );
    }
}
