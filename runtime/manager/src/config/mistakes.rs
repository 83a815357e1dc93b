//! Mistakes of one input, all in one error.

use std::fmt;

/// All mistakes of one input: one by itself, several as a list with their number.
#[derive(Debug)]
pub struct Mistakes {
    found: Vec<String>,
    what: &'static str,
}

impl Mistakes {
    /// These. `what` follows "N mistakes" where there are several, such as `, nothing was installed`.
    pub fn of(found: Vec<String>, what: &'static str) -> Self {
        Self { found, what }
    }

    /// Fails with these, unless there are none.
    pub fn none_of(found: Vec<String>, what: &'static str) -> Result<(), Self> {
        if found.is_empty() {
            Ok(())
        } else {
            Err(Self::of(found, what))
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found.as_slice() {
            [one] => f.write_str(one),
            many => {
                write!(f, "{} mistakes{}:", many.len(), self.what)?;
                many.iter().try_for_each(|mistake| write!(f, "\n  - {mistake}"))
            }
        }
    }
}

impl std::error::Error for Mistakes {}
