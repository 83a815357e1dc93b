//! What services of OpenStack's family have in common, in every cloud: their errors, and the pages of their lists.

use serde_json::Value;

use super::Response;

/// The error in a body that is no success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Complaint {
    /// The name of the envelope, or the type that is in it, such as `itemNotFound`; empty where there is none.
    pub kind: String,
    /// The service's own message.
    pub message: Option<String>,
}

/// Reads a complaint. Nova and Cinder: `{"itemNotFound": {"message": ...}}`; Neutron: `{"NeutronError": {"type": ..., "message": ...}}`; Octavia:
/// `{"faultstring": ...}`; Keystone: `{"error": {"message": ...}}`.
pub fn complaint(response: &Response) -> Complaint {
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(String::from);
    if let Some(message) = text(&json["faultstring"]) {
        let kind = text(&json["faultcode"]).unwrap_or_default();
        return Complaint {
            kind,
            message: Some(message),
        };
    }
    let Some((name, inner)) = json.as_object().into_iter().flatten().next() else {
        return Complaint::default();
    };
    Complaint {
        kind: text(&inner["type"]).unwrap_or_else(|| name.clone()),
        message: text(&inner["message"]).or_else(|| text(inner)),
    }
}

/// Whether the service itself reports it as not found. A 404 of anything else, such as a proxy whose backend is gone, denies nothing.
pub fn denies(response: &Response) -> bool {
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    response.status == 404 && !json["itemNotFound"].is_null()
}

/// The query of the next page of this list, such as `servers`; the host in the link is what the service takes itself for, behind a proxy it is wrong. Some
/// services link to one more page, which is empty.
pub fn next_page(page: &Value, collection: &str) -> Option<String> {
    let links = page[format!("{collection}_links")].as_array();
    let next = links.into_iter().flatten().find(|link| link["rel"] == "next")?;
    let (_, query) = next["href"].as_str()?.split_once('?')?;
    let is_empty = page[collection].as_array().is_none_or(Vec::is_empty);
    (!is_empty).then(|| query.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response {
            request: "GET https://cloud.test/".into(),
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    #[test]
    fn each_service_complains_in_its_own_way() {
        for (body, kind, message) in [
            (
                r#"{"itemNotFound": {"message": "m", "code": 404}}"#,
                "itemNotFound",
                Some("m"),
            ),
            (
                r#"{"NeutronError": {"type": "OverQuota", "message": "m", "detail": ""}}"#,
                "OverQuota",
                Some("m"),
            ),
            (
                r#"{"faultcode": "Client", "faultstring": "m", "debuginfo": null}"#,
                "Client",
                Some("m"),
            ),
            (
                r#"{"error": {"code": 401, "message": "m", "title": "Unauthorized"}}"#,
                "error",
                Some("m"),
            ),
            (r#"{"error": "m"}"#, "error", Some("m")),
            ("<html>", "", None),
            ("{}", "", None),
        ] {
            let found = complaint(&response(400, body));
            assert_eq!(
                (found.kind.as_str(), found.message.as_deref()),
                (kind, message),
                "{body}"
            );
        }
    }

    #[test]
    fn only_the_services_own_words_deny() {
        assert!(denies(&response(404, r#"{"itemNotFound": {"message": "m"}}"#)));
        assert!(!denies(&response(404, "<html>")) && !denies(&response(200, r#"{"itemNotFound": {}}"#)));
    }

    #[test]
    fn lists_go_on_where_their_link_says() {
        let page =
            |servers, href: &str| json!({ "servers": servers, "servers_links": [{ "rel": "next", "href": href }] });
        assert_eq!(
            next_page(&page(json!([1]), "http://inside/servers?marker=a"), "servers"),
            Some("marker=a".into())
        );
        assert_eq!(
            next_page(&page(json!([]), "http://inside/servers?marker=a"), "servers"),
            None
        );
        assert_eq!(next_page(&json!({ "servers": [1] }), "servers"), None);
    }
}
