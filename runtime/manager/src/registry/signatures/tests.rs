use serde_json::{Value, json};

use super::*;
use crate::registry::signatures::keys::PrivateKey;
use crate::registry::signatures::keys::tests::{OTHER_PUBLIC, PRIVATE, PUBLIC};

/// A component's manifest, signed by cosign 3.1.3 in both formats with a key that it made (`cosign.pub`).
const MANIFEST: &[u8] = include_bytes!("../testdata/cosign-manifest.json");
const COSIGN_PUBLIC: &str = include_str!("../testdata/cosign.pub");
const BUNDLE: &[u8] = include_bytes!("../testdata/cosign-bundle.json");
const SIMPLE: &[u8] = include_bytes!("../testdata/cosign-simple.json");
const SIMPLE_SIGNATURE: &str = include_str!("../testdata/cosign-simple.base64");

fn key(pem: &str) -> PublicKey {
    PublicKey::from_pem(pem.as_bytes()).unwrap()
}

fn by_cosign() -> [SignatureFile; 2] {
    [
        SignatureFile::bundle(BUNDLE),
        SignatureFile::simple(SIMPLE, SIMPLE_SIGNATURE),
    ]
}

fn refused(files: &[SignatureFile], manifest: &[u8], keys: &[PublicKey]) -> String {
    check(files, manifest, keys).unwrap_err().to_string()
}

#[test]
fn signatures_of_cosign_are_good_for_their_manifest_and_key_alone() {
    let keys = [key(OTHER_PUBLIC), key(COSIGN_PUBLIC)];
    for file in by_cosign() {
        check(std::slice::from_ref(&file), MANIFEST, &keys).unwrap();
        let other = refused(std::slice::from_ref(&file), b"another manifest", &keys);
        assert!(other.contains("for another manifest, sha256:76dc88"), "{other}");
        let stranger = refused(std::slice::from_ref(&file), MANIFEST, &keys[..1]);
        assert!(
            stranger.contains("1 signatures, but none by a key of verify.keys"),
            "{stranger}"
        );
    }
    check(
        &[SignatureFile::bundle(b"garbage"), by_cosign()[1].clone()],
        MANIFEST,
        &keys,
    )
    .unwrap();
    assert!(refused(&[], MANIFEST, &keys).contains("it is not signed"));
}

#[test]
fn changed_signature_is_by_no_key() {
    let keys = [key(COSIGN_PUBLIC)];
    let bundle = String::from_utf8(BUNDLE.to_vec()).unwrap();
    let payload = String::from_utf8(SIMPLE.to_vec()).unwrap();
    for file in [
        SignatureFile::bundle(bundle.replace("MEUC", "MEUD").as_bytes()),
        SignatureFile::bundle(bundle.replace("in-toto+json", "in-toto+jsom").as_bytes()),
        SignatureFile::bundle(bundle.replace("\"dsseEnvelope\"", "\"envelope\"").as_bytes()),
        SignatureFile::simple(payload.replace("bycosign", "byothers").as_bytes(), SIMPLE_SIGNATURE),
        SignatureFile::simple(SIMPLE, "no base64"),
        SignatureFile::simple(SIMPLE, ""),
    ] {
        assert!(refused(&[file], MANIFEST, &keys).contains("none by a key"));
    }
}

/// A statement that the key's owner signed, as a bundle.
fn signed(change: impl FnOnce(&mut Value)) -> SignatureFile {
    let private = PrivateKey::from_pem(PRIVATE.as_bytes()).unwrap();
    let digest = ContentDigest::of(MANIFEST);
    let mut bundle: Value = serde_json::from_slice(&bundle::sign(&digest, &private).unwrap()).unwrap();
    let envelope = &mut bundle["dsseEnvelope"];
    let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    let mut statement: Value = serde_json::from_slice(&payload).unwrap();
    change(&mut statement);
    let payload = statement.to_string();
    let kind = "application/vnd.in-toto+json";
    let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
    envelope["payload"] = STANDARD.encode(&payload).into();
    envelope["signatures"] = json!([{ "sig": STANDARD.encode(private.sign(message.as_bytes()).unwrap()) }]);
    SignatureFile::bundle(bundle.to_string().as_bytes())
}

#[test]
fn attestation_by_the_key_is_no_signature() {
    let keys = [key(PUBLIC)];
    check(&[signed(|_| {})], MANIFEST, &keys).unwrap();
    let attestation = signed(|statement| statement["predicateType"] = "https://spdx.dev/Document".into());
    assert!(refused(&[attestation], MANIFEST, &keys).contains("none by a key"));
    let nothing = signed(|statement| statement["subject"] = json!([]));
    assert!(refused(&[nothing], MANIFEST, &keys).contains("none by a key"));
    let other = signed(|statement| statement["subject"][0]["digest"]["sha256"] = "00".into());
    assert!(refused(&[other], MANIFEST, &keys).contains("for another manifest, sha256:00"));
}

#[test]
fn message_signature_covers_the_manifest_itself() {
    let private = PrivateKey::from_pem(PRIVATE.as_bytes()).unwrap();
    let of = |message: &[u8]| {
        let signature = STANDARD.encode(private.sign(message).unwrap());
        SignatureFile::bundle(
            json!({ "messageSignature": { "signature": signature } })
                .to_string()
                .as_bytes(),
        )
    };
    check(&[of(MANIFEST)], MANIFEST, &[key(PUBLIC)]).unwrap();
    assert!(refused(&[of(b"other")], MANIFEST, &[key(PUBLIC)]).contains("none by a key"));
}

#[test]
fn simple_signing_of_another_kind_or_digest_is_refused() {
    let private = PrivateKey::from_pem(PRIVATE.as_bytes()).unwrap();
    let of = |kind: &str, digest: &str| {
        let payload =
            json!({ "critical": { "type": kind, "image": { "docker-manifest-digest": digest }, "identity": {} } })
                .to_string();
        SignatureFile::simple(
            payload.as_bytes(),
            &STANDARD.encode(private.sign(payload.as_bytes()).unwrap()),
        )
    };
    let (kind, digest) = (
        "cosign container image signature",
        ContentDigest::of(MANIFEST).to_string(),
    );
    let keys = [key(PUBLIC)];
    check(&[of(kind, &digest)], MANIFEST, &keys).unwrap();
    assert!(refused(&[of("atomic container signature", &digest)], MANIFEST, &keys).contains("none by a key"));
    assert!(refused(&[of(kind, "sha256:00")], MANIFEST, &keys).contains("for another manifest, sha256:00"));
}
