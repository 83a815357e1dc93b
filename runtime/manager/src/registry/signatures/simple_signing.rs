//! Simple signing, cosign's format until version 2: JSON under the tag `sha256-HEX.sig`.

use serde::Deserialize;

use crate::registry::reference::ContentDigest;

/// Media type of the layer with the text.
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// Annotation of that layer: the signature, in base64.
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// What `critical.type` has to be.
const KIND: &str = "cosign container image signature";

/// The tag that signatures of this manifest are under.
pub fn tag(digest: &ContentDigest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The digest of the manifest that a signed text is about; none where it is no such text.
pub fn signed_digest(payload: &[u8]) -> Option<String> {
    let payload: Payload = serde_json::from_slice(payload).ok()?;
    (payload.critical.kind == KIND).then_some(payload.critical.image.digest)
}
