//! Regular expressions, as much of Go's as names of subnets need, in a few kilobytes of component instead of a crate's hundred.
//!
//! Known: text, `.`, `[a-z]`, `[^a-z]`, `\d \w \s` and their opposites, `(..)`, `|`, `* + ? {n} {n,} {n,m}`, `^`, `$`, `(?i)` at the
//! beginning. Anything else is refused when it is read, never matched wrongly.

use cloudwit_guest_sdk::without_std::prelude::*;

/// Steps after which matching gives up: only patterns like `(a*)*b` need so many for a name.
const FUEL: u32 = 200_000;
/// Deepest nesting of groups.
const DEEPEST: u32 = 20;
/// Largest number in `{n,m}`.
const MOST: u32 = 1_000;

/// A pattern that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    alternatives: Vec<Vec<Node>>,
    lower: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A character in one of these ranges, or in none of them.
    Class(Vec<(char, char)>, bool),
    Start,
    End,
    Group(Vec<Vec<Node>>),
    Repeat(Box<Node>, u32, u32),
}

impl Pattern {
    /// Reads a regular expression. It matches a text that contains it.
    ///
    /// # Errors
    /// What is wrong, or not known here.
    pub fn regex(text: &str) -> Result<Self, &'static str> {
        let (text, lower) = text.strip_prefix("(?i)").map_or((text, false), |rest| (rest, true));
        let folded = if lower { text.to_ascii_lowercase() } else { text.into() };
        // `\D` is not `\d`: only what is no escape is folded.
        let letters: Vec<char> = if lower && text.contains('\\') {
            text.chars().collect()
        } else {
            folded.chars().collect()
        };
        let mut reader = Reader {
            letters: &letters,
            at: 0,
        };
        let alternatives = reader.alternatives(0)?;
        if reader.at < letters.len() {
            return Err("a ) without its (");
        }
        Ok(Self { alternatives, lower })
    }

    /// Reads a glob: `*` for any text, `?` for any character. It matches whole texts.
    pub fn glob(text: &str) -> Self {
        let any = || Node::Class(Vec::new(), true);
        let nodes = text.chars().map(|letter| match letter {
            '*' => Node::Repeat(Box::new(any()), 0, u32::MAX),
            '?' => any(),
            letter => Node::Class(vec![(letter, letter)], false),
        });
        let alternatives = vec![core::iter::once(Node::Start).chain(nodes).chain([Node::End]).collect()];
        Self {
            alternatives,
            lower: false,
        }
    }

    /// Whether the text matches.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = if self.lower {
            text.to_ascii_lowercase()
        } else {
            text.into()
        }
        .chars()
        .collect();
        let mut matcher = Matcher {
            text: &text,
            fuel: FUEL,
        };
        (0..=text.len()).any(|start| {
            self.alternatives
                .iter()
                .any(|nodes| matcher.run(nodes, start, &mut |_, _| true))
        })
    }
}

/// Characters from the first to the last one of each.
type Ranges = Vec<(char, char)>;

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn eat(&mut self, letter: char) -> bool {
        let there = self.peek() == Some(letter);
        self.at += usize::from(there);
        there
    }

    fn alternatives(&mut self, depth: u32) -> Result<Vec<Vec<Node>>, &'static str> {
        if depth > DEEPEST {
            return Err("groups within groups within groups");
        }
        let mut all = vec![Vec::new()];
        while let Some(letter) = self.peek().filter(|letter| *letter != ')') {
            self.at += 1;
            if letter == '|' {
                all.push(Vec::new());
                continue;
            }
            let node = self.node(letter, depth)?;
            let node = self.repeated(node)?;
            if let Some(nodes) = all.last_mut() {
                nodes.push(node);
            }
        }
        Ok(all)
    }

    fn node(&mut self, letter: char, depth: u32) -> Result<Node, &'static str> {
        Ok(match letter {
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::Class(Vec::new(), true),
            '[' => self.class()?,
            '\\' => {
                let (ranges, negated) = self.escape()?;
                Node::Class(ranges, negated)
            }
            '(' => {
                if self.eat('?') && !self.eat(':') {
                    return Err("(? is only known as (?: and as (?i) at the beginning");
                }
                let inner = self.alternatives(depth + 1)?;
                if !self.eat(')') {
                    return Err("a ( without its )");
                }
                Node::Group(inner)
            }
            '*' | '+' | '?' | '{' => return Err("nothing to repeat"),
            letter => Node::Class(vec![(letter, letter)], false),
        })
    }

    fn repeated(&mut self, node: Node) -> Result<Node, &'static str> {
        let (least, most) = match self.peek() {
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                self.at += 1;
                let least = self.number().ok_or("a number is expected after {")?;
                let most = if self.eat(',') {
                    self.number().unwrap_or(u32::MAX)
                } else {
                    least
                };
                if self.peek() != Some('}') || least > most || least > MOST || (most > MOST && most != u32::MAX) {
                    return Err("{n,m} is wrong");
                }
                (least, most)
            }
            _ => return Ok(node),
        };
        self.at += 1;
        // Whether it is greedy makes no difference to whether it matches.
        self.eat('?');
        if matches!(self.peek(), Some('*' | '+' | '?' | '{')) {
            return Err("a repetition of a repetition");
        }
        Ok(Node::Repeat(Box::new(node), least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let start = self.at;
        while self.peek().is_some_and(|letter| letter.is_ascii_digit()) {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect::<String>().parse().ok()
    }

    fn escape(&mut self) -> Result<(Ranges, bool), &'static str> {
        let letter = self.take().ok_or("a backslash at the end")?;
        let ranges = match letter.to_ascii_lowercase() {
            'd' => vec![('0', '9')],
            'w' => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            's' => vec![('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')],
            _ if letter.is_alphanumeric() => return Err("an escape that is not known"),
            _ => vec![(letter, letter)],
        };
        Ok((ranges, letter.is_ascii_uppercase()))
    }

    fn class(&mut self) -> Result<Node, &'static str> {
        let negated = self.eat('^');
        let mut ranges = Vec::new();
        loop {
            let first = match self.take().ok_or("a [ without its ]")? {
                ']' if !ranges.is_empty() => return Ok(Node::Class(ranges, negated)),
                '\\' => match self.escape()? {
                    (escaped, false) => {
                        ranges.extend(escaped);
                        continue;
                    }
                    _ => return Err("a negated escape within [ ]"),
                },
                '[' if self.peek() == Some(':') => return Err("[: is not known"),
                letter => letter,
            };
            let mut last = first;
            if self.peek() == Some('-') && self.letters.get(self.at + 1).is_some_and(|next| *next != ']') {
                self.at += 1;
                last = self
                    .take()
                    .filter(|last| *last >= first && *last != '\\')
                    .ok_or("a range that is wrong")?;
            }
            ranges.push((first, last));
        }
    }
}

