//! Bytes of a secret: never printed, wiped when dropped.

use std::path::Path;
use std::{fmt, fs, io};

use zeroize::Zeroizing;

/// A secret. Wiped when dropped; `Debug` shows that it is one and nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a file; one line break at its end, which editors and `echo` put there, is not part of the secret.
    pub fn read(file: &Path) -> io::Result<Self> {
        let mut bytes = Zeroizing::new(fs::read(file)?);
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        Ok(Self(bytes))
    }

    /// The bytes. Callers must not pass them anywhere but where the grant allows.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_is_not_part_of_the_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (written, secret) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            (" a ", " a "),
            ("\n", ""),
        ] {
            fs::write(file.path(), written).unwrap();
            assert_eq!(
                Secret::read(file.path()).unwrap().expose(),
                secret.as_bytes(),
                "{written:?}"
            );
        }
    }

    #[test]
    fn debug_does_not_show_it() {
        assert_eq!(format!("{:?}", Secret::new(b"hunter2".to_vec())), "[secret]");
    }
}
