//! Base64 (RFC 4648, section 4), for what a cloud hands out or takes in it. Secrets are put into requests in Base64 by the host
//! (`Encoding::Base64`).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes the bytes with padding.
///
/// ```
/// # use cloudwit_guest_sdk::base64;
/// assert_eq!(base64::encode(b"foob"), "Zm9vYg==");
/// assert_eq!(base64::decode("Zm9vYg=="), Some(b"foob".to_vec()));
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index| u32::from(chunk.get(index).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let letter = ALPHABET.get((group >> (18 - 6 * index)) as usize & 63);
            let letter = letter.filter(|_| index <= chunk.len());
            text.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

/// Reads Base64 with or without padding; line ends do not count. None when it is something else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut bits, mut letters, mut padding) = (0u32, 0, 0, 0);
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        letters += 1;
        if byte == b'=' {
            padding += 1;
            continue;
        }
        let value = ALPHABET
            .iter()
            .position(|letter| *letter == byte)
            .filter(|_| padding == 0)?;
        group = group << 6 | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 255).ok()?);
        }
    }
    // One letter over is no byte; bits over have to be nought, or two texts would mean the same bytes.
    let whole = (letters - padding) % 4 != 1 && group & ((1 << bits) - 1) == 0;
    let padded = padding == 0 || (padding <= 2 && letters % 4 == 0);
    (whole && padded).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    const VECTORS: [(&str, &str); 7] = [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ];

    #[test]
    fn the_vectors_of_the_rfc_agree() {
        for (bytes, text) in VECTORS {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text), Some(bytes.into()));
            assert_eq!(
                decode(text.trim_end_matches('=')),
                Some(bytes.into()),
                "without padding"
            );
        }
    }

    #[test]
    fn all_bytes_at_all_places_come_back() {
        let all: Vec<u8> = (0..=255).chain(0..=255).collect();
        for start in 0..3 {
            assert_eq!(decode(&encode(&all[start..])).as_deref(), Some(&all[start..]));
        }
        assert!(encode(&all).contains('+') && encode(&all).contains('/'));
    }

    #[test]
    fn line_ends_do_not_count_and_nothing_else_is_skipped() {
        assert_eq!(decode("Zm9v\r\nYg=\n="), Some(b"foob".to_vec()));
        for wrong in [
            "Z",
            "Zm9vY",
            "Zg=",
            "Zg===",
            "=",
            "====",
            "Zg==Zg==",
            "Z=g=",
            "Zm 9v",
            "Zm-_",
            "Zm9\u{e9}",
            "Zh==",
            "Zm9=",
            "Zm9v=",
            "Zm9v====",
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
