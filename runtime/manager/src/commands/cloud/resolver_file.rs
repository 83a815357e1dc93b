//! `resolv.conf`: what is read of it (resolv.conf(5)), and how it is written again.

use std::fmt::Write as _;
use std::net::IpAddr;

use cloudwit_model::Resolver;
use cloudwit_model::dns_name::is_domain;
use cloudwit_model::resolver::{MAX_NAMESERVERS, MAX_SEARCHES, is_nameserver};

/// The most bytes of a file; a long one has a few hundred.
pub const MAX_FILE: usize = 64 << 10;

/// Options that are kept; glibc has some 20.
const MAX_OPTIONS: usize = 32;

/// The most bytes of one of them.
const MAX_OPTION: usize = 32;

/// Name servers that resolvers and Pods use; further ones count for nothing (`k8s.io/kubernetes/pkg/apis/core/validation`, `MaxDNSNameservers`).
pub const USED_NAMESERVERS: usize = 3;

/// Characters of all search domains with a blank between them that a Pod can have (likewise, `MaxDNSSearchListChars`).
pub const USED_SEARCH_CHARS: usize = 2048;

/// A file that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolverFile {
    /// Name servers and search domains.
    pub resolver: Resolver,
    /// Options, which stay as they are.
    pub options: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

impl ResolverFile {
    /// Reads a file. What is no name server, no domain or no option is left out; what is unknown too.
    pub fn read(text: &str) -> Self {
        let mut file = Self::default();
        for line in text.lines() {
            let line = line.trim_start();
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => file.add_server(words.next().unwrap_or_default()),
                // The last of these lines counts, whichever it is.
                Some("search") => file.set_searches(words),
                Some("domain") => file.set_searches(words.take(1)),
                Some("options") => words.for_each(|option| file.add_option(option)),
                _ => {}
            }
        }
        file
    }

    fn add_server(&mut self, text: &str) {
        if !is_nameserver(text) {
            self.left_out
                .push(format!("name server {text:?}: it is not an IP address"));
        } else if self.resolver.nameservers.len() < MAX_NAMESERVERS {
            self.resolver.nameservers.push(text.to_owned());
        } else {
            self.left_out
                .push(format!("name server {text}: there are {MAX_NAMESERVERS} already"));
        }
    }

    fn set_searches<'a>(&mut self, words: impl Iterator<Item = &'a str>) {
        self.resolver.searches.clear();
        for text in words {
            if !is_domain(text) {
                self.left_out
                    .push(format!("search domain {text:?}: it is not a domain"));
            } else if self.resolver.searches.len() < MAX_SEARCHES {
                self.resolver.searches.push(text.to_owned());
            } else {
                self.left_out
                    .push(format!("search domain {text}: there are {MAX_SEARCHES} already"));
            }
        }
    }

    fn add_option(&mut self, text: &str) {
        let is_good = text.len() <= MAX_OPTION
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte));
        if !is_good || self.options.len() >= MAX_OPTIONS {
            self.left_out.push(format!(
                "option {:?}",
                text.chars().take(MAX_OPTION).collect::<String>()
            ));
        } else if !self.options.iter().any(|there| there == text) {
            self.options.push(text.to_owned());
        }
    }

    /// Whether all its name servers are this machine itself, as with systemd-resolved: a Pod does not reach them, and CoreDNS would query itself.
    pub fn is_loopback(&self) -> bool {
        let servers = &self.resolver.nameservers;
        let is_own = |text: &String| text.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        !servers.is_empty() && servers.iter().all(is_own)
    }

    /// What resolvers and the kubelet do not use of it.
    pub fn unused(&self) -> Vec<String> {
        let Resolver { nameservers, searches } = &self.resolver;
        let mut unused = Vec::new();
        if nameservers.len() > USED_NAMESERVERS {
            unused.push(format!(
                "there are {} name servers; the first {USED_NAMESERVERS} are used",
                nameservers.len()
            ));
        }
        let chars = searches
            .iter()
            .map(|search| search.len() + 1)
            .sum::<usize>()
            .saturating_sub(1);
        if chars > USED_SEARCH_CHARS {
            unused.push(format!(
                "the search domains have {chars} characters; the kubelet uses the first {USED_SEARCH_CHARS}"
            ));
        }
        unused
    }
}

impl std::fmt::Display for ResolverFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for server in &self.resolver.nameservers {
            writeln!(f, "nameserver {server}")?;
        }
        let mut line = |word: &str, words: &[String]| match words.is_empty() {
            true => Ok(()),
            false => {
                f.write_str(word)?;
                words.iter().try_for_each(|word| write!(f, " {word}"))?;
                f.write_char('\n')
            }
        };
        line("search", &self.resolver.searches)?;
        line("options", &self.options)
    }
}

#[cfg(test)]
mod tests;
