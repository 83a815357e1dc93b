//! Vital product data of SCSI devices, as sysfs shows it in bytes (SPC-4, 7.8).

/// What a device says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Designators {
    /// NAA and EUI-64 names, in hexadecimal.
    pub names: Vec<String>,
    /// Texts: vendor and what the vendor made of it.
    pub texts: Vec<String>,
}

/// The unit serial number of page 0x80.
pub fn serial(page: &[u8]) -> Option<String> {
    let text = body(page, 0x80)?;
    readable(text)
}

/// The names of page 0x83 that belong to the logical unit. An entry that does not fit ends the list.
pub fn designators(page: &[u8]) -> Designators {
    let mut found = Designators::default();
    let mut rest = body(page, 0x83).unwrap_or_default();
    while let [code_set, kind, _, length, after @ ..] = rest {
        let Some((value, next)) = after.split_at_checked(usize::from(*length)) else {
            break;
        };
        // The two bits above the type say whose name it is: 0 for the logical unit.
        if kind & 0x30 == 0 && !value.is_empty() {
            match (code_set & 0x0f, kind & 0x0f) {
                // EUI-64 and NAA in binary.
                (1, 2 | 3) => found
                    .names
                    .push(value.iter().map(|byte| format!("{byte:02x}")).collect()),
                // Vendor specific, and T10 vendor identification, in ASCII or UTF-8.
                (2 | 3, 0 | 1) => found.texts.extend(readable(value)),
                _ => {}
            }
        }
        rest = next;
    }
    found
}

/// What follows the header: peripheral, page code, and the length in two bytes.
fn body(page: &[u8], code: u8) -> Option<&[u8]> {
    match page {
        [_, found, high, low, rest @ ..] if *found == code => {
            rest.get(..usize::from(u16::from_be_bytes([*high, *low])).min(rest.len()))
        }
        _ => None,
    }
}

fn readable(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_matches(|sign: char| sign.is_whitespace() || sign == '\0');
    (!text.is_empty() && !text.contains(char::is_control)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn serial_of_page_80_is_read_without_padding() {
        assert_eq!(serial(b"\0\x80\0\x08  6000c2"), Some("6000c2".into()));
        assert_eq!(serial(b"\0\x80\0\x04abcdef"), Some("abcd".into()));
        for none in [b"\0\x83\0\x02ab".as_slice(), b"\0\x80\0\x02  ", b"\0\x80", b""] {
            assert_eq!(serial(none), None);
        }
    }

    #[test]
    fn names_of_the_unit_are_read_from_page_83() {
        let mut page = vec![0, 0x83, 0, 0];
        page.extend([2, 1, 0, 12]);
        page.extend(b"Google  disk");
        page.extend([1, 3, 0, 4, 0x60, 0, 0xc2, 0x9a]);
        // The name of a port.
        page.extend([1, 0x13, 0, 2, 0xff, 0xff]);
        page[3] = (page.len() - 4) as u8;
        let found = designators(&page);
        assert_eq!(found.names, ["6000c29a"]);
        assert_eq!(found.texts, ["Google  disk"]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(mut page in prop::collection::vec(any::<u8>(), 0..100)) {
            for code in [0x80, 0x83] {
                if let Some(byte) = page.get_mut(1) { *byte = code; }
                serial(&page);
                designators(&page);
            }
        }
    }
}
