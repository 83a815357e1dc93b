//! Shape of a failure's text, without names and numbers. Texts of one shape have one cause.

/// More words of a text do not distinguish causes.
const BYTES: usize = 200;

/// The text without the object's own name and without words that have a digit in them: ids, addresses, times. `name` is `NAME` or
/// `NAMESPACE/NAME`, or empty.
pub fn shape(text: &str, name: &str) -> String {
    let text = &text[..text.floor_char_boundary(BYTES)];
    let bare = name.rsplit('/').next().unwrap_or_default();
    let is_name = |word: &str| !name.is_empty() && (word == name || word == bare);
    let ends = |letter: char| letter.is_whitespace() || "\"'(),;=".contains(letter);
    let word = |word: &str| match word.contains(|letter: char| letter.is_ascii_digit()) || is_name(word) {
        true => "#".to_owned(),
        false => word.to_owned(),
    };
    let words = text.split(ends).map(|one| one.trim_end_matches(['.', ':']));
    let words = words.filter(|word| !word.is_empty());
    words.map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_left_out() {
        assert_eq!(shape("", "a"), "");
        assert_eq!(shape("machine web-1 (i-07) is gone.", "web-1"), "machine # # is gone");
        assert_eq!(shape("no machine web", "default/web"), "no machine #");
        assert_eq!(shape("denied: wrong password", ""), "denied wrong password");
        assert_eq!(shape("503: try again", ""), "# try again");
    }

    #[test]
    fn long_texts_have_short_shapes() {
        assert!(shape(&"\u{e4} ".repeat(1000), "a").len() <= BYTES);
    }
}
