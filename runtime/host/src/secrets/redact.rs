//! Redacts secrets in texts of a provider. One pass, linear in the text.
//!
//! A guest never holds a secret (see `keys`), but a cloud may send one back in an error page, and one granted for `reveal` may be put into a
//! message by mistake. Every text of a guest that becomes visible passes here: those for people through [`Redactor::redact`], which writes
//! `[secret NAME]` in the secret's place, and names (provider ids, labels, host names, ...), which must not be changed, through
//! [`Redactor::betrayed`], which finds them unfit.
//!
//! **What is hidden**: each piece of eight bytes of a secret in each of its [forms](crate::secrets::forms), wherever it stands; texts are cut before they
//! come here, and so is what they quote. A piece of eight bytes is one `u64`, so the set of all pieces is a small hash table of numbers
//! and the search looks one up for each byte of the text. (An Aho-Corasick automaton over the same pieces finds the same with ten times the
//! memory: some 200,000 states for a private key of 4 KiB.) A secret of six or seven bytes is hidden where it stands whole.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::secrets::forms::{self, Form, SHORTEST};

/// Bytes of a secret that do not stay in a text.
pub(super) const PIECE: usize = 8;

/// In names a secret counts from so many bytes on (or all of it, up to the second number). User names such as `kubernetes` are secrets as well, and a
/// host name that happens to contain one is no reason to stop a Node.
const IN_NAMES: (usize, usize) = (12, 32);

/// So many texts that had to be redacted are noted.
const MOST_NOTED: usize = 8;

/// What is hidden, and what stands there instead.
pub(crate) struct Redactor {
    /// By the length of the pieces; those that are empty are left out.
    pub(super) pieces: Vec<(usize, Pieces)>,
    secrets: Vec<Hidden>,
    /// The first texts of guests that had to be redacted, as they were then.
    noted: Arc<Mutex<Vec<String>>>,
    /// Hides further secrets.
    base: Option<Arc<Redactor>>,
}

/// A secret, without the secret.
struct Hidden {
    name: String,
    mark: String,
    /// So many bytes of it in a name make the name unfit.
    in_names: usize,
}

/// A stretch of a text that is of a secret.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    bytes: Range<usize>,
    /// Place of the secret.
    secret: u16,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Hides these secrets, given by name and content.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut secrets: Vec<(&str, &[u8])> = secrets.into_iter().collect();
        // The longest first: one secret may contain another, and a piece of both counts for the longer.
        secrets.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        secrets.truncate(usize::from(u16::MAX));
        let forms: Vec<(u16, Form)> = (0..)
            .zip(&secrets)
            .flat_map(|(place, (_, secret))| forms::of(secret).into_iter().map(move |form| (place, form)))
            .collect();
        let hidden = |(name, secret): &(&str, &[u8])| Hidden {
            name: (*name).to_owned(),
            mark: format!("[secret {name}]"),
            in_names: secret.trim_ascii().len().clamp(IN_NAMES.0, IN_NAMES.1),
        };
        let pieces = (SHORTEST..=PIECE).map(|length| (length, Pieces::of(length, &forms)));
        Self {
            pieces: pieces.filter(|(_, pieces)| !pieces.numbers.is_empty()).collect(),
            secrets: secrets.iter().map(hidden).collect(),
            noted: Arc::default(),
            base: None,
        }
    }

    /// Hides these secrets and those of the other one. Both note texts together.
    pub fn over<'a>(base: &Arc<Self>, secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        Self {
            noted: Arc::clone(&base.noted),
            base: Some(Arc::clone(base)),
            ..Self::new(secrets)
        }
    }

    /// The text without secrets. Bytes that belong to one are replaced by its mark, one for all that overlap.
    pub fn redact(&self, text: String) -> String {
        self.hidden(text).0
    }

    /// The text without secrets, and whether there was one in it.
    fn hidden(&self, text: String) -> (String, bool) {
        let runs = self.runs(text.as_bytes());
        let found = !runs.is_empty();
        let clean = self.without(text, runs);
        match &self.base {
            None => (clean, found),
            Some(base) => {
                let (clean, found_more) = base.hidden(clean);
                (clean, found || found_more)
            }
        }
    }

    fn without(&self, text: String, runs: Vec<Run>) -> String {
        if runs.is_empty() {
            return text;
        }
        let mut clean = String::with_capacity(text.len());
        let mut shown = 0;
        for Run { bytes, secret } in runs {
            // A piece may begin or end inside of a character.
            let (from, to) = (
                text.floor_char_boundary(bytes.start),
                text.ceil_char_boundary(bytes.end),
            );
            clean.push_str(text.get(shown..from).unwrap_or_default());
            clean.push_str(&self.secrets[usize::from(secret)].mark);
            shown = to;
        }
        clean + &text[shown..]
    }

    /// The same with a text that a guest wrote, which is noted if there was a secret in it.
    pub fn redact_of_guest(&self, text: String) -> String {
        let (clean, found) = self.hidden(text);
        if found {
            let mut noted = self.noted.lock();
            if noted.len() < MOST_NOTED {
                noted.push(clean.clone());
            }
        }
        clean
    }

    /// The first texts of guests that had to be redacted.
    pub fn noted(&self) -> Vec<String> {
        self.noted.lock().clone()
    }

    /// The name of a secret that this name (an id, a label, a host) contains, so that it must not be used.
    pub fn betrayed(&self, name: &str) -> Option<&str> {
        let mut runs = self.runs(name.as_bytes()).into_iter();
        let own = runs.find_map(|Run { bytes, secret }| {
            let hidden = &self.secrets[usize::from(secret)];
            (bytes.len() >= hidden.in_names).then_some(hidden.name.as_str())
        });
        own.or_else(|| self.base.as_ref()?.betrayed(name))
    }

    /// The stretches that are of secrets, in their order; what overlaps or touches is one.
    fn runs(&self, text: &[u8]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        if self.pieces.is_empty() {
            return runs;
        }
        for at in 0..text.len() {
            let found = |(length, pieces): &(usize, Pieces)| {
                let secret = pieces.secret_of(number(text.get(at..at + length)?))?;
                Some((secret, at + length))
            };
            // The longest pieces come last and count.
            let Some((secret, end)) = self.pieces.iter().rev().find_map(found) else {
                continue;
            };
            match runs.last_mut().filter(|run| at <= run.bytes.end) {
                Some(run) => run.bytes.end = run.bytes.end.max(end),
                None => runs.push(Run { bytes: at..end, secret }),
            }
        }
        runs
    }
}

