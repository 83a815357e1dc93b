//! Keys against published vectors of RFCs and clouds; RSA against OpenSSL.
//!
//! RFC 2202, RFC 4231, the worked examples of AWS, Alibaba and Baidu. Over 400 lines for the vectors.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use proptest::collection::vec;
use proptest::prelude::*;
use ring::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};

use super::*;
use crate::grants::{Grants, SecretGrant, SecretUse};
use crate::net::destination::{Destination, Host, Scheme};
use crate::secrets::secret::Secret;

/// Keys made by `openssl genrsa`, the same one in both formats. They protect nothing.
const PKCS1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/throw-away-rsa-pkcs1.pem");
const PKCS8: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/throw-away-rsa-pkcs8.pem");

/// `printf header.payload | openssl dgst -sha256 -sign throw-away-rsa-pkcs1.pem | base64`
const OPENSSL_SIGNATURE: &str = concat!(
    "lmjrwAZMTqU0RjysTGnIxPe5MvrSm0eH9QeQi1eu5vAdNXVM/0h0QzoL64h/7PaegjAgmfjhWN/1wJJBgdAYlGGjbwnMLP1+IvTR",
    "Lmv2NccQr8voIz9L6/yTLhzljhH+hqwyMYVkj9wlZz47EsiAND8vCsj4A0DjNtsI2Y6ll/2oAWP+CKGoSBdCnMQFLUfMOHfC5gp4",
    "Cfmb3wjAi7FyHj0yv0ZzP7HgvokU9uqGW5OjX84MlRg0MD37MgafBB0exzab5lkvrxHs7RoFWAZyhcQr9Y2V3SFAdAN0zp312dBH",
    "vPP2J/bZB22urU2UbxQcLMwbDx+0pOV+eVyVYtoEzw==",
);

fn derived(bytes: &[u8]) -> Key {
    Key(Material::Derived(Secret::new(bytes.to_vec())))
}

fn bytes(key: &Key) -> &[u8] {
    let Material::Derived(secret) = &key.0 else {
        panic!("not derived")
    };
    secret.expose()
}

fn hex_text(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

fn to(host: &str, port: u16) -> Destination {
    Destination {
        scheme: Scheme::Https,
        host: Host::parse(host).unwrap(),
        port,
    }
}

/// A ring with one secret `name` that contains `secret`.
fn ring_with(name: &str, secret: &[u8], hosts: &[&str], uses: &[SecretUse]) -> (Keyring, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), secret).unwrap();
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let grant = SecretGrant {
        name: name.into(),
        file: file.path().into(),
        hosts,
        uses: uses.to_vec(),
    };
    (Keyring::load(&[grant]).unwrap(), file)
}

fn private_key(file: &str) -> Key {
    let grant = SecretGrant {
        name: "key".into(),
        file: Path::new(file).into(),
        hosts: Vec::new(),
        uses: vec![SecretUse::Sign],
    };
    Keyring::load(&[grant]).unwrap().open("key").unwrap()
}

#[test]
fn hmac_sha1_agrees_with_rfc_2202() {
    for (key, data, expected) in [
        (
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b617318655057264e28bc0b6fb378c8ef146be00",
        ),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        ),
        (
            vec![0xaa; 20],
            vec![0xdd; 50],
            "125d7342b9ac11cd91a39af48aa17b4f63f175d3",
        ),
        (
            vec![0xaa; 80],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112",
        ),
    ] {
        assert_eq!(hex_text(&derived(&key).hmac(Hash::Sha1, &data).unwrap()), expected);
    }
}

