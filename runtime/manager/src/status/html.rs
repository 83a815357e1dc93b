//! HTML that cannot be broken out of: literals of ours go in as they are, every text that is known only at run time goes in escaped.

use std::fmt::{Display, Write as _};

/// A page, or a part of one.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Markup. Being a literal, it carries nobody else's text.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text, also for the value of an attribute within double quotes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        let mut escaped = Escaped(&mut self.0);
        // Writing to a String cannot fail.
        let _ = write!(escaped, "{text}");
        self
    }

    /// Markup, text, markup.
    pub fn wrap(&mut self, before: &'static str, text: impl Display, after: &'static str) -> &mut Self {
        self.raw(before).text(text).raw(after)
    }

    /// The page.
    pub fn finish(self) -> String {
        self.0
    }
}

struct Escaped<'a>(&'a mut String);

impl std::fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for letter in text.chars() {
            match letter {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(letter),
                // Turns the direction of the text around it, so that it reads as something else than it is.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                letter if letter.is_control() => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_in_elements_and_attributes() {
        let mut html = Html::default();
        html.wrap("<a title=\"", "\" onclick='x'", "\">")
            .wrap("", "</a><script>1 && 2</script>", "</a>");
        assert_eq!(
            html.finish(),
            "<a title=\"&quot; onclick=&#39;x&#39;\">&lt;/a&gt;&lt;script&gt;1 &amp;&amp; 2&lt;/script&gt;</a>"
        );
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        let mut html = Html::default();
        html.text("a\u{202e}b\0c\r\nd\u{2069}\u{1b}[2J");
        assert_eq!(html.finish(), "a\u{fffd}b\u{fffd}c\u{fffd}\nd\u{fffd}\u{fffd}[2J");
    }
}
