//! The vectors that AWS publishes (Signature Version 4 documentation and test suite), and one that botocore made.

use cloudwit_guest_sdk::testing::FakeHost;

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TIME: &str = "20150830T123600Z";

struct Vector {
    service: &'static str,
    method: &'static str,
    query: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    signature: &'static str,
}

const VECTORS: [Vector; 4] = [
    Vector {
        service: "iam",
        method: "GET",
        query: "Action=ListUsers&Version=2010-05-08",
        headers: &[
            ("host", "iam.amazonaws.com"),
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("x-amz-date", TIME),
        ],
        body: "",
        signature: "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    },
    Vector {
        service: "service",
        method: "GET",
        query: "",
        headers: &[("host", "example.amazonaws.com"), ("x-amz-date", TIME)],
        body: "",
        signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    },
    Vector {
        service: "service",
        method: "POST",
        query: "",
        headers: &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("host", "example.amazonaws.com"),
            ("x-amz-date", TIME),
        ],
        body: "Param1=value1",
        signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    },
    Vector {
        service: "ec2",
        method: "POST",
        query: "",
        headers: &[
            ("x-amz-date", TIME),
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "ec2.us-east-1.amazonaws.com"),
        ],
        body: "Action=DescribeInstances&InstanceId.1=i-0123456789abcdef0&Version=2016-11-15",
        signature: "ea4b90b07073d53161ae81aec677b9b27a2c007cb27ce20e6df9aa23d9ae76da",
    },
];

fn scope(service: &str) -> Scope<'_> {
    Scope {
        time: TIME,
        region: "us-east-1",
        service,
    }
}

fn keys(host: &FakeHost) -> Keys {
    host.secret("secret-access-key", SECRET);
    host.context().keys()
}

fn signable(vector: &'static Vector) -> Signable<'static> {
    Signable {
        method: vector.method,
        path: "/",
        query: vector.query,
        headers: vector.headers.to_vec(),
        body: vector.body.as_bytes(),
    }
}

#[test]
fn published_vectors_match_with_host_key_and_held_key() {
    let host = FakeHost::new();
    let keys = keys(&host);
    let held = HeldSecret(SECRET.into());
    for vector in &VECTORS {
        let request = signable(vector);
        let by_host = signature(
            keys,
            SigningKey::Host(keys.open("secret-access-key").unwrap()),
            scope(vector.service),
            &request,
        );
        assert_eq!(
            by_host.as_deref(),
            Ok(vector.signature),
            "{} {}",
            vector.method,
            vector.service
        );
        let by_us = signature(keys, SigningKey::Held(&held), scope(vector.service), &request);
        assert_eq!(by_us, by_host);
    }
}

#[test]
fn canonical_request_and_key_of_the_published_example_come_out() {
    let host = FakeHost::new();
    let keys = keys(&host);
    assert_eq!(
        digest(keys, signable(&VECTORS[0]).canonical(keys).as_bytes()),
        "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
    );
    // The last key itself: what it makes of a text is what that key's HMAC makes of it.
    let key = HEXLOWER
        .decode(b"c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9")
        .unwrap();
    let held = HeldSecret(SECRET.into());
    let signed = sign(SigningKey::Held(&held), scope("iam"), b"text");
    assert_eq!(signed, Ok(HMAC::mac(b"text", &key).to_vec()));
}

#[test]
fn the_header_names_key_scope_and_signed_headers() {
    let host = FakeHost::new();
    let keys = keys(&host);
    let held = HeldSecret(SECRET.into());
    let header = authorization(
        keys,
        "AKIDEXAMPLE",
        SigningKey::Held(&held),
        scope("iam"),
        &signable(&VECTORS[0]),
    );
    let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
        SignedHeaders=content-type;host;x-amz-date, \
        Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
    assert_eq!(header.as_deref(), Ok(expected));
}

#[test]
fn runs_of_blanks_in_a_header_count_as_one() {
    let host = FakeHost::new();
    let keys = keys(&host);
    let with = |value: &'static str| Signable {
        method: "GET",
        path: "/",
        query: "",
        headers: vec![("host", value)],
        body: b"",
    };
    assert_eq!(with("  a   b ").canonical(keys), with("a b").canonical(keys));
}

#[test]
fn a_held_secret_does_not_show_itself() {
    let held = HeldSecret(SECRET.into());
    assert!(!format!("{held:?} {:?}", SigningKey::Held(&held)).contains(SECRET));
}
