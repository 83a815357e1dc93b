//! For tests: the recorded answers of mimic, Rackspace's own simulator of its cloud (`recorded`).

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};

use crate::Rackspace;

/// A user with an API key.
pub const GLOBAL: &str = "[Global]\nauth-url = http://identity.test/v2.0/\nusername = recorded\nregion = dfw\n";

/// A day before the recorded token ends.
pub const NOW: u64 = 1_795_430_000;

/// A recorded file by its name.
macro_rules! file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recorded/", $name, ".json"))
    };
}
pub(crate) use file;

/// The status and body of a recorded file, which begins with `# 200 to GET ...`.
pub fn answer(file: &str) -> FakeAnswer {
    let status = file.get(2..5).and_then(|status| status.parse().ok()).unwrap();
    FakeAnswer::new(status, &[], recorded(file))
}

/// A host with [`GLOBAL`] and this cloud; identity has the user.
pub fn host(cloud: impl Fn(&SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(GLOBAL).now(NOW).secret("api-key", "s");
    // The hosts of the servers' API are in the catalog.
    host.grants("http://rackspace.test", &["GET", "POST", "PUT", "DELETE"]);
    host.serve(move |request| match request.url.contains("identity.test") {
        true => answer(file!("token")),
        false => cloud(request),
    });
    host
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> Rackspace {
    host.provider()
}

/// Method and path after the account's number, of all requests but those to identity.
pub fn calls(host: &FakeHost) -> Vec<String> {
    let requests = host.requests().into_iter();
    let others = requests.filter(|request| !request.url.contains("identity.test"));
    others
        .map(|request| {
            let path = request.url.split("/v2/").nth(1).unwrap_or_default();
            format!("{} {}", request.method, path.split_once('/').unwrap_or_default().1)
        })
        .collect()
}
