//! The status page of the real stack in a real Chromium: what a person sees, on a desk and on a phone, by day and by night. Pictures of it
//! are left in `target/status-page`; with `CLOUDWIT_UPDATE` those of the guide are written anew.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::time::Duration;

use browser::Browser;
use cloudwit_sim_cloud::{Fault, NewMachine, Operation};
use cloudwit_suite::common::browser;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::TOKEN;
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::Value;

/// Longer than the pause before what has failed all through an outage is tried again.
const SOON: Duration = Duration::from_secs(300);

/// Runs if it is taken for markup anywhere.
const HOSTILE: &str =
    "</td><script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">";

/// Nodes whose machine is gone are confirmed within seconds, so that the brake engages.
const FLAGS: [&str; 5] = [
    "--leader-elect=true",
    "--node-monitor-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirm-after=1s",
    "--route-reconciliation-period=1s",
];

/// An API server, a cloud, and a process that leads.
struct Scene {
    site: Site,
    url: String,
    process: Child,
}

impl Scene {
    async fn new() -> Self {
        let site = Site::new().await.unwrap();
        let (process, url) = site.start(&FLAGS).unwrap();
        Self { site, url, process }
    }

    async fn get(&self, path: &str) -> Result<String, String> {
        let answer = reqwest::get(format!("{}{path}", self.url)).await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        answer
            .map_err(|error| error.to_string())?
            .text()
            .await
            .map_err(|error| error.to_string())
    }

