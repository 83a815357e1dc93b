//! Sigstore bundle 0.3, cosign's format since version 3: an artifact that refers to the manifest.
//!
//! | in it | signed is | about the manifest by |
//! | ----- | --------- | --------------------- |
//! | `dsseEnvelope` | type and text of the envelope (DSSE 1.0) | a subject of the statement (in-toto 1), whose predicate is cosign's signature |
//! | `messageSignature` | the manifest itself | that, and `messageDigest` |

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::registry::reference::ContentDigest;
use crate::registry::signatures::keys::{PrivateKey, PublicKey};

/// Media type of a bundle, and of the artifact that has it.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Type of the envelope's text.
const IN_TOTO: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// What a statement says that is a signature and no other attestation, such as a list of contents.
pub const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// The tag that registries without referrers have the list of a manifest's referrers under (OCI distribution 1.1, "Referrers Tag Schema").
pub fn referrers_tag(digest: &ContentDigest) -> String {
    format!("sha256-{}", digest.hex())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<Envelope>,
    message_signature: Option<MessageSignature>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
struct MessageSignature {
    signature: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: std::collections::BTreeMap<String, String>,
}

/// What was signed, and how.
pub struct Signed {
    /// The signed bytes; none for those of the manifest.
    pub message: Option<Vec<u8>>,
    /// The signatures of them.
    pub signatures: Vec<Vec<u8>>,
    /// The digests of the manifests that it is about.
    pub about: Vec<String>,
}

/// Reads a bundle; none where it is none, or says something else than that a manifest is signed.
pub fn read(bundle: &[u8], manifest: &ContentDigest) -> Option<Signed> {
    let bundle: Bundle = serde_json::from_slice(bundle).ok()?;
    if let Some(signed) = bundle.message_signature {
        return Some(Signed {
            message: None,
            signatures: vec![STANDARD.decode(signed.signature).ok()?],
            about: vec![manifest.to_string()],
        });
    }
    let envelope = bundle.dsse_envelope?;
    let payload = STANDARD.decode(&envelope.payload).ok()?;
    let statement: Statement = serde_json::from_slice(&payload).ok()?;
    if envelope.payload_type != IN_TOTO || statement.kind != STATEMENT || statement.predicate_type != SIGNED {
        return None;
    }
    let digests = statement
        .subject
        .iter()
        .filter_map(|subject| subject.digest.get("sha256"));
    let signatures = envelope.signatures.iter().take(8);
    Some(Signed {
        message: Some(to_be_signed(&payload)),
        signatures: signatures.filter_map(|one| STANDARD.decode(&one.sig).ok()).collect(),
        about: digests.take(8).map(|hex| format!("sha256:{hex}")).collect(),
    })
}

/// What of an envelope is signed (DSSE 1.0, "PAE").
fn to_be_signed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {IN_TOTO} {} ", IN_TOTO.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Signs a manifest: the bundle.
pub fn sign(manifest: &ContentDigest, key: &PrivateKey) -> anyhow::Result<Vec<u8>> {
    let statement = json!({
        "_type": STATEMENT,
        "subject": [{ "digest": { "sha256": manifest.hex() } }],
        "predicateType": SIGNED,
        "predicate": {},
    });
    let payload = serde_json::to_vec(&statement).context("writing the statement")?;
    let signature = key.sign(&to_be_signed(&payload))?;
    let public: PublicKey = key.public();
    let bundle: Value = json!({
        "mediaType": BUNDLE,
        "verificationMaterial": { "publicKey": { "hint": public.hint() } },
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": IN_TOTO,
            "signatures": [{ "sig": STANDARD.encode(signature) }],
        },
    });
    serde_json::to_vec(&bundle).context("writing the bundle")
}
