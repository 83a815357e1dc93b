//! The annotations of a Service as values, with all mistakes found at once.
//!
//! A provider declares its annotations once, as a [`Table`]; the readers take key and default from it, and the table in its README is printed from
//! it. Mistakes are collected and returned in one `invalid`, before anything is changed:
//!
//! ```
//! use cloudwit_guest_sdk::annotations::{Annotation, Table};
//! use cloudwit_guest_sdk::{Pair, Service};
//!
//! const ANNOTATIONS: Table = Table::new("lab.example/", &[
//!     Annotation::new("internal", "false", "`true`: no address on the Internet"),
//!     Annotation::new("idle-timeout", "60", "seconds without traffic, 1 to 4000"),
//!     Annotation::new("protocol", "tcp", "`tcp` or `http`"),
//! ]);
//!
//! let mut service = Service::new("default", "web", "1");
//! service.annotations = vec![Pair::new("lab.example/internal", "yes"), Pair::new("lab.example/idle-timeout", "0")];
//! let mut read = ANNOTATIONS.read(&service);
//! let (_internal, _idle) = (read.boolean("internal"), read.integer("idle-timeout", 1..=4000));
//! assert_eq!(read.word("protocol", &[("tcp", 6), ("http", 80)]), Some(6));
//! assert_eq!(
//!     read.finish().unwrap_err().message(),
//!     "lab.example/internal is \"yes\", but has to be true or false; lab.example/idle-timeout is \"0\", but has to be a whole \
//!      number from 1 to 4000"
//! );
//! ```

use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::Context;
use crate::cidr;
use crate::config::mistakes::nearest;
use crate::types::{EventKind, Failure, Service};

/// One annotation.
#[derive(Debug, Clone, Copy)]
pub struct Annotation {
    key: &'static str,
    default: &'static str,
    meaning: &'static str,
}

impl Annotation {
    /// `key` is what follows the table's prefix, or the whole key if it has a slash; `{port}` in it is the number of a port ([`Reader::port`]). `default` is written as in an annotation and read by the
    /// same reader; empty where there is none, or it comes from the configuration (note that in `meaning`).
    pub const fn new(key: &'static str, default: &'static str, meaning: &'static str) -> Self {
        Self { key, default, meaning }
    }
}

/// All annotations of a provider.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    prefix: &'static str,
    rows: &'static [Annotation],
}

impl Table {
    /// `prefix` is what all keys without a slash begin with: `service.beta.kubernetes.io/aws-load-balancer-`.
    pub const fn new(prefix: &'static str, rows: &'static [Annotation]) -> Self {
        Self { prefix, rows }
    }

    /// Begins to read the annotations of a Service.
    pub const fn read<'a>(&'a self, service: &'a Service) -> Reader<'a> {
        Reader {
            table: self,
            service,
            port: None,
            mistakes: Vec::new(),
        }
    }

    /// The whole key of an annotation.
    pub fn key(&self, key: &str) -> String {
        if key.contains('/') {
            key.into()
        } else {
            format!("{}{key}", self.prefix)
        }
    }

    /// Warnings about annotations of this Service that begin with the prefix but are in no row: most likely misspelt.
    pub fn unknown(&self, service: &Service) -> Vec<String> {
        let mut warnings = Vec::new();
        for key in service.annotations.iter().map(|pair| pair.key.as_str()) {
            let Some(rest) = key.strip_prefix(self.prefix) else {
                continue;
            };
            if self.rows.iter().any(|row| row.key == rest || row.key == key) {
                continue;
            }
            let mut text = format!("the annotation {key} is not known and has no effect");
            if let Some(name) = nearest(rest, self.rows.iter().map(|row| row.key)) {
                text.push_str("; did you mean ");
                text.push_str(&self.key(name));
                text.push('?');
            }
            warnings.push(text);
        }
        warnings
    }

    /// Writes an Event on the Service of this call for each of its [`unknown`](Self::unknown) annotations.
    pub fn warn_unknown(&self, service: &Service, cloud: &Context) {
        for warning in self.unknown(service) {
            cloud.service_event(EventKind::Warning, "UnknownAnnotation", &warning);
        }
    }

    /// The table for a README, in Markdown. `testing::assert_readme` makes sure that it is there.
    pub fn markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|");
        let mut text = String::from("| Annotation | Default | Meaning |\n| ---------- | ------- | ------- |\n");
        for row in self.rows {
            let default = match row.default {
                "" => String::new(),
                value => format!("`{value}`"),
            };
            let (key, default, meaning) = (self.key(row.key), cell(&default), cell(row.meaning));
            text.push_str(&format!("| `{key}` | {default} | {meaning} |\n"));
        }
        text
    }
}