    /// Waits until the facts are so.
    async fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(SOON, what, || async {
            let text = self.get("/status.json").await;
            let text = text.map_err(|error| format!("{error}\n{}", self.process.log_end()))?;
            let facts: Value = serde_json::from_str(&text).unwrap();
            if wanted(&facts) { Ok(facts) } else { Err(text) }
        })
        .await
    }

    async fn node(&self, name: &str, id: &str, ready: bool) {
        let node = NodeBuilder::new(name).provider_id(id).ready(ready.then_some(true));
        node.initialised().create(&self.site.client).await.unwrap();
    }

    /// A Node and a Service that have all they want.
    async fn settle(&self) {
        self.site.cloud.add_numbered_machines("node", 1);
        NodeBuilder::new("node-0").create(&self.site.client).await.unwrap();
        ServiceBuilder::new("web").create(&self.site.client).await.unwrap();
        let settled = |facts: &Value| {
            let done = |controller: usize| !facts["controllers"][controller]["lastDone"].is_null();
            facts["verdict"]["summary"] == "All well." && done(0) && done(2)
        };
        self.until("all is well", settled).await;
    }

    /// A Service whose annotation can never be, and then a cloud that answers nothing while thirteen Nodes join.
    async fn outage(&self) {
        let wrong = ServiceBuilder::new("shop").annotation("sim.cloudwit.dev/scheme", "interal");
        wrong.create(&self.site.client).await.unwrap();
        self.until("the mistake is a notice", |facts| facts["verdict"]["state"] == "notice")
            .await;
        self.site.cloud.set_faults([Fault::status(503)]);
        for number in 1..=13 {
            NodeBuilder::new(&format!("worker-{number}"))
                .create(&self.site.client)
                .await
                .unwrap();
        }
        ServiceBuilder::new("checkout").create(&self.site.client).await.unwrap();
        let outage = self.until("the outage is one trouble", |facts| {
            let first = &facts["verdict"]["troubles"][0];
            let behind = first["behind"].as_str().unwrap_or_default();
            first["state"] == "failing"
                && first["objects"]["total"].as_u64() >= Some(14)
                && behind.contains("the routes of the cloud could not be listed")
        });
        let facts = outage.await;
        let troubles = facts["verdict"]["troubles"].as_array().unwrap();
        let states: Vec<&str> = troubles.iter().map(|one| one["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["failing", "notice"], "{facts}");
        assert_eq!(
            facts["verdict"]["summary"], "Not well: 1 critical, 1 notice.",
            "{facts}"
        );
        let host = &facts["apiHosts"][0];
        assert!(
            host["errorsInARow"].as_u64() > Some(0) && host["lastError"]["what"] == "503",
            "{facts}"
        );
        assert!(!host["lastSuccess"].is_null(), "{facts}");
        assert_eq!(facts["totals"]["nodes"]["uninitialised"], 13, "{facts}");
    }

    /// The cloud answers again, and the Nodes of the outage are gone.
    async fn end_of_outage(&self) {
        self.site.cloud.set_faults([]);
        let nodes = Api::<Node>::all(self.site.client.clone());
        for number in 1..=13 {
            let name = format!("worker-{number}");
            nodes.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        self.until("the outage is over", |facts| facts["verdict"]["state"] == "notice")
            .await;
    }

    /// Nodes whose machines go all at once, when all Nodes are known: the first one that is gone alone may go.
    async fn lose_machines<const N: usize>(&self, names: [&str; N]) {
        let cloud = &self.site.cloud;
        for (name, machine) in names.into_iter().zip(cloud.add_machines(names.map(NewMachine::named))) {
            self.node(name, &format!("sim://{}", machine.id), false).await;
        }
        for name in names {
            eventually(SOON, "the Node is known", || async {
                let page = self.get(&format!("/explain/node/{name}")).await?;
                match page.contains("the cloud has not said that its machine is gone") {
                    true => Ok(()),
                    false => Err(page),
                }
            })
            .await;
        }
        cloud.delete_machines(names);
    }

    /// Everything that can be wrong at once.
    async fn trouble(&self) {
        let refused = ServiceBuilder::new("refused").annotation("sim.cloudwit.dev/scheme", HOSTILE);
        refused.create(&self.site.client).await.unwrap();
        self.lose_machines(["gone-1", "gone-2", "gone-3"]).await;
        // It can be given out by no cloud, and everybody who may create Nodes can write it.
        self.node("gone-4", &format!("sim://{HOSTILE}"), false).await;
        self.node("stranger", "sim://vm-77", true).await;
        NodeBuilder::new("unknown").create(&self.site.client).await.unwrap();
        self.site
            .cloud
            .set_faults([Fault::slow_down(290).on(Operation::CreateLoadBalancer).times(1)]);
        self.until("the brake is engaged and the Service is refused", |facts| {
            let services = &facts["waiting"]["services"]["shown"];
            let refused = services
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["name"] == "default/refused"));
            let held = facts["deletion"][0]["candidates"]["shown"].as_array();
            let braked = held.is_some_and(|all| all.len() == 4 && all.iter().all(|one| one["held"] == true));
            let unknown = facts["waiting"]["nodes"]["total"].as_u64() > Some(0);
            refused && braked && unknown
        })
        .await;
        ServiceBuilder::new("paused").create(&self.site.client).await.unwrap();
        self.until("the cloud has asked for a pause", |facts| {
            !facts["apiHosts"][0]["pausedUntil"].is_null()
        })
        .await;
        let component = self.site.deployment.folder().join("providers/sim.wasm");
        std::fs::write(component, "no component").unwrap();
        self.until("the new component is refused", |facts| {
            facts["providers"][0]["lastSwap"]["refused"] == true
        })
        .await;
    }
}

fn picture(name: &str) -> PathBuf {
    xtask::workspace::target()
        .join("status-page")
        .join(format!("{name}.png"))
}

