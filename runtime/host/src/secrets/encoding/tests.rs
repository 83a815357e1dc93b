//! Every encoding, and that lengths are exact.

use proptest::prelude::*;

use super::*;

const ALL: [Encoding; 5] = [
    Encoding::Plain,
    Encoding::Base64,
    Encoding::Json,
    Encoding::Form,
    Encoding::Xml,
];

fn written(encoding: Encoding, secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encoding.write(secret, &mut out);
    out
}

#[test]
fn every_encoding_is_that_of_its_place() {
    let secret = "a\"b\\c&d<e>f'g +/=%~\né".as_bytes();
    for (encoding, expected) in [
        (Encoding::Plain, "a\"b\\c&d<e>f'g +/=%~\né"),
        (Encoding::Base64, "YSJiXGMmZDxlPmYnZyArLz0lfgrDqQ=="),
        (Encoding::Json, "a\\\"b\\\\c&d<e>f'g +/=%~\\u000Aé"),
        (Encoding::Form, "a%22b%5Cc%26d%3Ce%3Ef%27g%20%2B%2F%3D%25~%0A%C3%A9"),
        (Encoding::Xml, "a&quot;b\\c&amp;d&lt;e&gt;f&#39;g +/=%~&#10;é"),
    ] {
        assert_eq!(written(encoding, secret), expected.as_bytes(), "{encoding:?}");
    }
}

#[test]
fn basic_is_the_value_of_the_header_of_rfc_7617() {
    let mut out = Vec::new();
    write_basic(b"Aladdin", b"open sesame", &mut out);
    assert_eq!(out, b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(unfit_user(b"Aladdin"), None);
    assert!(unfit_user(b"a:b").is_some());
}

#[test]
fn a_secret_that_cannot_stand_there_is_unfit() {
    assert!(Encoding::Json.unfit(b"\xffcanary").is_some());
    assert!(Encoding::Xml.unfit(b"\xffcanary").is_some());
    assert!(Encoding::Xml.unfit(b"\x01canary").is_some());
    assert_eq!(Encoding::Xml.unfit(b"canary\t\r\n"), None);
    assert_eq!(Encoding::Form.unfit(b"\xff"), None);
    assert_eq!(written(Encoding::Form, b"\xff"), b"%FF");
}

proptest! {
    #[test]
    fn lengths_are_counted_exactly(user: Vec<u8>, password: Vec<u8>) {
        for encoding in ALL {
            prop_assert_eq!(encoding.length(&user), written(encoding, &user).len());
        }
        let mut basic = Vec::new();
        write_basic(&user, &password, &mut basic);
        prop_assert_eq!(basic_length(&user, &password), basic.len());
    }

    #[test]
    fn a_json_string_of_any_secret_reads_back_as_it(secret: String) {
        let json = [b"\"".as_slice(), &written(Encoding::Json, secret.as_bytes()), b"\""].concat();
        prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), secret);
    }
}
