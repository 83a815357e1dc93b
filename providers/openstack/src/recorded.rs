//! For tests: a cloud that gives the recorded answers of the real services (`recorded/record.py`).

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};
use serde_json::{Value, from_str};

use crate::OpenStack;

/// A recorded file by its name.
macro_rules! file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recorded/", $name, ".json"))
    };
}
pub(crate) use file;

/// A password user, as most operators are.
pub const GLOBAL: &str = "[Global]\nauth-url = http://keystone.test/v3\nusername = recorded\ndomain-name = Default\n\
                          tenant-name = recorded\nregion = RegionOne\n";

/// The status and body of a recorded file, which begins with `# 200 to GET ...`.
pub fn answer(file: &str) -> FakeAnswer {
    let status = file.get(2..5).and_then(|status| status.parse().ok()).unwrap();
    FakeAnswer::new(status, &[("x-subject-token", "token-1")], recorded(file))
}

/// A recorded file as JSON.
pub fn json(file: &str) -> Value {
    from_str(recorded(file)).unwrap()
}

type Answer = Box<dyn Fn() -> FakeAnswer>;

struct Rule {
    method: &'static str,
    part: String,
    answer: Answer,
    once: bool,
}

/// The cloud, and Cloudwit's side of a call.
pub struct Stage {
    /// The host.
    pub host: FakeHost,
    rules: Rc<RefCell<Vec<Rule>>>,
}

impl Stage {
    /// With [`GLOBAL`] and more configuration, and a Keystone that accepts the credentials.
    pub fn new(more: &str) -> Self {
        Self::bare(&format!("{GLOBAL}{more}"))
    }

    /// With this configuration.
    pub fn bare(config: &str) -> Self {
        let host = FakeHost::new();
        host.config(config).now(1_763_700_000);
        for name in ["password", "token", "application-credential-secret"] {
            host.secret(name, "s");
        }
        // Where they are is in Keystone's catalog.
        for service in ["nova", "neutron", "octavia"] {
            host.grants(&format!("http://{service}.test"), &["GET", "POST", "PUT", "DELETE"]);
        }
        let stage = Self {
            host,
            rules: Rc::default(),
        };
        let rules = Rc::clone(&stage.rules);
        stage.host.serve(move |request| serve(&rules, request));
        stage.always("POST", "keystone.test/v3/auth/tokens", || answer(file!("token")))
    }

    /// From now on answers requests of this method with this text in their URL so.
    pub fn always(self, method: &'static str, part: &str, answer: impl Fn() -> FakeAnswer + 'static) -> Self {
        self.rule(method, part, Box::new(answer), false)
    }

    /// Answers the next such request so; several of the same kind in their order.
    pub fn once(self, method: &'static str, part: &str, answer: impl Fn() -> FakeAnswer + 'static) -> Self {
        self.rule(method, part, Box::new(answer), true)
    }

    fn rule(self, method: &'static str, part: &str, answer: Answer, once: bool) -> Self {
        self.rules.borrow_mut().push(Rule {
            method,
            part: part.into(),
            answer,
            once,
        });
        self
    }

    /// The provider of one call.
    pub fn provider(&self) -> OpenStack {
        self.host.provider()
    }

    /// Method and URL of all requests but those to Keystone.
    pub fn calls(&self) -> Vec<String> {
        let requests = self.host.requests();
        let others = requests.iter().filter(|request| !request.url.contains("keystone.test"));
        others
            .map(|request| format!("{} {}", request.method, request.url))
            .collect()
    }

    /// How many tokens were requested from Keystone.
    pub fn logins(&self) -> usize {
        self.host.requests().len() - self.calls().len()
    }

    /// The requests of this method with this text in their URL.
    pub fn sent(&self, method: &str, part: &str) -> Vec<SentRequest> {
        let requests = self.host.requests().into_iter();
        requests
            .filter(|request| request.method == method && request.url.contains(part))
            .collect()
    }
}

fn serve(rules: &RefCell<Vec<Rule>>, request: &SentRequest) -> FakeAnswer {
    let mut rules = rules.borrow_mut();
    let fits = |rule: &Rule| rule.method == request.method && request.url.contains(&rule.part);
    if let Some(at) = rules.iter().position(|rule| rule.once && fits(rule)) {
        return (rules.remove(at).answer)();
    }
    match rules.iter().rfind(|rule| fits(rule)) {
        Some(rule) => (rule.answer)(),
        None => panic!("nothing answers\n{request}"),
    }
}