#[tokio::test(flavor = "multi_thread")]
async fn status_page_fits_any_screen_and_escapes_foreign_text() {
    let Some(browser) = Browser::start().await.unwrap() else {
        return;
    };
    let scene = Scene::new().await;
    scene.settle().await;
    look(&browser, &scene, "well").await;
    let heading = browser
        .run("return document.querySelector('h1').innerText")
        .await
        .unwrap();
    assert_eq!(heading, "\u{2713} All well.");

    scene.outage().await;
    look(&browser, &scene, "outage").await;
    for part in [
        "The cloud of provider sim does not answer as it should: ",
        "Behind it: 13 Nodes wait to be initialised; ",
        "the routes of the cloud could not be listed.",
        "1 Service waits for its load balancer; the object is invalid: ",
        "does not answer well",
        "cluster sandbox",
    ] {
        let text = text(&browser).await;
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    search(&browser).await;
    pictures_of_the_guide(&browser, &scene).await;
    scene.end_of_outage().await;

    scene.trouble().await;
    look(&browser, &scene, "trouble").await;
    let text = text(&browser).await;
    for part in [
        "Not well: ",
        "critical",
        "The deletion brake is engaged for provider sim: 4 Nodes seem to be gone and 0 were deleted, only 1 may go.",
        "Changed files of provider sim are refused (load): ",
        "The cloud throttles provider sim: rate limited: ",
        "default/refused",
        "can be public or internal",
        // As it was written, and nothing of it has run.
        HOSTILE,
        "cloudwit:provider 0.1",
        "GET POST PUT DELETE http://127.0.0.1:",
        "held by the brake",
        "kube-system/cloud-controller-manager",
        "(this process)",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(!text.contains(TOKEN), "{text}");
    assert_same_facts(&browser, &scene).await;
    follow_the_link(&browser).await;
    browser.close().await.unwrap();
}

async fn text(browser: &Browser) -> String {
    let text = browser.run("return document.body.textContent").await.unwrap();
    text.as_str().unwrap().to_owned()
}

/// Opens the page in every way people do, takes pictures and finds what is wrong with it.
async fn look(browser: &Browser, scene: &Scene, name: &str) {
    for (screen, width, height) in [("desk", 1280, 1000), ("phone", 375, 812), ("narrow", 320, 640)] {
        for scheme in ["light", "dark"] {
            browser.resize(width, height).await.unwrap();
            browser.prefer(scheme).await.unwrap();
            browser.open(&format!("{}/?renew=off", scene.url)).await.unwrap();
            let name = format!("{name}-{screen}-{scheme}");
            browser.picture(&picture(&name)).await.unwrap();
            let seen = browser.run(INSPECT).await.unwrap();
            assert_sound(browser, &seen, &name).await;
            let title = seen["title"].as_str().unwrap();
            assert!(title.ends_with(" \u{2013} Cloudwit"), "{name}: {seen}");
            assert_eq!(seen["width"], width, "{name}");
            assert!(
                seen["content"].as_u64() <= Some(width.into()),
                "{name} scrolls sideways: {seen}"
            );
            assert_eq!(seen["dark"], scheme == "dark", "{name}: {seen}");
            assert_eq!(seen["unnamed"], 0, "{name}: a cell without a heading");
        }
    }
    // The console is really listened to.
    browser.run("console.error('listening')").await.unwrap();
    let console = browser.console().await.unwrap();
    assert!(
        console.iter().any(|(_, text)| text.contains("listening")),
        "{console:?}"
    );
}

/// Nothing runs, nothing is refused by the page's policy, and everything can be read.
async fn assert_sound(browser: &Browser, seen: &Value, name: &str) {
    let console = browser.console().await.unwrap();
    assert_eq!(console, [], "{name}");
    assert_eq!((&seen["scripts"], &seen["pictures"]), (&0.into(), &0.into()), "{name}");
    assert_eq!(seen["faint"], serde_json::json!([]), "{name}: contrast below 4.5");
}

/// Types a part of a name into the form, as people do, and finds the Nodes; then one that nobody has.
async fn search(browser: &Browser) {
    let find = async |part: &str, expected: &'static str| {
        let submit = format!(
            "const input = document.querySelector('input[name=q]'); input.value = {part:?}; input.form.submit()"
        );
        browser.run(&submit).await.unwrap();
        eventually(SOON, "what was looked for", || async {
            // On the way there the page may be none.
            let shown = browser.run("return document.body.textContent").await;
            let shown = shown.map_err(|error| error.to_string())?;
            let text = shown.as_str().unwrap_or_default().to_owned();
            if text.contains(expected) { Ok(text) } else { Err(text) }
        })
        .await
    };
    let found = find("worker-1", "Found by \u{201c}worker-1\u{201d}").await;
    assert!(
        found.contains("Node worker-13") && !found.contains("Node worker-2"),
        "{found}"
    );
    let waiting = browser.run("return document.querySelectorAll('#waiting ~ .card tbody tr').length");
    assert!(
        waiting.await.unwrap().as_u64() >= Some(5),
        "the filter leaves what it has found"
    );
    let nothing = find("<script>", "No Node or Service of that name.").await;
    assert!(nothing.contains("Found by \u{201c}<script>\u{201d}"), "{nothing}");
    let seen = browser.run(INSPECT).await.unwrap();
    assert_sound(browser, &seen, "search").await;
}

/// What the guide shows: the outage by day, by night and on a phone, and the explanation of a Node.
async fn pictures_of_the_guide(browser: &Browser, scene: &Scene) {
    let folder = match std::env::var_os("CLOUDWIT_UPDATE") {
        Some(_) => xtask::workspace::root().join("docs/guide/status-page"),
        None => xtask::workspace::target().join("status-page/guide"),
    };
    for (name, path, (width, height), scheme) in [
        ("light", "/?renew=off", (1120, 900), "light"),
        ("dark", "/?renew=off", (1120, 900), "dark"),
        ("phone", "/?renew=off", (375, 812), "light"),
        ("explain", "/explain/node/worker-7?renew=off", (1120, 420), "light"),
    ] {
        browser.resize(width, height).await.unwrap();
        browser.prefer(scheme).await.unwrap();
        browser.open(&format!("{}{path}", scene.url)).await.unwrap();
        browser.window(&folder.join(format!("{name}.png"))).await.unwrap();
    }
}

/// What a browser knows about the page: also the contrast of every text with what is behind it (WCAG 2.2, 1.4.3).
const INSPECT: &str = r"
const parse = color => color.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const behind = element => {
  for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const faint = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
  const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
  const ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) faint.push(walker.currentNode.data.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
}
return {
  title: document.title,
  scripts: document.querySelectorAll('script').length,
  pictures: document.querySelectorAll('img').length,
  width: innerWidth,
  content: document.documentElement.scrollWidth,
  dark: light(behind(document.body)) < .2,
  unnamed: [...document.querySelectorAll('td')].filter(cell => !cell.dataset.of).length,
  faint,
};";

/// The page and the JSON are made from the same facts.
async fn assert_same_facts(browser: &Browser, scene: &Scene) {
    let facts: Value = serde_json::from_str(&scene.get("/status.json").await.unwrap()).unwrap();
    assert_eq!(
        (facts["apiVersion"].as_str(), facts["kind"].as_str()),
        (Some("cloudwit.dev/v1alpha1"), Some("CloudwitStatus"))
    );
    let shown = text(browser).await;
    for path in [
        "/verdict/troubles/0/what",
        "/providers/0/componentDigest",
        "/providers/0/lastSwap/message",
        "/process/identity",
        "/apiHosts/0/host",
        "/waiting/services/shown/0/name",
    ] {
        let fact = facts.pointer(path).and_then(Value::as_str);
        let fact = fact.unwrap_or_else(|| panic!("{path} in {facts}"));
        assert!(shown.contains(fact), "{path}: {fact} is not in:\n{shown}");
    }
    assert!(!facts.to_string().contains(TOKEN), "{facts}");
}

/// From the Service that waits to its explanation, in the same dress, and back.
async fn follow_the_link(browser: &Browser) {
    let click = "[...document.querySelectorAll('a')].find(a => a.innerText == 'default/refused').click()";
    browser.run(click).await.unwrap();
    let title = |wanted: &'static str| {
        eventually(SOON, wanted, move || async move {
            let title = browser.run("return document.title").await;
            let title = title.map_err(|error| error.to_string())?;
            if title.as_str().is_some_and(|title| title.starts_with(wanted)) {
                Ok(())
            } else {
                Err(title.to_string())
            }
        })
    };
    title("Service default/refused").await;
    let page = text(browser).await;
    assert!(
        page.contains("Last answer of the provider: ") && page.contains("<script>"),
        "{page}"
    );
    assert!(page.contains("service-lb-controller"), "{page}");
    let seen = browser.run(INSPECT).await.unwrap();
    assert_sound(browser, &seen, "explanation").await;
    browser.run("document.querySelector('a.home').click()").await.unwrap();
    title("Not well").await;
}
