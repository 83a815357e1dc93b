//! Asynchronous DNS by `/etc/resolv.conf` and `/etc/hosts`.
//!
//! `getaddrinfo` blocks a thread for as long as a name server is silent, and cannot be cancelled; a few slow names would fill the threads for blocking
//! work. Here a look-up is a future: dropped with its request, and blocking nothing while it waits. Each provider has a resolver of its own. Both files
//! are read again when they may have changed, on a thread for blocking work, and what was read before stays in use until then.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, TokioResolver};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::net::resolver::{Lookup, LookupFuture};

/// How often the files are read again, at most.
pub(super) const RECHECK: Duration = Duration::from_secs(5);

/// How long the files may take to be read again; those that were read before are used when they take longer.
const REREAD: Duration = Duration::from_secs(1);

/// Most that is read of each file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Longest time an answer is kept, whatever its own says: `getaddrinfo` kept none, and failover by DNS must not become slower.
const KEPT: Duration = Duration::from_secs(30);
const KEPT_NEGATIVE: Duration = Duration::from_secs(1);

/// Answers that are kept.
const ANSWERS: u64 = 128;

/// Questions under way on one connection to a name server; those in flight are bounded by the requests that wait for them.
const QUESTIONS: usize = 4096;

/// Where the system says how names are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverFiles {
    /// Name servers, search list, options: `resolv.conf(5)`.
    pub resolv_conf: PathBuf,
    /// Names resolved without a query: `hosts(5)`.
    pub hosts: PathBuf,
    /// Port of the name servers; 53 but in tests.
    pub port: u16,
}

impl Default for ResolverFiles {
    fn default() -> Self {
        Self {
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            port: 53,
        }
    }
}

/// A resolver that follows the system's files. Clones share it.
#[derive(Clone)]
pub struct SystemResolver(pub(super) Arc<Following>);

pub(super) struct Following {
    files: ResolverFiles,
    pub(super) current: Mutex<Option<Current>>,
}

pub(super) struct Current {
    resolver: TokioResolver,
    contents: Contents,
    pub(super) checked: Instant,
}

/// What the files say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    resolv_conf: Vec<u8>,
    hosts: Vec<u8>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(ResolverFiles::default())
    }
}

impl SystemResolver {
    /// By these files. Nothing is read before the first look-up.
    pub fn new(files: ResolverFiles) -> Self {
        Self(Arc::new(Following {
            files,
            current: Mutex::new(None),
        }))
    }
}

impl Lookup for SystemResolver {
    fn lookup(&self, name: &str) -> LookupFuture {
        let (following, name) = (Arc::clone(&self.0), name.to_owned());
        Box::pin(async move {
            let resolver = following.resolver().await?;
            let found = resolver.lookup_ip(name).await.map_err(|error| in_words(&error))?;
            Ok(found.iter().collect())
        })
    }
}

impl Following {
    /// The resolver for what the files say.
    async fn resolver(&self) -> io::Result<TokioResolver> {
        let mut current = self.current.lock().await;
        if let Some(known) = current.as_ref().filter(|known| known.checked.elapsed() < RECHECK) {
            return Ok(known.resolver.clone());
        }
        let files = self.files.clone();
        let reading = tokio::task::spawn_blocking(move || Contents::read(&files));
        let read = match &*current {
            Some(known) => timeout(REREAD, reading)
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or_else(|| known.contents.clone()),
            None => reading.await.map_err(io::Error::other)?,
        };
        let checked = Instant::now();
        if let Some(known) = current.as_mut().filter(|known| known.contents == read) {
            known.checked = checked;
            return Ok(known.resolver.clone());
        }
        let resolver = build(&read, self.files.port)?;
        *current = Some(Current {
            resolver: resolver.clone(),
            contents: read,
            checked,
        });
        Ok(resolver)
    }
}

impl Contents {
    /// A file that is not there says nothing, as in `resolv.conf(5)`.
    fn read(files: &ResolverFiles) -> Self {
        let read = |path: &PathBuf| {
            let mut bytes = Vec::new();
            let read = File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes));
            if let Err(error) = read {
                tracing::debug!(file = %path.display(), %error, "failed to read; resolving without it");
            }
            bytes
        };
        Self {
            resolv_conf: read(&files.resolv_conf),
            hosts: read(&files.hosts),
        }
    }
}

fn build(contents: &Contents, port: u16) -> io::Result<TokioResolver> {
    let local = || {
        // No name server means one on this machine (resolv.conf(5)).
        let servers = vec![NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into())];
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        (config, ResolverOpts::default())
    };
    let (config, mut options) = parse_resolv_conf(&contents.resolv_conf).unwrap_or_else(|_| local());
    let (domain, search, mut servers) = config.into_parts();
    for connection in servers.iter_mut().flat_map(|server| &mut server.connections) {
        connection.port = port;
    }
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = ANSWERS;
    options.positive_max_ttl = Some(KEPT);
    options.negative_max_ttl = Some(KEPT_NEGATIVE);
    options.max_active_requests = QUESTIONS;
    let config = ResolverConfig::from_parts(domain, search, servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    let mut resolver = builder.build().map_err(|error| in_words(&error))?;
    let mut hosts = Hosts::default();
    hosts.read_hosts_conf(contents.hosts.as_slice())?;
    resolver.set_hosts(Arc::new(hosts));
    Ok(resolver)
}

/// What went wrong, without the name: it may be the provider's own text.
fn in_words(error: &NetError) -> io::Error {
    let (kind, text) = match error {
        error if error.is_nx_domain() => (io::ErrorKind::NotFound, "no such name"),
        error if error.is_no_records_found() => (io::ErrorKind::NotFound, "the name has no address"),
        NetError::Timeout => (io::ErrorKind::TimedOut, "no name server answered in time"),
        NetError::Io(_) | NetError::NoConnections => (io::ErrorKind::NotConnected, "no name server can be reached"),
        _ => (io::ErrorKind::Other, "the name servers failed"),
    };
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests;
