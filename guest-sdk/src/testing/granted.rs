//! Grants in tests: exactly what the provider's `describe` requests.
//!
//! A destination or a use of a secret that was never requested ends the test with the line to add, instead of a refusal in production.
//! Parts that are tested without their provider ([`FakeHost::context`](super::FakeHost::context)) may use everything.

use crate::testing::sent::SentRequest;
use crate::testing::world;
use crate::types::{ClusterView, Description, HttpWish, SecretUse};

/// What was requested, and what the test grants beside it.
pub(crate) struct Granted {
    described: Option<Description>,
    further: Vec<HttpWish>,
}

impl Granted {
    pub(crate) const fn new() -> Self {
        Self {
            described: None,
            further: Vec::new(),
        }
    }

    pub(crate) fn describe(&mut self, description: Description) {
        self.described = Some(description);
    }

    pub(crate) fn add(&mut self, wish: HttpWish) {
        self.further.push(wish);
    }

    /// What is missing for this request.
    fn misses(&self, sent: &SentRequest) -> Option<String> {
        let described = self.described.as_ref()?;
        let to = HttpWish::for_url(&sent.url, &[&sent.method], "")?;
        let place = format!("{}://{}", to.scheme, to.binding());
        let granted = described.http.iter().chain(&self.further).any(|wish| covers(wish, &to));
        if !granted {
            return Some(format!(
                "{} {place} is not granted, for `describe` does not ask for it; add there:\n  \
                 .http(HttpWish::for_url({place:?}, &[{:?}], \"what for\"))",
                sent.method, sent.method
            ));
        }
        let bound = |host: &String| match host.rsplit_once(':') {
            Some((host, port)) if port.parse() == Ok(real_port(&to)) => is_host(host, &to.host),
            _ => is_host(host, &to.host),
        };
        let mut elsewhere = described.secrets.iter().filter(|secret| {
            !secret.hosts.is_empty() && !secret.hosts.iter().any(bound) && carries(sent, &secret.name)
        });
        let name = &elsewhere.next()?.name;
        Some(format!(
            "the secret {name:?} is not for {place}, for `describe` asks for it to be sent elsewhere; write there:\n  \
             SecretWish::new({name:?}, ..).only_to(&wish_for_{})",
            to.host.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
        ))
    }

    /// What is missing for this use of a secret; any use where none is named.
    fn misses_secret(&self, name: &str, how: Option<SecretUse>) -> Option<String> {
        let mut secrets = self.described.as_ref()?.secrets.iter();
        let fits = |uses: &[SecretUse]| how.is_none_or(|how| uses.contains(&how));
        let granted = secrets.any(|secret| secret.name == name && fits(&secret.uses));
        let uses = how.map_or("..".into(), |how| format!("{how:?}"));
        (!granted).then(|| {
            format!(
                "the secret {name:?} is not granted for this use, for `describe` does not ask for it; add there:\n  \
                 .secret(SecretWish::new({name:?}, &[{uses}], \"what it is\"))"
            )
        })
    }

    fn misses_view(&self, view: ClusterView) -> Option<String> {
        let wishes = &self.described.as_ref()?.cluster;
        (!wishes.iter().any(|wish| wish.view == view)).then(|| {
            format!(
                "the view is not granted, for `describe` does not ask for it; add there:\n  .view({view:?}, \"what for\", false)"
            )
        })
    }
}

/// # Panics
/// When the destination, or a secret for it, was never requested.
pub(crate) fn insist_on_request(sent: &SentRequest) {
    insist(|granted| granted.misses(sent).map(|missing| format!("{missing}\n{sent}")));
}

/// # Panics
/// When this use of the secret was never requested.
pub(crate) fn insist_on_secret(name: &str, how: Option<SecretUse>) {
    insist(|granted| granted.misses_secret(name, how));
}

/// # Panics
/// When the view was never requested.
pub(crate) fn insist_on_view(view: ClusterView) {
    insist(|granted| granted.misses_view(view));
}

fn insist(missing: impl FnOnce(&Granted) -> Option<String>) {
    if let Some(text) = world(|world| missing(&world.granted)) {
        panic!("{text}");
    }
}

fn covers(wish: &HttpWish, to: &HttpWish) -> bool {
    wish.scheme == to.scheme
        && is_host(&wish.host, &to.host)
        && real_port(wish) == real_port(to)
        && to.methods.iter().all(|method| wish.methods.contains(method))
}

