//! What is taken as a provider and what is refused: each refusal is one sentence that names the file, both sides and
//! what to do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_host::{HostOptions, Limits, LoadError, ProviderSettings};
use cloudwit_model::{Cloud, CloudError, FaultKind};
use cloudwit_suite::hosting::{Hosting, guest_file, limited, node, settings};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How the host writes its version; the tests write `Cloudwit VERSION`.
const VERSION_TEXT: &str = concat!("Cloudwit ", env!("CARGO_PKG_VERSION"));

/// A component that exports these names, each an interface without functions.
fn exporting(names: &[&str]) -> Vec<u8> {
    let exports: String = names
        .iter()
        .map(|name| format!("(export \"{name}\" (instance $empty))"))
        .collect();
    wat::parse_str(format!("(component (instance $empty) {exports})")).unwrap()
}

/// A component with the names of a provider, functions without parameters and results, and this in its core module.
fn provider_with(core: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f")) {core})
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $info (export "describe" (func $f)) (export "check" (func $f)) (export "probe" (func $f)))
            (instance $instances (export "lookup" (func $f)))
            (export "cloudwit:provider/info@0.1.0" (instance $info))
            (export "cloudwit:provider/instances@0.1.0" (instance $instances)))"#
    );
    wat::parse_str(text).unwrap()
}

fn file_with(dir: &Path, bytes: &[u8]) -> PathBuf {
    let file = dir.join("cloud.wasm");
    fs::write(&file, bytes).unwrap();
    file
}

/// The refusal of a component; checks that it is one line that begins with the file.
async fn refusal(hosting: &Hosting, bytes: &[u8], settings: ProviderSettings) -> (LoadError, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = file_with(dir.path(), bytes);
    let error = hosting.load_file(&file, settings).await.unwrap_err();
    let text = error.to_string();
    let rest = text
        .strip_prefix(&format!("{}: ", file.display()))
        .unwrap_or_else(|| panic!("no file name in: {text}"));
    assert!(!rest.contains('\n'), "more than one line: {text}");
    let rest = rest.replace(VERSION_TEXT, "Cloudwit VERSION");
    (error, rest)
}

/// A module with a section that names its toolchain.
const PYTHON_MODULE: &str = r#"(module (@custom "producers" "\01\0cprocessed-by\01\0fcomponentize-py\040.25"))"#;

/// A component of the same.
const PYTHON_COMPONENT: &str = r#"(component (@custom "producers" "\01\0cprocessed-by\01\0fcomponentize-py\040.25"))"#;

#[tokio::test]
async fn every_refusal_names_both_sides_and_what_to_do() {
    let hosting = Hosting::new(HostOptions::default());
    let info = "cloudwit:provider/info@0.1.0";
    let instances = "cloudwit:provider/instances@0.1.0";
    let core_module = wat::parse_str("(module)").unwrap();
    let mut truncated = provider_with("");
    truncated.truncate(truncated.len() / 2);
    for (bytes, parts) in [
        (
            b"apiVersion: v1\n".to_vec(),
            ["is not WebAssembly but starts with \"apiVersi\"", "wasm32-wasip2"],
        ),
        (Vec::new(), ["is not WebAssembly but starts with \"\"", "wasm32-wasip2"]),
        (core_module, ["is a core WebAssembly module", "wasm32-wasip2"]),
        (
            wat::parse_str(PYTHON_MODULE).unwrap(),
            ["is a core WebAssembly module", "componentize-py"],
        ),
        (
            wat::parse_str("(component (type (func async)))").unwrap(),
            ["is an asynchronous component", "build the synchronous variant"],
        ),
        (
            truncated,
            [
                "is not a valid WebAssembly component for this Cloudwit VERSION: ",
                "build it again",
            ],
        ),
        (
            exporting(&["wasi:http/incoming-handler@0.2.3"]),
            ["exports wasi:http/incoming-handler@0.2.3", "register_provider!"],
        ),
        (exporting(&[]), ["exports nothing", "register_provider!"]),
        (
            wat::parse_str(PYTHON_COMPONENT).unwrap(),
            ["exports nothing", "give it to componentize-py with `--world`"],
        ),
        (
            exporting(&["cloudwit:provider/info@0.2.0", "cloudwit:provider/instances@0.2.0"]),
            [
                "speaks cloudwit:provider 0.2, and this Cloudwit VERSION speaks 0.1",
                "a provider built for 0.1",
            ],
        ),
        (
            exporting(&[instances]),
            [
                "exports `instances` of cloudwit:provider but not `info`",
                "implement it",
            ],
        ),
        (
            exporting(&[info]),
            [
                "only `info`, and this Cloudwit VERSION uses `instances`",
                "export at least one",
            ],
        ),
        (exporting(&[info, instances]), ["its info does not match", "wit/v0.1"]),
        (
            provider_with(""),
            ["its info does not match that of this Cloudwit VERSION: ", "wit/v0.1"],
        ),
    ] {
        let (_, text) = refusal(&hosting, &bytes, settings()).await;
        for part in parts {
            assert!(text.contains(part), "{part:?} is missing in: {text}");
        }
    }
}

