//! Framing of an admission review: from an HTTP request to the object, from an answer to JSON.
//!
//! Pure. As upstream's (`cloud-provider app/webhooks.go`), which reads `admission.k8s.io/v1` only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The group and version of reviews.
const API_VERSION: &str = "admission.k8s.io/v1";
/// Their kind.
const KIND: &str = "AdmissionReview";

/// The status of an answer that forbids, as of the API server's own admission plugins.
const FORBIDDEN: u16 = 403;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<RawRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    resource: Resource,
    #[serde(default)]
    sub_resource: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

/// What kind of object a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Resource {
    /// API group, empty for the core one.
    #[serde(default)]
    pub group: String,
    /// Plural name, such as `persistentvolumes`.
    #[serde(default)]
    pub resource: String,
}

/// The request of the API server.
#[derive(Debug)]
pub struct Request<'a> {
    /// Goes back with the answer.
    pub uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// What kind of object.
    pub resource: Resource,
    /// Such as `status`; empty for the object itself.
    pub sub_resource: String,
    /// The object as JSON; none where there is none.
    pub object: Option<&'a RawValue>,
}

/// Why a request is none; answered with status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The header `Content-Type`.
    #[error("contentType={0:?}, expect application/json")]
    ContentType(String),
    /// No body.
    #[error("the body is empty")]
    Empty,
    /// No JSON, or of another shape.
    #[error("the body is not an AdmissionReview: {0}")]
    Json(String),
    /// JSON of something else.
    #[error("the body is apiVersion {api_version:?}, kind {kind:?}; expect {API_VERSION}, {KIND}")]
    Type {
        /// Of the body.
        api_version: String,
        /// Of the body.
        kind: String,
    },
    /// A review without `request`.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

/// Reads a review.
///
/// # Errors
/// What is wrong with it, in the order in which upstream looks.
pub fn parse<'a>(content_type: Option<&str>, body: &'a [u8]) -> Result<Request<'a>, BadRequest> {
    let content_type = content_type.unwrap_or_default();
    if content_type != "application/json" {
        return Err(BadRequest::ContentType(content_type.chars().take(64).collect()));
    }
    if body.is_empty() {
        return Err(BadRequest::Empty);
    }
    let review: Review<'a> = serde_json::from_slice(body).map_err(|error| BadRequest::Json(error.to_string()))?;
    if (review.api_version.as_str(), review.kind.as_str()) != (API_VERSION, KIND) {
        let cut = |text: String| text.chars().take(64).collect();
        return Err(BadRequest::Type {
            api_version: cut(review.api_version),
            kind: cut(review.kind),
        });
    }
    let request = review.request.ok_or(BadRequest::NoRequest)?;
    Ok(Request {
        uid: request.uid,
        operation: request.operation,
        resource: request.resource,
        sub_resource: request.sub_resource,
        object: request.object,
    })
}

/// What becomes of the object.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It is created, changed by this JSON patch; as it is when that is empty.
    Allowed(Vec<Value>),
    /// It is refused with this message.
    Forbidden(String),
}

/// The answer as the API server reads it.
pub fn response(uid: &str, answer: &Answer) -> Value {
    let mut response = match answer {
        Answer::Allowed(patch) if patch.is_empty() => json!({ "allowed": true }),
        Answer::Allowed(patch) => json!({
            "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(json!(patch).to_string()),
        }),
        Answer::Forbidden(message) => json!({
            "allowed": false,
            "status": { "status": "Failure", "reason": "Forbidden", "code": FORBIDDEN, "message": message },
        }),
    };
    response["uid"] = json!(uid);
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Option<&str> = Some("application/json");

    fn review(change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u-1", "operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "persistentvolumes"},
                "object": {"metadata": {"name": "a"}}, "dryRun": true,
            },
        });
        change(&mut review);
        review.to_string().into_bytes()
    }

    #[test]
    fn review_is_read() {
        let body = review(|_| ());
        let request = parse(JSON, &body).unwrap();
        assert_eq!((request.uid.as_str(), request.operation.as_str()), ("u-1", "CREATE"));
        assert_eq!(request.resource.resource, "persistentvolumes");
        assert_eq!(request.object.unwrap().get(), r#"{"metadata":{"name":"a"}}"#);
    }

    #[test]
    fn what_is_no_review_is_refused_by_what_is_wrong_with_it() {
        let good = review(|_| ());
        for content_type in [
            None,
            Some(""),
            Some("text/plain"),
            Some("application/json; charset=utf-8"),
        ] {
            let refused = parse(content_type, &good).unwrap_err();
            assert!(
                matches!(refused, BadRequest::ContentType(_)),
                "{content_type:?} {refused}"
            );
        }
        assert_eq!(parse(JSON, b"").unwrap_err(), BadRequest::Empty);
        for wrong in [&b"{"[..], b"[]", b"\xff", br#"{"request": 1}"#] {
            assert!(matches!(parse(JSON, wrong).unwrap_err(), BadRequest::Json(_)));
        }
        let beta = review(|review| review["apiVersion"] = json!("admission.k8s.io/v1beta1"));
        let other = review(|review| review["kind"] = json!("Pod"));
        for wrong in [&beta[..], &other, b"{}"] {
            assert!(matches!(parse(JSON, wrong).unwrap_err(), BadRequest::Type { .. }));
        }
        for wrong in [
            review(|review| review["request"] = Value::Null),
            review(|review| drop(review.as_object_mut().unwrap().remove("request"))),
        ] {
            assert_eq!(parse(JSON, &wrong).unwrap_err(), BadRequest::NoRequest);
        }
    }

    #[test]
    fn response_carries_uid_and_patch_only_on_change() {
        let unchanged = response("u-1", &Answer::Allowed(Vec::new()));
        assert_eq!(unchanged["response"], json!({"uid": "u-1", "allowed": true}));
        let patch = vec![json!({"op": "add", "path": "/a", "value": 1})];
        let changed = response("u-1", &Answer::Allowed(patch.clone()));
        let encoded = changed["response"]["patch"].as_str().unwrap();
        let decoded: Vec<Value> = serde_json::from_slice(&STANDARD.decode(encoded).unwrap()).unwrap();
        assert_eq!(
            (decoded, &changed["response"]["patchType"]),
            (patch, &json!("JSONPatch"))
        );
        let forbidden = response("u-1", &Answer::Forbidden("no disk".into()));
        assert_eq!(forbidden["response"]["allowed"], false);
        assert_eq!(forbidden["response"]["status"]["code"], 403);
        assert_eq!(forbidden["response"]["status"]["message"], "no disk");
    }
}
