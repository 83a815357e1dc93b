//! HMAC with keys that the component holds itself, such as temporary credentials that the cloud gave it (RFC 2104).
//!
//! For secrets that the operator gave use [`Keys::open`](crate::keys::Keys::open): they then never come in here. The hashes are computed by the host.

use crate::bindings::imports::cloudwit::provider::keys::Hash;
use crate::host;

/// Bytes in a block of SHA-256.
const BLOCK: usize = 64;

/// HMAC-SHA256 of the data, 32 bytes.
///
/// ```
/// use cloudwit_guest_sdk::{hex, hmac};
///
/// let mac = hmac::sha256(b"Jefe", b"what do ya want for nothing?");
/// assert_eq!(hex::encode(&mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
/// ```
pub fn sha256(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > BLOCK { digest(key) } else { key.to_vec() };
    block.resize(BLOCK, 0);
    let framed = |pad: u8, data: &[u8]| {
        let mut text: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
        text.extend_from_slice(data);
        digest(&text)
    };
    framed(0x5c, &framed(0x36, data))
}

fn digest(data: &[u8]) -> Vec<u8> {
    host::digest(Hash::Sha256, data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    /// RFC 4231, 4.2 to 4.8, without 4.6 (which is about cut results).
    #[test]
    fn the_vectors_of_the_rfc_agree() {
        let long_key = [0xaa; 131];
        let counted: Vec<u8> = (1..=25).collect();
        let vectors: [(&[u8], &[u8], &str); 6] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&[0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (&counted, &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            (
                &long_key,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &long_key,
                b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to \
                  be hashed before being used by the HMAC algorithm.",
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, data, expected) in vectors {
            assert_eq!(hex::encode(&sha256(key, data)), expected);
        }
    }

    #[test]
    fn it_agrees_with_the_hosts_own_at_the_edge_of_a_block() {
        use crate::keys::Hash;
        use crate::testing::FakeHost;
        let host = FakeHost::new();
        for length in [0, 1, 63, 64, 65, 128] {
            let key = vec![7; length];
            host.secret("key", key.clone());
            let theirs = host
                .context()
                .keys()
                .open("key")
                .and_then(|key| key.hmac(Hash::Sha256, b"data"));
            assert_eq!(theirs, Ok(sha256(&key, b"data")), "{length}");
        }
    }
}
