//! The bodies of the fuzz targets on stable Rust: a small corpus, pieces of it put together, and random bytes.

use cloudwit_fuzz_bodies::ALL;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// What is interesting to one parser or another.
const CORPUS: [&str; 46] = [
    "",
    "a",
    "10s",
    "1h30m0.5s",
    "true",
    "cloudwit-placeholder-",
    "cloudwit-placeholder-0123456789abcdef0123456789abcdef",
    "https://a.example.com/b?c=d",
    "//user@host:1/",
    "[::1]:443",
    "127.0.0.1",
    "169.254.169.254/",
    "::ffff:a9fe:a9fe",
    "10.0.0.0/8",
    "fd00::/64",
    "::/129",
    "host: a.example.com\nmethods: [GET]\n",
    "{\"a\": [1, \"\\u0041\"]}",
    "[Global]\nauth-url = \"x\"\n",
    "[a \"b\"]\nc\n",
    "a: b\n- c\n",
    "a:\n  - 'x'\n  - \"y\\n\"\n",
    "|\n  text\n",
    "<a b=\"c\">&lt;</a>",
    "<![CDATA[x]]>",
    "<!--",
    "120",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "-1",
    "X-Remote-User: admin",
    "x-remote-extra-a%2fb: c",
    "X-Remote-Group: system:masters",
    "\n",
    "\0",
    "\r\n",
    "K7#q/\"<v>&Zx",
    "K7#q",
    "\\u0026",
    "%2F",
    "&amp;",
    "é",
    "\u{feff}",
    "..",
    "*.example.com",
    "(\u{b5}/\u{fd}\0\0",
    "99999999999999999999",
];

#[test]
fn every_body_takes_its_corpus_and_random_input() {
    let piece = prop_oneof![
        6 => prop::sample::select(CORPUS.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..24),
    ];
    let input = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    for (name, body) in ALL {
        for text in CORPUS {
            body(text.as_bytes());
        }
        let config = ProptestConfig {
            cases: 128,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        // The same each time: fuzzing is what searches.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let run = TestRunner::new_with_rng(config, random).run(&input, |data| {
            body(&data);
            Ok(())
        });
        assert!(
            run.is_ok(),
            "{name}: {}",
            run.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
}