struct Matcher<'t> {
    text: &'t [char],
    fuel: u32,
}

/// What has to match after it.
type Rest<'k, 't> = &'k mut dyn FnMut(&mut Matcher<'t>, usize) -> bool;

impl<'t> Matcher<'t> {
    fn run(&mut self, nodes: &[Node], at: usize, rest: Rest<'_, 't>) -> bool {
        if self.fuel == 0 {
            return false;
        }
        self.fuel -= 1;
        let Some((node, after)) = nodes.split_first() else {
            return rest(self, at);
        };
        match node {
            Node::Start => at == 0 && self.run(after, at, rest),
            Node::End => at == self.text.len() && self.run(after, at, rest),
            Node::Class(ranges, negated) => {
                let Some(letter) = self.text.get(at) else {
                    return false;
                };
                let within = ranges.iter().any(|(first, last)| (first..=last).contains(&letter));
                within != *negated && self.run(after, at + 1, rest)
            }
            Node::Group(alternatives) => alternatives
                .iter()
                .any(|inner| self.run(inner, at, &mut |matcher, at| matcher.run(after, at, rest))),
            Node::Repeat(inner, least, most) => self.repeat(inner, (*least, *most), after, at, rest),
        }
    }

    fn repeat(
        &mut self,
        inner: &Node,
        (least, most): (u32, u32),
        after: &[Node],
        at: usize,
        rest: Rest<'_, 't>,
    ) -> bool {
        let left = (
            least.saturating_sub(1),
            if most == u32::MAX { most } else { most.saturating_sub(1) },
        );
        let again = most > 0
            && self.run(core::slice::from_ref(inner), at, &mut |matcher, next| {
                // A round that takes nothing would go on for ever.
                (next > at || least > 0) && matcher.repeat(inner, left, after, next, rest)
            });
        again || (least == 0 && self.run(after, at, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_match_as_in_go() {
        for (pattern, yes, no) in [
            ("public", &["public", "the-public-net"][..], &["Public", ""][..]),
            ("^public$", &["public"], &["public-1"]),
            ("^(a|bc)+$", &["a", "bca"], &["", "b", "abb"]),
            (
                r"^net-\d{2,3}$",
                &["net-12", "net-123"],
                &["net-1", "net-1234", "net-ab"],
            ),
            ("[^a-c]x[]]", &["dx]"], &["ax]", "x]"]),
            (r"^\w+\.\S*$", &["ab_9.", "a.b"], &["a-b.c", "a. "]),
            ("(?i)PUBLIC", &["a public one"], &["publi"]),
            ("^(?:a*)*b?$", &["", "aaab"], &["aac"]),
            ("^a.?c$", &["ac", "abc"], &["abbc"]),
            ("a|^$", &["", "xa"], &["x"]),
        ] {
            let read = Pattern::regex(pattern).unwrap();
            assert!(
                yes.iter().all(|text| read.matches(text)),
                "{pattern} should match {yes:?}"
            );
            assert!(
                !no.iter().any(|text| read.matches(text)),
                "{pattern} should match none of {no:?}"
            );
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for wrong in [
            "(",
            ")",
            "[",
            "[a",
            "*a",
            "a**",
            "a{2",
            "a{3,2}",
            "(?=a)",
            r"\b",
            r"\",
            "[[:alpha:]]",
            "[b-a]",
            r"[\D]",
            "a{9999}",
        ] {
            assert!(Pattern::regex(wrong).is_err(), "{wrong}");
        }
        assert!(Pattern::regex(&"(".repeat(50)).is_err());
    }

    #[test]
    fn a_pattern_that_would_take_for_ever_ends() {
        assert!(
            !Pattern::regex("^(a|a|aa)*$")
                .unwrap()
                .matches(&["a".repeat(60), "b".into()].concat())
        );
    }

    #[test]
    fn globs_match_whole_names() {
        assert!(Pattern::glob("public-*").matches("public-") && Pattern::glob("p?b").matches("pub"));
        assert!(!Pattern::glob("public").matches("public-1") && !Pattern::glob("a.c").matches("abc"));
    }
}
