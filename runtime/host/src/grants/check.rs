//! Validation of grants: all mistakes at once, without reading files. Pure.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::grants::{self, GrantProblem, Grants, HttpGrant, SecretGrant, SecretUse};
use crate::net::destination::{Binding, HostPattern, Scheme};
use crate::net::tls::thumbprint::{NO_THUMBPRINT, Thumbprint};

/// Collects problems below one path.
struct Checker<'a> {
    problems: &'a mut Vec<GrantProblem>,
    path: String,
}

impl Checker<'_> {
    fn wrong(&mut self, field: &str, value: impl fmt::Display, wrong: &str, fix: impl Into<String>) {
        let (path, value) = (format!("{}.{field}", self.path), value.to_string());
        self.problems.push(GrantProblem {
            path,
            value,
            wrong: wrong.into(),
            fix: fix.into(),
        });
    }
}

/// All mistakes, in the order of the file.
pub fn problems(grants: &Grants) -> Vec<GrantProblem> {
    let mut problems = Vec::new();
    for (at, grant) in grants.http.iter().enumerate() {
        check_http(
            grant,
            &mut Checker {
                problems: &mut problems,
                path: format!("http[{at}]"),
            },
        );
    }
    let mut names = BTreeSet::new();
    for (at, grant) in grants.secrets.iter().enumerate() {
        let mut checker = Checker {
            problems: &mut problems,
            path: format!("secrets[{at}]"),
        };
        if !names.insert(&grant.name) {
            checker.wrong(
                "name",
                &grant.name,
                "is there twice",
                "keep one entry and put all its hosts and uses there",
            );
        }
        check_secret(grant, &grants.http, &mut checker);
    }
    problems
}

fn check_http(grant: &HttpGrant, checker: &mut Checker<'_>) {
    if grant.host.is_empty() {
        checker.wrong("host", "", "is missing", "write a name, an IP address or *.example.com");
    } else if HostPattern::parse(&grant.host).is_none() {
        let fix = "write a name (in ASCII), an IP address or *.example.com; scheme, port and path do not belong here";
        checker.wrong("host", &grant.host, "is not a valid host", fix);
    }
    if grant.port == Some(0) {
        checker.wrong(
            "port",
            0,
            "is not a valid port",
            "write 1 to 65535, or leave it out for the scheme's own",
        );
    }
    if grant.methods.is_empty() {
        checker.wrong(
            "methods",
            "",
            "is empty and so grants nothing",
            "name methods, or leave it out for the usual ones",
        );
    }
    for (at, method) in grant.methods.iter().enumerate() {
        let field = format!("methods[{at}]");
        if method == "CONNECT" {
            checker.wrong(&field, method, "opens tunnels and can never be granted", "remove it");
        } else if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
            checker.wrong(
                &field,
                method,
                "is not a valid method",
                "write it in upper case, such as GET",
            );
        }
    }
    if let (Scheme::Http, Some(ca)) = (grant.scheme, &grant.ca) {
        checker.wrong(
            "ca",
            ca.display(),
            "has no effect with scheme http",
            "remove it or use scheme https",
        );
    }
    check_thumbprints(grant, checker);
    check_client_certificate(grant, checker);
    check_budget(grant, checker);
    check_proxy(grant.proxy.as_deref(), checker);
    check_path("ca", grant.ca.as_deref(), checker);
    for (field, value) in [
        ("connectTimeoutSeconds", u64::from(grant.connect_timeout_seconds)),
        ("responseTimeoutSeconds", u64::from(grant.response_timeout_seconds)),
        ("maxResponseBytes", grant.max_response_bytes),
    ] {
        if value == 0 {
            checker.wrong(
                field,
                0,
                "allows nothing",
                "write a positive number, or leave it out for the default",
            );
        }
    }
}

fn check_thumbprints(grant: &HttpGrant, checker: &mut Checker<'_>) {
    for (at, text) in grant.thumbprints.iter().enumerate() {
        if Thumbprint::parse(text).is_none() {
            let (wrong, fix) = NO_THUMBPRINT;
            checker.wrong(&format!("thumbprints[{at}]"), text, wrong, fix);
        }
    }
    if grant.thumbprints.is_empty() {
        return;
    }
    let (wrong, fix) = if grant.scheme == Scheme::Http {
        ("has no effect with scheme http", "remove it or use scheme https")
    } else if grant.ca.is_some() {
        ("says whom to trust, and so does ca", "keep one of them")
    } else if grant.proxy.as_ref().is_some_and(|url| url.starts_with("https:")) {
        (
            "would have to be the proxy's too",
            "use an http:// proxy, or ca in place of thumbprints",
        )
    } else {
        return;
    };
    checker.wrong("thumbprints", grant.thumbprints.join(", "), wrong, fix);
}

