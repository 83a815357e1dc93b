//! The assertion that requests a token with a service account's key: a JSON Web Token, signed RS256 by the host.

pub(super) use cloudwit_guest_sdk::jwt::signed;
use serde_json::json;

/// How long an assertion is good, in seconds. Google takes an hour at most.
const LIFE: u64 = 3600;

/// What is asserted.
pub(super) struct Claims<'a> {
    /// The service account.
    pub issuer: &'a str,
    /// Id of its key.
    pub key_id: Option<&'a str>,
    /// What the token shall be good for.
    pub scope: &'a str,
    /// Who shall take it.
    pub audience: &'a str,
    /// Seconds since 1970.
    pub now: u64,
}

/// The text to sign.
pub(super) fn unsigned(claims: &Claims<'_>) -> String {
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = claims.key_id {
        header["kid"] = id.into();
    }
    let body = json!({
        "iss": claims.issuer, "scope": claims.scope, "aud": claims.audience, "iat": claims.now, "exp": claims.now + LIFE,
    });
    cloudwit_guest_sdk::jwt::unsigned(&header, &body)
}
