//! Signatures of `bce-auth-v1` (Baidu AI Cloud, "Authentication mechanism").
//!
//! ```text
//!   bce-auth-v1/ACCESS KEY/TIME/SECONDS                     -> HMAC by the secret key, as hexadecimal text -> signing key
//!   method, path, query, headers, each encoded and sorted   -> HMAC by the signing key                     -> signature
//! ```

use cloudwit_guest_sdk::keys::{Derivation, Hash, Key};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use data_encoding::HEXLOWER;

/// How long a signature is good for, in seconds: what Baidu's SDKs take.
const SECONDS: u64 = 1800;

/// A request as far as it is signed.
#[derive(Debug)]
pub struct Signable<'a> {
    /// Method.
    pub method: &'a str,
    /// Path, encoded already.
    pub path: &'a str,
    /// Names and values, not encoded yet.
    pub query: &'a [(String, String)],
    /// Headers with names in small letters, in any order; `host` among them.
    pub headers: &'a [(&'a str, &'a str)],
}

impl Signable<'_> {
    /// The value of the header `authorization`. `time` is that of the request, such as `2015-04-27T08:23:49Z`.
    ///
    /// # Errors
    /// `denied` when the key is not granted for this.
    pub fn authorization(&self, access_key: &str, key: &Key, time: &str) -> Result<String, Failure> {
        let prefix = format!("bce-auth-v1/{access_key}/{time}/{SECONDS}");
        let how = Derivation {
            prefix: Vec::new(),
            suffix: Vec::new(),
            as_hex: true,
        };
        let signing = key.derive_as(Hash::Sha256, prefix.as_bytes(), &how)?;
        let signature = signing.hmac(Hash::Sha256, self.canonical().as_bytes())?;
        let mut names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        Ok(format!("{prefix}/{}/{}", names.join(";"), HEXLOWER.encode(&signature)))
    }

    /// The request in the one form that both sides write alike.
    fn canonical(&self) -> String {
        let pair =
            |name: &str, sign: char, value: &str| format!("{}{sign}{}", percent_encode(name), percent_encode(value));
        let mut query: Vec<String> = self.query.iter().map(|(name, value)| pair(name, '=', value)).collect();
        query.sort_unstable();
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| pair(name, ':', value.trim_ascii()));
        let mut headers: Vec<String> = headers.collect();
        headers.sort_unstable();
        let parts = [self.method, self.path, &query.join("&"), &headers.join("\n")];
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    const TIME: &str = "2015-04-27T08:23:49Z";

    fn signed(query: &[(&str, &str)], headers: &[(&str, &str)]) -> String {
        let host = FakeHost::new();
        host.secret("secret-access-key", "b".repeat(32));
        let key = host.context().keys().open("secret-access-key").unwrap();
        let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let request = Signable {
            method: "PUT",
            path: "/v1/test/myfolder/readme.txt",
            query: &query.collect::<Vec<_>>(),
            headers,
        };
        request.authorization(&"a".repeat(32), &key, TIME).unwrap()
    }

    const HEADERS: [(&str, &str); 5] = [
        ("host", "bj.bcebos.com"),
        ("content-type", "text/plain"),
        ("content-length", "8"),
        ("content-md5", "NFzcPqhviddjRNnSOGo4rw=="),
        ("x-bce-date", TIME),
    ];

    /// The example of Baidu's documentation.
    #[test]
    fn published_example_has_its_published_signature() {
        let query = [("partNumber", "9"), ("uploadId", "a44cc9bab11cbd156984767aad637851")];
        let prefix = format!("bce-auth-v1/{}/{TIME}/1800", "a".repeat(32));
        let names = "content-length;content-md5;content-type;host;x-bce-date";
        let signature = "d74a04362e6a848f5b39b15421cb449427f419c95a480fd6b8cf9fc783e2999e";
        assert_eq!(signed(&query, &HEADERS), format!("{prefix}/{names}/{signature}"));
    }

    /// Computed by bce-python-sdk 0.9.79.
    #[test]
    fn order_and_odd_characters_are_signed_as_the_sdk_does() {
        let query = [("uploadId", "VXBsb2FkIElpZS5tMnRzIHVwbG9hZA"), ("partNumber", "9")];
        let signature = "6c25300846fab93223e5d0ce2cfe4ea16baec7c667ff22c630bf767a89995859";
        assert!(signed(&query, &HEADERS).ends_with(signature));
        let odd = [("batchdelete", ""), ("name", "CCE/SVC/a b~c*d\u{e9}")];
        let signature = "837fc1cb4dc4bf7e9ea3c5dd8894e50040488a66c4511df46958677dfb2d48f3";
        let headers = [("host", "127.0.0.1:8080"), ("x-bce-date", TIME)];
        assert!(
            signed(&odd, &headers).ends_with(signature),
            "{}",
            signed(&odd, &headers)
        );
    }
}