#[tokio::test]
async fn an_import_that_does_not_exist_is_named_with_what_there_is() {
    let hosting = Hosting::new(HostOptions::default());
    let error = hosting
        .load_file(&guest_file("wants_database").await, settings())
        .await
        .unwrap_err();
    assert!(matches!(error, LoadError::MissingImport { .. }), "{error}");
    let text = error.to_string().replace(VERSION_TEXT, "Cloudwit VERSION");
    assert!(
        text.contains("imports acme:database/store@1.2.0, and this Cloudwit VERSION offers cloudwit:provider@0.1"),
        "{text}"
    );
    // The package exists, the interface does not.
    let unknown = wat::parse_str(
        r#"(component
            (import "wasi:cli/teleport@0.2.0" (instance (export "go" (func))))
            (instance $empty)
            (export "cloudwit:provider/info@0.1.0" (instance $empty))
            (export "cloudwit:provider/routes@0.1.0" (instance $empty)))"#,
    );
    let (error, text) = refusal(&hosting, &unknown.unwrap(), settings()).await;
    assert!(matches!(error, LoadError::MissingImport { .. }), "{error}");
    assert!(text.contains("wasi:cli/teleport@0.2.0"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_too_large_or_not_there_is_refused() {
    let hosting = Hosting::new(HostOptions::default());
    let mut small = settings();
    small.limits.component_bytes = 64 << 10;
    let large = format!("(@custom \"filler\" \"{}\")", "x".repeat(64 << 10));
    let (error, text) = refusal(&hosting, &provider_with(&large), small).await;
    assert!(matches!(error, LoadError::TooLarge { limit: 65_536, .. }), "{error}");
    assert!(
        text.contains("at most 65536 are taken; build it smaller, or raise the provider's limit with `limits: {componentBytes: 131072}`"),
        "{text}"
    );
    let error = hosting
        .load_file("/nowhere/cloud.wasm".as_ref(), settings())
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/cloud.wasm: cannot be read: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_misbehaves_while_it_starts_is_not_loaded() {
    let hosting = Hosting::new(HostOptions::default());
    let limits = Limits {
        cpu_time: Duration::from_millis(300),
        ..Limits::default()
    };
    for (bytes, kind) in [
        (
            provider_with("(func $spin (loop br 0)) (start $spin)"),
            FaultKind::Deadline,
        ),
        (provider_with("(func $trap unreachable) (start $trap)"), FaultKind::Trap),
        (provider_with("(memory 2000)"), FaultKind::Memory),
        (fs::read(guest_file("crashes_early").await).unwrap(), FaultKind::Trap),
    ] {
        let (error, text) = refusal(&hosting, &bytes, limited(limits.clone())).await;
        assert!(
            matches!(&error, LoadError::Start { fault, .. } if fault.kind == kind),
            "{error}"
        );
        assert!(text.starts_with("does not start: "), "{text}");
    }
    // What no limit could ever allow does not fit the pool.
    let (error, text) = refusal(&hosting, &provider_with("(memory 8192)"), settings()).await;
    assert!(matches!(error, LoadError::Invalid { .. }), "{error}");
    assert!(text.contains("memory"), "{text}");
    assert_eq!(hosting.metric("cloudwit_provider_instances_in_use"), Some(0.0));
}

#[tokio::test]
async fn the_text_of_an_early_panic_is_in_the_refusal() {
    let hosting = Hosting::new(HostOptions::default());
    let error = hosting
        .load_file(&guest_file("crashes_early").await, settings())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("forgot who I am"), "{error}");
}

#[tokio::test]
async fn all_mistakes_of_the_settings_are_named_at_once() {
    let hosting = Hosting::new(HostOptions::default());
    let mut wrong = limited(Limits {
        concurrency: 0,
        memory_bytes: 1,
        ..Limits::default()
    });
    wrong.grants =
        serde_saphyr::from_str("http: [{host: 'https://x'}]\nsecrets: [{name: k, file: /nowhere/k, uses: [hmac]}]")
            .unwrap();
    let error = hosting
        .load_file(&guest_file("only_instances").await, wrong)
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "limits.concurrency: 0",
        "limits.memoryBytes: 1",
        "grants.http[0].host",
        "/nowhere/k",
    ] {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
}

#[tokio::test]
async fn provider_identifies_itself() {
    let hosting = Hosting::new(HostOptions::default());
    let file = guest_file("only_instances").await;
    let provider = hosting.load_file(&file, settings()).await.unwrap();
    let identity = provider.identity();
    assert_eq!(
        (identity.name.as_str(), identity.version.as_str()),
        ("only_instances", VERSION)
    );
    assert_eq!(identity.provider_id_prefixes, ["test://"]);
    assert_eq!(identity.digest.len(), 64);
    let facts = provider.load_facts();
    assert_eq!(facts.component_bytes as u64, fs::metadata(file).unwrap().len());
    assert!(facts.code_time <= facts.load_time && !facts.from_cache);
}

#[tokio::test]
async fn the_sim_provider_is_taken_with_everything_it_exports() {
    let hosting = Hosting::new(HostOptions::default());
    let build = || cloudwit_test_support::programs::guests::provider("sim");
    let file = tokio::task::spawn_blocking(build).await.unwrap();
    let provider = hosting.load_file(&file, settings()).await.unwrap();
    let abilities = provider.abilities();
    assert!(abilities.instances && abilities.load_balancers && abilities.routes);
    assert_eq!(provider.identity().name, "sim");
    // It was configured with nothing, and says so without a fault.
    assert!(!provider.check().await.unwrap().is_empty());
    assert!(matches!(provider.probe().await, Err(CloudError::Failure(_))));
}

/// Loads a guest with a host of its own, as a start of the process does. Whether the code was found in the cache.
async fn loads_from_cache(dir: &Path) -> bool {
    let hosting = Hosting::new(HostOptions {
        cache_dir: Some(dir.into()),
        ..HostOptions::default()
    });
    let provider = hosting.load("only_instances", settings()).await;
    assert_eq!(provider.lookup(&[node("a")]).await.unwrap().len(), 1);
    let from_cache = provider.load_facts().from_cache;
    let code = if from_cache { "cached" } else { "compiled" };
    let loads = format!("cloudwit_provider_load_duration_seconds_count{{code=\"{code}\"}}");
    assert_eq!(hosting.metric(&loads), Some(1.0));
    from_cache
}

#[tokio::test]
async fn compiled_code_is_reused_and_rebuilt_when_damaged() {
    let dir = tempfile::tempdir().unwrap();
    assert!(!loads_from_cache(dir.path()).await);
    assert!(loads_from_cache(dir.path()).await);
    let entries: Vec<PathBuf> = fs::read_dir(dir.path().join("cloudwit-code"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    let mut code = fs::read(entry).unwrap();
    let middle = code.len() / 2;
    code[middle] ^= 0x40;
    fs::write(entry, code).unwrap();
    assert!(!loads_from_cache(dir.path()).await, "a damaged entry was used");
    assert!(loads_from_cache(dir.path()).await, "the damaged entry was not replaced");
}

#[test]
fn every_test_guest_has_a_test() {
    let tests: String = cloudwit_suite::files_below(&cloudwit_suite::root().join("tests/suite/tests"), ".rs")
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let examples = fs::read_dir(cloudwit_suite::root().join("tests/guests/examples")).unwrap();
    let guests: Vec<String> = examples
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert!(guests.len() > 10, "{guests:?}");
    let untested: Vec<_> = guests
        .iter()
        .filter(|guest| !tests.contains(&format!("\"{guest}\"")))
        .collect();
    assert!(untested.is_empty(), "guests without a test: {untested:?}");
}
