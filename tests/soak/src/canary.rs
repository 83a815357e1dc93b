//! Canaries: secrets that can be recognised, in whichever form they come out.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// What all canaries begin with. Nothing else in the run has this word.
pub const WORD: &str = "canary-";

/// Most that is read of one log in one look, in bytes.
const CHUNK: u64 = 16 * 1024 * 1024;

/// What is searched for: the word, its base64 and hexadecimal forms, and keys that have no such word.
pub struct Needles(Mutex<Vec<String>>);

impl Needles {
    /// Those of [`WORD`].
    pub fn new() -> Self {
        let hex: String = WORD.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut all = vec![WORD.to_owned(), hex.to_uppercase(), hex];
        all.extend((0..3).map(inside_base64));
        Self(Mutex::new(all))
    }

    /// Also searches for this text, such as a line of a private key.
    pub fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    /// The first needle in the text, with what is around it.
    pub fn find(&self, text: &str) -> Option<String> {
        let needles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = needles.iter().find_map(|needle| text.find(needle.as_str()))?;
        let from = text[..at].char_indices().rev().nth(150).map_or(0, |(place, _)| place);
        let around: String = text[from..].chars().take(300).collect();
        Some(around)
    }
}

/// The part of the word's base64 that is the same whatever comes before and after it.
fn inside_base64(before: usize) -> String {
    let padded = [vec![0; before], WORD.as_bytes().to_vec()].concat();
    let text = STANDARD_NO_PAD.encode(&padded);
    // Characters that depend on the bytes before, or on those after.
    let skip = (before * 8).div_ceil(6);
    let whole = padded.len() * 8 / 6;
    text[skip..whole].to_owned()
}

/// A log that grows.
pub struct Tail {
    file: PathBuf,
    at: u64,
}

impl Tail {
    /// From its beginning.
    pub fn new(file: PathBuf) -> Self {
        Self { file, at: 0 }
    }

    /// What was added since the last look, with a little of what was before, so that nothing is cut in two.
    pub fn read(&mut self) -> String {
        let mut bytes = Vec::new();
        let Ok(mut file) = std::fs::File::open(&self.file) else {
            return String::new();
        };
        let overlap = self.at.saturating_sub(256);
        if file.seek(SeekFrom::Start(overlap)).is_ok() {
            // A log that cannot be read now is read in the next look.
            let _ = file.take(CHUNK).read_to_end(&mut bytes);
        }
        self.at = (overlap + bytes.len() as u64).max(self.at);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canary_is_found_in_every_form() {
        let needles = Needles::new();
        for before in ["", "x", "xy", "user:"] {
            let secret = format!("{before}{WORD}token-81f3");
            assert!(needles.find(&secret).is_some(), "{secret}");
            let encoded = STANDARD_NO_PAD.encode(&secret);
            assert!(needles.find(&encoded).is_some(), "{encoded}");
        }
        assert!(needles.find("nothing of that kind, Y2Fu").is_none());
    }

    #[test]
    fn tail_reads_what_was_added() {
        let file = std::env::temp_dir().join(format!("cloudwit-tail-{}", std::process::id()));
        std::fs::write(&file, "one\n").unwrap();
        let mut tail = Tail::new(file.clone());
        assert_eq!(tail.read(), "one\n");
        std::fs::write(&file, "one\ntwo\n").unwrap();
        assert!(tail.read().ends_with("two\n"));
        std::fs::remove_file(&file).unwrap();
    }
}