/// `*.example.com` matches all below it.
fn is_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix('*') {
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => pattern == host,
    }
}

fn real_port(wish: &HttpWish) -> u16 {
    wish.port.unwrap_or(if wish.scheme == "https" { 443 } else { 80 })
}

/// Whether a placeholder of the secret is in the request, by itself or in a Basic header.
fn carries(sent: &SentRequest, secret: &str) -> bool {
    let headers = sent.headers.iter().map(|(_, value)| value.clone());
    let mut texts = headers.chain([sent.text()]);
    texts.any(|text| {
        let mut placeholders = text.split("cloudwit-placeholder-").skip(1);
        placeholders.any(|rest| {
            let alone = rest.strip_prefix(secret).is_some_and(|rest| rest.starts_with('.'));
            alone || rest.contains(&format!(".{secret}.basic"))
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::keys::Hash;
    use crate::prelude::*;
    use crate::testing::FakeHost;

    /// A provider that requests less than it uses.
    struct Greedy(Context);

    impl Provider for Greedy {
        type Config = NoConfig;

        fn describe(_: Option<&NoConfig>) -> Description {
            let api = HttpWish::for_url("https://api.test", &["GET"], "its API");
            let token = SecretWish::new("token", &[SecretUse::Placeholder], "its token");
            Description::new("greedy", "1")
                .secret(token.only_to(&api))
                .http(api)
                .http(HttpWish::for_url("https://*.wild.test:8443", &["GET"], "further ones"))
        }

        fn new(_: NoConfig, cloud: Context) -> Result<Self, Failure> {
            Ok(Self(cloud))
        }

        fn probe(&self) -> Result<(), Failure> {
            Ok(())
        }
    }

    impl Greedy {
        fn get(&self, url: &str) {
            let token = self.0.keys().placeholder("token").unwrap();
            self.0.http().get(url).header("x-token", token.as_str()).send().unwrap();
        }
    }

    fn greedy() -> (FakeHost, Greedy) {
        let host = FakeHost::new();
        host.secret("token", "t").secret("other", "o");
        host.serve(|_| crate::testing::FakeAnswer::new(200, &[], ""));
        let provider = host.provider();
        (host, provider)
    }

    #[test]
    fn what_was_requested_is_granted() {
        let (host, Greedy(cloud)) = greedy();
        Greedy(cloud).get("https://api.test:443/v1");
        cloud.http().get("https://a.b.WILD.test:8443/x").send().unwrap();
        host.grants("http://from-a-catalog.test", &["PUT"]);
        cloud.http().put("http://from-a-catalog.test/x").send().unwrap();
    }

    #[test]
    #[should_panic(
        expected = "GET https://api.test:8443 is not granted, for `describe` does not ask for it; add there:\n  \
                               .http(HttpWish::for_url(\"https://api.test:8443\", &[\"GET\"], \"what for\"))"
    )]
    fn ungranted_destination_fails_with_line_to_add() {
        greedy().1.get("https://api.test:8443/v1");
    }

    #[test]
    #[should_panic(expected = "PUT https://api.test is not granted")]
    fn method_that_was_not_requested_is_named() {
        let (_host, Greedy(cloud)) = greedy();
        let _ = cloud.http().put("https://api.test").send();
    }

    #[test]
    #[should_panic(expected = ".secret(SecretWish::new(\"other\", &[SecretUse::Placeholder], \"what it is\"))")]
    fn ungranted_secret_fails_with_line_to_add() {
        let (_host, Greedy(cloud)) = greedy();
        let _ = cloud.keys().placeholder("other");
    }

    #[test]
    #[should_panic(expected = "&[SecretUse::Hmac]")]
    fn ungranted_use_of_secret_fails_with_its_name() {
        let (_host, Greedy(cloud)) = greedy();
        let _ = cloud.keys().open("token").unwrap().hmac(Hash::Sha256, b"");
    }

    #[test]
    #[should_panic(expected = "the secret \"token\" is not for https://a.wild.test:8443")]
    fn a_secret_that_is_sent_elsewhere_is_named() {
        greedy().1.get("https://a.wild.test:8443/x");
    }

    #[test]
    #[should_panic(expected = ".view(ClusterView::Nodes, \"what for\", false)")]
    fn view_that_was_not_requested_is_named() {
        let (_host, Greedy(cloud)) = greedy();
        let _ = cloud.nodes();
    }
}
