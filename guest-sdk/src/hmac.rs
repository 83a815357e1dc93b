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
