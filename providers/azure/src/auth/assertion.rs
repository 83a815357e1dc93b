//! The assertion that requests a token with a certificate: a JSON Web Token, signed RS256 by the host.

pub(super) use cloudwit_guest_sdk::jwt::signed;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use serde_json::json;

/// How long an assertion is good, in seconds, as in Microsoft's own libraries.
const LIFE: u64 = 600;

/// What is asserted.
pub(super) struct Claims<'a> {
    /// The application's id.
    pub client: &'a str,
    /// The endpoint that shall take it.
    pub audience: &'a str,
    /// Of the certificate, in hexadecimal.
    pub thumbprint: &'a str,
    /// A text that no other assertion has.
    pub id: &'a str,
    /// Seconds since 1970.
    pub now: u64,
}

/// The 20 bytes of a SHA-1 thumbprint, which operators write with colons and blanks.
pub(super) fn thumbprint(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|c| !matches!(c, ':' | ' ')).collect();
    let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
    (bytes.len() == 20).then_some(bytes)
}

/// The text to sign.
pub(super) fn unsigned(claims: &Claims<'_>) -> String {
    let thumbprint = thumbprint(claims.thumbprint).unwrap_or_default();
    let header = json!({ "alg": "RS256", "typ": "JWT", "x5t": BASE64URL_NOPAD.encode(&thumbprint) });
    let body = json!({
        "aud": claims.audience, "iss": claims.client, "sub": claims.client, "jti": claims.id,
        "nbf": claims.now, "iat": claims.now, "exp": claims.now + LIFE,
    });
    cloudwit_guest_sdk::jwt::unsigned(&header, &body)
}