fn check_client_certificate(grant: &HttpGrant, checker: &mut Checker<'_>) {
    let (certificate, key) = (grant.client_certificate.as_deref(), grant.client_key.as_deref());
    check_path("clientCertificate", certificate, checker);
    check_path("clientKey", key, checker);
    let (certificate, key) = match (certificate, key) {
        (None, None) => return,
        (Some(_), None) => {
            let fix = "name the file of its private key, or remove clientCertificate";
            checker.wrong("clientKey", "", "is missing beside clientCertificate", fix);
            return;
        }
        (None, Some(_)) => {
            let fix = "name the file of the key's certificate, or remove clientKey";
            checker.wrong("clientCertificate", "", "is missing beside clientKey", fix);
            return;
        }
        (Some(certificate), Some(key)) => (certificate, key),
    };
    let (field, value, wrong, fix) = if grant.scheme == Scheme::Http {
        (
            "clientCertificate",
            certificate,
            "has no effect with scheme http",
            "remove it and clientKey, or use scheme https",
        )
    } else if grant.proxy.as_ref().is_some_and(|url| url.starts_with("https:")) {
        (
            "clientCertificate",
            certificate,
            "would be presented to the proxy too",
            "use an http:// proxy, through which TLS goes to the host itself",
        )
    } else if !key.as_os_str().is_empty() && certificate == key {
        (
            "clientKey",
            key,
            "is the file of clientCertificate too",
            "put the private key into a file of its own: certificates are no secrets, and are kept with the configuration",
        )
    } else {
        return;
    };
    checker.wrong(field, value.display(), wrong, fix);
}

fn check_budget(grant: &HttpGrant, checker: &mut Checker<'_>) {
    if let Some(rate) = grant.requests_per_second
        && !(0.001..=10_000.0).contains(&rate)
    {
        let fix = "write 0.001 to 10000, or leave it out for no limit";
        checker.wrong("requestsPerSecond", rate, "is out of range", fix);
    }
    match (grant.burst, grant.requests_per_second) {
        (Some(burst), _) if !(1..=10_000).contains(&burst) => {
            let fix = "write 1 to 10000, or leave it out for the requests of one second";
            checker.wrong("burst", burst, "is out of range", fix);
        }
        (Some(burst), None) => {
            let fix = "add requestsPerSecond or remove it";
            checker.wrong("burst", burst, "has no effect without requestsPerSecond", fix);
        }
        _ => {}
    }
}

/// Never repeats the value, since people put passwords into proxy URLs.
fn check_proxy(proxy: Option<&str>, checker: &mut Checker<'_>) {
    let Some(proxy) = proxy else { return };
    match proxy.parse::<reqwest::Url>() {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            checker.wrong(
                "proxy",
                "",
                "contains credentials, which are not supported",
                "write only http://HOST:PORT",
            );
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {}
        _ => checker.wrong(
            "proxy",
            "",
            "is not the URL of an HTTP proxy",
            "write http://HOST:PORT or https://HOST:PORT",
        ),
    }
}

fn check_path(field: &str, path: Option<&Path>, checker: &mut Checker<'_>) {
    if path.is_some_and(|path| path.as_os_str().is_empty()) {
        checker.wrong(field, "", "is empty", "write the path of a file");
    }
}

fn check_secret(grant: &SecretGrant, http: &[HttpGrant], checker: &mut Checker<'_>) {
    if !grants::is_secret_name(&grant.name) {
        checker.wrong(
            "name",
            &grant.name,
            "is not a valid name",
            "use letters, digits, '.', '_' and '-'; before them volume/ for a secret that comes with requests about volumes",
        );
    }
    match grant.volume_key() {
        Some(_) if !grant.file.as_os_str().is_empty() => checker.wrong(
            "file",
            grant.file.display(),
            "has no effect, since this secret comes with requests about volumes",
            "remove it",
        ),
        Some(_) => {}
        None => check_path("file", Some(&grant.file), checker),
    }
    if grant.uses.is_empty() {
        checker.wrong(
            "uses",
            "",
            "is empty, so the secret is of no use",
            "list some of: placeholder, hmac, sign, reveal",
        );
    }
    let placeholder = grant.uses.contains(&SecretUse::Placeholder);
    if placeholder && grant.hosts.is_empty() {
        checker.wrong(
            "hosts",
            "",
            "is empty",
            "name the hosts whose requests the placeholder may be filled into",
        );
    }
    if !placeholder && !grant.hosts.is_empty() {
        let fix = "add placeholder to uses or remove hosts";
        checker.wrong(
            "hosts",
            grant.hosts.join(", "),
            "only matters for the use placeholder",
            fix,
        );
    }
    for (at, host) in grant.hosts.iter().enumerate() {
        let field = format!("hosts[{at}]");
        match Binding::parse(host) {
            None => checker.wrong(
                &field,
                host,
                "is neither HOST nor HOST:PORT",
                "write for example api.example.com:443",
            ),
            Some(binding) if !http.iter().any(|grant| is_reachable(&binding, grant)) => {
                let fix = format!("add an entry with host {host} to grants.http or correct the name");
                checker.wrong(&field, host, "is not granted by any entry of http", fix);
            }
            Some(_) => {}
        }
    }
}

fn is_reachable(binding: &Binding, grant: &HttpGrant) -> bool {
    binding.port.is_none_or(|port| port == grant.port())
        && HostPattern::parse(&grant.host).is_some_and(|host| host.overlaps(&binding.host))
}
