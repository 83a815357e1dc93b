//! Bytes as hexadecimal text, lower case.

/// Writes two digits for each byte.
///
/// ```
/// # use cloudwit_guest_sdk::hex;
/// assert_eq!(hex::encode(&[0, 0x7f, 0xff]), "007fff");
/// assert_eq!(hex::decode("007FfF"), Some(vec![0, 0x7f, 0xff]));
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Reads what [`encode`] writes, in either case; none when it is something else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits?;
    let (pairs, []) = pairs.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(high * 16 + low).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back_and_nothing_else_is_read() {
        let all: Vec<u8> = (0..=255).collect();
        let text: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(encode(&all), text);
        assert_eq!(decode(&text), Some(all.clone()));
        assert_eq!(decode(&text.to_uppercase()), Some(all));
        for wrong in ["a", "abc", "0x", "g0", "+1", " 1", "\u{e9}"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
