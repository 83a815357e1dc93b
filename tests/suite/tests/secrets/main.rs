//! A canary sits in every place where a secret can be. The real process does its whole job with it, meets faults, swaps and bad starts, and
//! then everything that anybody can read is searched for the canary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_starts;
mod guest;
mod stage;
mod whole_run;

/// What must be nowhere: the canary, its beginning in Base64, the beginning of any token of a service account.
const NEVER: [&str; 3] = ["canary", "Y2FuYXJ5", "eyJhbGciOi"];

/// Searches a text, and says where it was found.
fn search(place: &str, text: &str) {
    for never in NEVER {
        if let Some(at) = text.find(never) {
            let from = text.floor_char_boundary(at.saturating_sub(200));
            let to = text.ceil_char_boundary((at + 60).min(text.len()));
            panic!("{never} is in {place}: ...{}...", &text[from..to]);
        }
    }
}
