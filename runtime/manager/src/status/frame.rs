//! Frame of all HTML pages: head, header with search, footer, security headers.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::status::facts::{Moment, Process};
use crate::status::table::ago;

const STYLE: &str = include_str!("page.css");

/// A page renews itself after so many seconds.
const RENEWAL: u32 = 10;

/// What is looked for has at most so many characters: a namespace, a slash and a name.
pub const LONGEST_QUERY: usize = 317;

/// What a browser may do with a page: show it with our style, and send requests to this server. `nonce` is in [`Frame`] too.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

/// What is around a page.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Of the window.
    pub title: &'a str,
    /// Marks the style as ours and is different each time.
    pub nonce: &'a str,
    /// Whether the page renews itself.
    pub renews: bool,
    /// Its own path.
    pub path: &'a str,
    /// What is looked for; empty where nothing is.
    pub query: &'a str,
    /// This process.
    pub process: &'a Process,
    /// Now.
    pub at: Moment,
}

impl Frame<'_> {
    /// The whole page. Characters that would make a text read as something else than it is are replaced.
    pub fn around(&self, content: &Markup) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body {
                    (self.header())
                    main { (content) }
                    (self.footer())
                }
            }
        };
        page.into_string().chars().map(visible).collect()
    }

    fn head(&self) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if self.renews { meta http-equiv="refresh" content=(RENEWAL); }
                // An empty picture, so that no browser requests another one.
                link rel="icon" href="data:,";
                title { (self.title) " \u{2013} Cloudwit" }
                style nonce=(self.nonce) { (PreEscaped(STYLE)) }
            }
        }
    }

    fn header(&self) -> Markup {
        let process = self.process;
        html! {
            header {
                span { a class="home" href="/" { "Cloudwit" } " " (process.version) " \u{b7} cluster " b { (process.cluster) } }
                form role="search" method="get" action="/" {
                    @if !self.renews { input type="hidden" name="renew" value="off"; }
                    input type="search" name="q" value=(self.query) maxlength=(LONGEST_QUERY) size="22"
                        aria-label="Part of the name of a Node or Service" placeholder="Node or Service";
                    button type="submit" { "Find" }
                }
            }
        }
    }

    fn footer(&self) -> Markup {
        let process = self.process;
        html! {
            footer {
                p {
                    "As of " (self.at.clock()) ", by " (process.identity) ", started " (ago(process.started, self.at)) ". "
                    @if self.renews {
                        "This page renews itself every " (RENEWAL) " seconds; "
                        a href=(self.link("renew=off")) { "hold it still" } "."
                    } @else {
                        "This page is held still; " a href=(self.link("")) { "let it renew itself" } "."
                    }
                }
            }
        }
    }

    /// This page again, with what is looked for.
    fn link(&self, renew: &str) -> String {
        let query = match self.query {
            "" => String::new(),
            query => format!("q={}", encoded(query)),
        };
        let pairs: Vec<&str> = [renew, query.as_str()]
            .into_iter()
            .filter(|pair| !pair.is_empty())
            .collect();
        match pairs.is_empty() {
            true => self.path.to_owned(),
            false => format!("{}?{}", self.path, pairs.join("&")),
        }
    }
}

/// As in a URL's query.
fn encoded(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(byte.into()),
            // Writing to a String cannot fail.
            other => drop(write!(url, "%{other:02X}")),
        }
    }
    url
}

/// Control characters, and those that turn the direction of the text around them, would make a text read as something else than it is.
fn visible(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::verdict::tests::{at, facts};

    fn page(query: &str, renews: bool) -> String {
        let frame = Frame {
            title: "All well.",
            nonce: "abc",
            renews,
            path: "/",
            query,
            process: &facts().process,
            at: at(3600),
        };
        frame.around(&html! { p { "content" } })
    }

    #[test]
    fn what_is_looked_for_stays_in_the_form_and_in_the_links() {
        let page = page("a b\"&<", true);
        assert!(page.contains("value=\"a b&quot;&amp;&lt;\""), "{page}");
        assert!(page.contains("href=\"/?renew=off&amp;q=a%20b%22%26%3C\""), "{page}");
    }

    #[test]
    fn a_search_of_a_page_that_is_held_still_holds_still() {
        assert!(page("x", false).contains("<input type=\"hidden\" name=\"renew\" value=\"off\">"));
        assert!(page("x", false).contains("href=\"/?q=x\""));
        assert!(!page("x", true).contains("type=\"hidden\""));
    }

    #[test]
    fn the_policy_lets_the_form_ask_this_server_alone() {
        assert!(policy("abc").contains("form-action 'self'") && !policy("abc").contains("unsafe"));
    }
}