#[test]
fn hmac_sha256_agrees_with_rfc_4231() {
    for (key, data, expected) in [
        (
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ] {
        assert_eq!(hex_text(&derived(&key).hmac(Hash::Sha256, &data).unwrap()), expected);
    }
}

#[test]
fn digests_agree_with_fips_180() {
    assert_eq!(
        hex_text(&digest(Hash::Sha1, b"abc")),
        "a9993e364706816aba3e25717850c26c9cd0d89d"
    );
    assert_eq!(
        hex_text(&digest(Hash::Sha256, b"abc")),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn the_signing_key_of_awss_worked_example_comes_out() {
    let (ring, _file) = ring_with(
        "key",
        b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n",
        &[],
        &[SecretUse::Hmac],
    );
    let first = Derivation {
        prefix: b"AWS4".to_vec(),
        ..Derivation::default()
    };
    let plain = Derivation::default();
    let key = ring
        .open("key")
        .unwrap()
        .derive(Hash::Sha256, b"20150830", &first)
        .unwrap();
    let key = [b"us-east-1".as_slice(), b"iam", b"aws4_request"]
        .iter()
        .fold(key, |key, part| key.derive(Hash::Sha256, part, &plain).unwrap());
    assert_eq!(
        hex_text(bytes(&key)),
        "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
    );
    let text = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n\
                f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59";
    assert_eq!(
        hex_text(&key.hmac(Hash::Sha256, text.as_bytes()).unwrap()),
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
}

#[test]
fn baidu_worked_example_gives_its_hex_signing_key() {
    let (ring, _file) = ring_with("key", &[b'b'; 32], &[], &[SecretUse::Hmac]);
    let as_hex = Derivation {
        as_hex: true,
        ..Derivation::default()
    };
    let prefix = format!("bce-auth-v1/{}/2015-04-27T08:23:49Z/1800", "a".repeat(32));
    let key = ring
        .open("key")
        .unwrap()
        .derive(Hash::Sha256, prefix.as_bytes(), &as_hex)
        .unwrap();
    assert_eq!(
        bytes(&key),
        b"1d5ce5f464064cbee060330d973218821825ac6952368a482a592e6615aef479"
    );
}

#[test]
fn alibaba_worked_example_signs_with_suffixed_key() {
    let (ring, _file) = ring_with("key", b"testsecret", &[], &[SecretUse::Hmac]);
    let text = "GET&%2F&AccessKeyId%3Dtestid%26Action%3DDescribeRegions%26Format%3DXML%26SignatureMethod%3DHMAC-SHA1\
                %26SignatureNonce%3D3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf%26SignatureVersion%3D1.0\
                %26Timestamp%3D2016-02-23T12%253A46%253A24Z%26Version%3D2014-05-26";
    let suffix = Derivation {
        suffix: b"&".to_vec(),
        ..Derivation::default()
    };
    let signature = ring
        .open("key")
        .unwrap()
        .derive(Hash::Sha1, text.as_bytes(), &suffix)
        .unwrap();
    assert_eq!(STANDARD.encode(bytes(&signature)), "OLeaidS1JvxuMvnyHOwuJ+uX5qY=");
}

#[test]
fn a_derivation_that_no_scheme_needs_is_refused() {
    let (ring, _file) = ring_with("key", b"secret", &[], &[SecretUse::Hmac]);
    let key = ring.open("key").unwrap();
    for (prefix, suffix) in [
        (b"".as_slice(), b"\0".as_slice()),
        (b"", b"\0\0\0"),
        (b"", b"&&"),
        (b"", b"a"),
        (b"\0", b""),
        (b"AWS4&", b""),
        (b"abcdefghijklmnopq", b""),
    ] {
        let (prefix, suffix, as_hex) = (prefix.to_vec(), suffix.to_vec(), false);
        let how = Derivation { prefix, suffix, as_hex };
        let refused = key.derive(Hash::Sha256, b"data", &how);
        assert!(matches!(refused, Err(KeyError::Unusable(_))), "{how:?}");
    }
    for prefix in ["AWS4", "TC3", "GOOG4", "JDCLOUD2", "aliyun_v4"] {
        let how = Derivation {
            prefix: prefix.into(),
            ..Derivation::default()
        };
        assert!(key.derive(Hash::Sha256, b"data", &how).is_ok(), "{prefix}");
    }
}

/// A derivation that is allowed.
fn derivation() -> impl Strategy<Value = Derivation> {
    ("[A-Za-z0-9_-]{0,16}", any::<bool>()).prop_map(|(prefix, suffixed)| Derivation {
        prefix: prefix.into(),
        suffix: if suffixed { SUFFIX.to_vec() } else { Vec::new() },
        as_hex: false,
    })
}

proptest! {
    /// Else whether two results are equal would tell about the secret: of what length it is, for one.
    #[test]
    fn two_derivations_never_give_the_same_key(
        secret in prop_oneof![vec(any::<u8>(), 1..140), "&{1,140}|A{1,140}".prop_map(String::into_bytes)],
        (one, other) in (derivation(), derivation()).prop_filter("different", |(one, other)| one != other),
    ) {
        prop_assume!(secret.last() != Some(&0));
        let key = derived(&secret);
        for hash in [Hash::Sha1, Hash::Sha256] {
            let keys = [&one, &other].map(|how| bytes(&key.derive(hash, b"data", how).unwrap()).to_vec());
            prop_assert_ne!(&keys[0], &keys[1]);
        }
    }

    #[test]
    fn bytes_that_fill_a_key_up_are_refused(zeros in 1..200_usize, before: bool) {
        let zeros = vec![0; zeros];
        let (prefix, suffix) = if before { (zeros, Vec::new()) } else { (Vec::new(), zeros) };
        let how = Derivation { prefix, suffix, as_hex: false };
        prop_assert!(derived(b"secret").derive(Hash::Sha256, b"data", &how).is_err());
    }
}

#[test]
fn rsa_signs_as_openssl_does_from_either_key_format() {
    for file in [PKCS1, PKCS8] {
        let signature = private_key(file)
            .sign(Signature::RsaPkcs1Sha256, b"header.payload")
            .unwrap();
        assert_eq!(STANDARD.encode(signature), OPENSSL_SIGNATURE, "{file}");
    }
}

#[test]
fn rsa_signatures_verify_with_the_public_key() {
    let key = private_key(PKCS8);
    let Material::Secret(granted) = &key.0 else {
        panic!("derived")
    };
    let public = granted.rsa().unwrap().public_key().as_ref().to_vec();
    let schemes: [(Signature, &'static dyn VerificationAlgorithm); 2] = [
        (Signature::RsaPkcs1Sha256, &RSA_PKCS1_2048_8192_SHA256),
        (Signature::RsaPssSha256, &RSA_PSS_2048_8192_SHA256),
    ];
    for (scheme, verifier) in schemes {
        let signature = key.sign(scheme, b"data").unwrap();
        let public = UnparsedPublicKey::new(verifier, &public);
        assert!(public.verify(b"data", &signature).is_ok(), "{scheme:?}");
        assert!(public.verify(b"other", &signature).is_err(), "{scheme:?}");
    }
}

#[test]
fn each_use_needs_its_grant_and_refusal_shows_the_line() {
    let (ring, _file) = ring_with("key", b"secret", &[], &[SecretUse::Reveal]);
    let key = ring.open("key").unwrap();
    for (error, wanted) in [
        (key.hmac(Hash::Sha256, b"").unwrap_err(), "uses: [reveal, hmac]}"),
        (
            key.derive(Hash::Sha256, b"", &Derivation::default()).unwrap_err(),
            "uses: [reveal, hmac]}",
        ),
        (
            key.sign(Signature::RsaPkcs1Sha256, b"").unwrap_err(),
            "uses: [reveal, sign]}",
        ),
    ] {
        assert!(
            matches!(&error, KeyError::Unusable(text) if text.ends_with(wanted)),
            "{error}"
        );
    }
    assert_eq!(ring.reveal("key").unwrap(), b"secret");
    let (ring, _file) = ring_with("key", b"secret", &[], &[SecretUse::Hmac]);
    assert!(matches!(ring.reveal("key"), Err(KeyError::Unusable(text)) if text.ends_with("uses: [hmac, reveal]}")));
}

#[test]
fn ungranted_secret_is_refused_with_lines_to_grant_it() {
    let error = Keyring::default().open("password").unwrap_err();
    let KeyError::NotGranted(text) = &error else {
        panic!("{error:?}")
    };
    let yaml = &text[text.find("- {").unwrap()..];
    let grants: Grants = serde_saphyr::from_str(&format!("secrets:\n{yaml}")).unwrap();
    assert_eq!(
        (grants.secrets[0].name.as_str(), &grants.secrets[0].uses[..]),
        ("password", &[SecretUse::Hmac][..])
    );
    assert!(
        matches!(Keyring::default().open("a]}\nevil: x"), Err(KeyError::NotGranted(text)) if !text.contains("evil"))
    );
}

#[test]
fn a_placeholder_is_only_for_the_hosts_the_secret_is_bound_to() {
    let (ring, _file) = ring_with("p", b"secret", &["api.example.com:443"], &[SecretUse::Placeholder]);
    assert_eq!(
        ring.placeholder("p", &to("api.example.com", 443)).unwrap().expose(),
        b"secret"
    );
    for (host, port) in [
        ("api.example.com", 444),
        ("evil.example.com", 443),
        ("example.com", 443),
    ] {
        let withheld = ring.placeholder("p", &to(host, port)).unwrap_err();
        let grants: Grants = serde_saphyr::from_str(&format!("secrets:\n{}", withheld.entry)).unwrap();
        let widened = Keyring::load(&grants.secrets).unwrap();
        assert!(widened.placeholder("p", &to(host, port)).is_ok(), "{}", withheld.entry);
        assert!(
            widened.placeholder("p", &to("api.example.com", 443)).is_ok(),
            "{}",
            withheld.entry
        );
    }
}

#[test]
fn what_is_no_private_key_cannot_sign() {
    let (ring, _file) = ring_with("key", b"-----BEGIN CERTIFICATE-----\n", &[], &[SecretUse::Sign]);
    let error = ring
        .open("key")
        .unwrap()
        .sign(Signature::RsaPssSha256, b"")
        .unwrap_err();
    assert!(error.to_string().contains("is not an RSA private key"), "{error}");
    let error = derived(b"x").sign(Signature::RsaPssSha256, b"").unwrap_err();
    assert!(error.to_string().contains("derived key"), "{error}");
}

#[test]
fn all_unreadable_files_are_named_at_once() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let grant = |name: &str, file: &Path| SecretGrant {
        name: name.into(),
        file: file.into(),
        ..SecretGrant::default()
    };
    let error = Keyring::load(&[grant("a", Path::new("/nowhere/a")), grant("b", empty.path())])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("secrets[0].file: \"/nowhere/a\" cannot be read"),
        "{error}"
    );
    assert!(
        error.contains("secrets[1].file") && error.contains("is empty"),
        "{error}"
    );
}

#[test]
fn nothing_here_shows_a_secret_in_its_debug_text() {
    let (ring, _file) = ring_with("key", b"canary-value", &[], &[SecretUse::Hmac]);
    let key = ring.open("key").unwrap();
    let derived = key.derive(Hash::Sha1, b"", &Derivation::default()).unwrap();
    let shown = format!("{ring:?} {key:?} {derived:?}");
    assert!(shown.contains("[secret]") && !shown.contains("canary"), "{shown}");
}