/// Reads annotations and collects what is wrong with them.
///
/// Each reader gives the annotation's value, else the table's default, else none. One that is wrong counts as none, and
/// [`finish`](Self::finish) reports it. Blanks around values do not count, and an annotation with an empty value counts as an absent one, as
/// with upstream's providers.
#[derive(Debug)]
#[must_use = "finish() tells the mistakes"]
pub struct Reader<'a> {
    table: &'a Table,
    service: &'a Service,
    port: Option<u16>,
    mistakes: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Continues with the annotations of one port: `{port}` in keys is replaced by its number, until the next call.
    pub const fn port(&mut self, number: u16) {
        self.port = Some(number);
    }

    /// The text as it is.
    pub fn text(&mut self, key: &str) -> Option<&'a str> {
        self.value(key)
    }

    /// Whether the annotation is present, whatever its value.
    pub fn is_set(&self, key: &str) -> bool {
        self.service.annotation(&self.key(key)).is_some()
    }

    /// True or false, in the spellings of Go's `strconv.ParseBool`, which upstream's providers take.
    pub fn boolean(&mut self, key: &str) -> Option<bool> {
        let text = self.text(key)?;
        match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => self.wrong(key, "true or false"),
        }
    }

    /// A whole number within bounds.
    pub fn integer(&mut self, key: &str, allowed: RangeInclusive<i64>) -> Option<i64> {
        let text = self.text(key)?;
        match text.parse() {
            Ok(number) if allowed.contains(&number) => Some(number),
            _ => {
                let (from, to) = (allowed.start().to_string(), allowed.end().to_string());
                self.wrong(key, &format!("a whole number from {from} to {to}"))
            }
        }
    }

    /// One of these words, in any case, as its value.
    pub fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            return self.wrong(key, &words.join(" or "));
        }
        found.map(|(_, value)| *value)
    }

    /// What is between commas; empty entries do not count.
    pub fn list(&mut self, key: &str) -> Option<Vec<&'a str>> {
        Some(entries(self.text(key)?).collect())
    }

    /// `key=value,key=value`; `key` and `key=` have an empty value.
    pub fn map(&mut self, key: &str) -> Option<Vec<(&'a str, &'a str)>> {
        let pairs: Vec<_> = entries(self.text(key)?)
            .map(|entry| entry.split_once('=').unwrap_or((entry, "")))
            .map(|(name, value)| (name.trim_ascii(), value.trim_ascii()))
            .collect();
        if pairs.iter().any(|(name, _)| name.is_empty()) {
            return self.wrong(key, "a list like key=value,key=value");
        }
        Some(pairs)
    }

    /// Networks between commas.
    pub fn cidrs(&mut self, key: &str) -> Option<Vec<IpNet>> {
        let cidrs: Result<Vec<IpNet>, Failure> = entries(self.text(key)?).map(cidr::parse).collect();
        match cidrs {
            Ok(cidrs) => Some(cidrs),
            Err(_) => self.wrong(key, "a list of networks like 10.0.0.0/8,fd00::/64"),
        }
    }

    /// Notes that an annotation's value is wrong, for checks that no reader makes: what is `allowed`, in words that continue `... but has to be`.
    pub fn wrong<T>(&mut self, key: &str, allowed: &str) -> Option<T> {
        let whole = self.key(key);
        let value = self.service.annotation(&whole).unwrap_or_default();
        self.mistake(format!("{whole} is {value:?}, but has to be {allowed}"));
        None
    }

    /// Notes a mistake that is more than one value: annotations that exclude each other, or need a port that is not there.
    pub fn mistake(&mut self, text: impl Into<String>) {
        let text = text.into();
        // An annotation that is read for each port is wrong once.
        if !self.mistakes.contains(&text) {
            self.mistakes.push(text);
        }
    }

    /// Success if there was no mistake.
    ///
    /// # Errors
    /// `invalid` with all of them.
    pub fn finish(self) -> Result<(), Failure> {
        if self.mistakes.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid(self.mistakes.join("; ")))
        }
    }

    /// The whole key, with the number of the port.
    fn key(&self, key: &str) -> String {
        let whole = self.table.key(key);
        match self.port {
            Some(number) => whole.replace("{port}", &number.to_string()),
            None => whole,
        }
    }

    /// The annotation's value, else the default.
    fn value(&self, key: &str) -> Option<&'a str> {
        let row = self.table.rows.iter().find(|row| row.key == key);
        debug_assert!(row.is_some(), "the annotation {key} is in no row of the table");
        let written = self.service.annotation(&self.key(key)).map(str::trim_ascii);
        let value = written.filter(|text| !text.is_empty());
        value.or(row.map(|row| row.default)).filter(|text| !text.is_empty())
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim_ascii).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests;