/// Up to eight bytes as one number.
fn number(piece: &[u8]) -> u64 {
    let mut bytes = [0; PIECE];
    bytes[..piece.len()].copy_from_slice(piece);
    u64::from_le_bytes(bytes)
}

/// Pieces of one length, as a hash table that is filled once: the numbers of all buckets in one list, and where each bucket begins.
pub(super) struct Pieces {
    pub(super) begins: Vec<u32>,
    pub(super) numbers: Zeroizing<Vec<u64>>,
    /// Place of the secret of each number.
    secrets: Vec<u16>,
}

impl Pieces {
    /// All pieces of this length; of forms that are not longer than the longest piece only the whole.
    fn of(length: usize, forms: &[(u16, Form)]) -> Self {
        let fits = |form: &Form| form.len() == length || (length == PIECE && form.len() > PIECE);
        let forms = forms.iter().filter(|(_, form)| fits(form));
        // Allocated once: a list that grows leaves copies behind.
        let most = forms.clone().map(|(_, form)| form.len() + 1 - length).sum();
        let mut all = Zeroizing::new(Vec::with_capacity(most));
        for (secret, form) in forms {
            all.extend(form.windows(length).map(|piece| (number(piece), *secret)));
        }
        all.sort_unstable();
        all.dedup_by_key(|(number, _)| *number);
        let bits = all.len().next_power_of_two().trailing_zeros().clamp(1, 30);
        all.sort_unstable_by_key(|(number, _)| bucket(*number, bits));
        let mut begins = vec![0_u32; (1 << bits) + 1];
        for (number, _) in all.iter() {
            begins[bucket(*number, bits) + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut numbers = Zeroizing::new(Vec::with_capacity(all.len()));
        numbers.extend(all.iter().map(|(number, _)| *number));
        let secrets = all.iter().map(|(_, secret)| *secret).collect();
        Self {
            begins,
            numbers,
            secrets,
        }
    }

    /// Which secret has this piece.
    fn secret_of(&self, number: u64) -> Option<u16> {
        let bits = (self.begins.len() - 1).trailing_zeros();
        let bucket = bucket(number, bits);
        let range = self.begins[bucket] as usize..self.begins[bucket + 1] as usize;
        #[cfg(test)]
        tests::COMPARED.with(|compared| compared.set(compared.get() + 1 + range.len()));
        let at = self.numbers[range.clone()].iter().position(|one| *one == number)?;
        Some(self.secrets[range.start + at])
    }
}

/// Fibonacci hashing: the upper bits of the product with 2^64 divided by the golden ratio.
fn bucket(number: u64, bits: u32) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}

#[cfg(test)]
pub(crate) mod tests;
