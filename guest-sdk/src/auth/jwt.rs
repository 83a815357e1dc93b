//! JSON Web Tokens that are exchanged for access tokens, signed by the host.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::keys::{Key, Signature};
use crate::types::Failure;

/// The text that is signed: header and claims.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    format!("{}.{}", encode(header), encode(claims))
}

/// The whole token.
pub fn signed(unsigned: &str, signature: &[u8]) -> String {
    format!("{unsigned}.{}", BASE64URL_NOPAD.encode(signature))
}

/// A token with these claims and no further header, signed RS256.
///
/// # Errors
/// `denied` when the key may not sign.
pub fn rs256(key: &Key, claims: &Value) -> Result<String, Failure> {
    let unsigned = unsigned(&json!({ "alg": "RS256", "typ": "JWT" }), claims);
    let signature = key.sign(Signature::RsaPkcs1Sha256, unsigned.as_bytes())?;
    Ok(signed(&unsigned, &signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515, appendix A.2: its signing input and the beginning of its signature.
    #[test]
    fn a_token_is_put_together_as_in_the_published_example() {
        let input = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UifQ";
        assert_eq!(unsigned(&json!({ "alg": "RS256" }), &json!({ "iss": "joe" })), input);
        let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7";
        let bytes = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
        assert_eq!(signed(input, &bytes), format!("{input}.{signature}"));
    }
}
