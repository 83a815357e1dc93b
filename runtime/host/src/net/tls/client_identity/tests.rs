//! Which pairs of files are accepted, and what is said about the others.

use super::testing::{IdentityFiles, TestIdentity, with_identity};
use super::*;
use crate::net::tls::crypto;

fn grant(files: &IdentityFiles) -> HttpGrant {
    let grant = HttpGrant {
        host: "a.example".into(),
        ..HttpGrant::default()
    };
    with_identity(grant, files)
}

fn certified(files: &IdentityFiles) -> Result<CertifiedKey, GrantProblem> {
    ClientIdentity::read(&grant(files), 3)?.unwrap().certified(&crypto())
}

#[test]
fn pair_is_accepted_with_its_intermediates() {
    let (one, other) = (TestIdentity::new("one"), TestIdentity::new("other"));
    let files = one.files();
    assert_eq!(certified(&files).unwrap().cert, std::slice::from_ref(&one.der));
    std::fs::write(&files.certificate, format!("{}{}", one.certificate, other.certificate)).unwrap();
    assert_eq!(certified(&files).unwrap().cert, [one.der, other.der]);
}

#[test]
fn grant_without_certificate_reads_no_file() {
    assert!(ClientIdentity::read(&HttpGrant::default(), 0).unwrap().is_none());
}

#[test]
fn digest_changes_with_either_file() {
    let (one, other) = (TestIdentity::new("one"), TestIdentity::new("other"));
    let files = one.files();
    let digest = || ClientIdentity::read(&grant(&files), 0).unwrap().unwrap().digest();
    let first = digest();
    assert_eq!(first, digest());
    std::fs::write(&files.key, &other.key).unwrap();
    let second = digest();
    std::fs::write(&files.certificate, &other.certificate).unwrap();
    assert!(first != second && second != digest());
}

#[test]
fn key_of_another_certificate_is_refused_with_both_files() {
    let files = TestIdentity::new("one").files();
    std::fs::write(&files.key, &TestIdentity::new("other").key).unwrap();
    let problem = certified(&files).unwrap_err();
    assert_eq!(problem.path, "http[3].clientKey");
    let text = problem.to_string();
    let (certificate, key) = (files.certificate.display(), files.key.display());
    assert!(
        text.contains(&format!(
            "{:?} is not the key of the first certificate in {certificate}",
            key.to_string()
        )),
        "{text}"
    );
    assert!(
        text.contains("; put the private key of the first certificate there"),
        "{text}"
    );
}

/// Every line of the key that says anything.
fn lines_of(key: &str) -> impl Iterator<Item = &str> {
    key.lines().filter(|line| !line.contains("-----") && !line.is_empty())
}

#[test]
fn unusable_files_are_refused_with_place_and_fix_and_without_the_key() {
    let (one, folder) = (TestIdentity::new("one"), tempfile::tempdir().unwrap());
    let missing = folder.path().join("missing");
    let large = "x".repeat(usize::try_from(LARGEST).unwrap() + 1);
    let broken_key = one
        .key
        .replace("-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY----\n");
    let cut_key = one.key.replace("-----END PRIVATE KEY-----", "");
    let encrypted = one.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let encrypted_pkcs1 = one.key.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n");
    let other_curve = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let both = format!("{}{}", one.certificate, one.key);
    let both_encrypted = format!("{}{encrypted}", one.certificate);
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_base64 = "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n";
    let cases: [(&str, Option<&str>, Option<&str>, &str); 14] = [
        ("clientCertificate", None, Some(&one.key), "cannot be read"),
        ("clientCertificate", Some(""), Some(&one.key), "contains no certificate"),
        ("clientCertificate", Some(no_base64), Some(&one.key), "is not PEM"),
        (
            "clientCertificate",
            Some(no_der),
            Some(&one.key),
            "contains a certificate that cannot be used",
        ),
        ("clientCertificate", Some(&large), Some(&one.key), "it is larger than"),
        (
            "clientCertificate",
            Some(&both),
            Some(&one.key),
            "contains a private key",
        ),
        (
            "clientCertificate",
            Some(&both_encrypted),
            Some(&one.key),
            "contains a private key",
        ),
        ("clientKey", Some(&one.certificate), None, "cannot be read"),
        (
            "clientKey",
            Some(&one.certificate),
            Some(""),
            "contains no private key in PEM",
        ),
        (
            "clientKey",
            Some(&one.certificate),
            Some(&broken_key),
            "contains no private key in PEM",
        ),
        (
            "clientKey",
            Some(&one.certificate),
            Some(&cut_key),
            "contains no private key in PEM",
        ),
        (
            "clientKey",
            Some(&one.certificate),
            Some(&encrypted),
            "encrypted private key",
        ),
        (
            "clientKey",
            Some(&one.certificate),
            Some(&encrypted_pkcs1),
            "encrypted private key",
        ),
        (
            "clientKey",
            Some(&one.certificate),
            Some(other_curve),
            "that cannot be used",
        ),
    ];
    for (place, certificate, key, wrong) in cases {
        let files = one.files();
        let mut grant = grant(&files);
        match certificate {
            Some(text) => std::fs::write(&files.certificate, text).unwrap(),
            None => grant.client_certificate = Some(missing.clone()),
        }
        match key {
            Some(text) => std::fs::write(&files.key, text).unwrap(),
            None => grant.client_key = Some(missing.clone()),
        }
        let read = ClientIdentity::read(&grant, 3).and_then(|identity| identity.unwrap().certified(&crypto()));
        let problem = read.expect_err(wrong);
        assert_eq!(problem.path, format!("http[3].{place}"), "{problem}");
        assert!(
            problem.wrong.contains(wrong) && !problem.fix.is_empty(),
            "{wrong}: {problem}"
        );
        let shown = format!("{problem} {problem:?}");
        assert!(lines_of(&one.key).all(|line| !shown.contains(line)), "{shown}");
    }
}

#[test]
fn debug_shows_no_byte_of_the_key() {
    let one = TestIdentity::new("one");
    let files = one.files();
    let identity = ClientIdentity::read(&grant(&files), 0).unwrap().unwrap();
    let certified = identity.certified(&crypto()).unwrap();
    let shown = format!("{identity:?} {certified:?}");
    assert!(shown.contains("client.pem"), "{shown}");
    assert!(lines_of(&one.key).all(|line| !shown.contains(line)), "{shown}");
}

#[test]
fn private_keys_of_all_kinds_are_recognised() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
    ] {
        assert!(
            has_private_key(format!("x\n-----BEGIN {label}-----\nAAAA\n").as_bytes()),
            "{label}"
        );
    }
    assert!(!has_private_key(TestIdentity::new("one").certificate.as_bytes()));
    assert!(!has_private_key(
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    ));
}
