//! The operator's cloud config on its way into a real component: JSON, git-config syntax and YAML come to the same.

use cloudwit_host::{HostOptions, ProviderSettings};
use cloudwit_suite::hosting::{Hosting, settings};

async fn loaded(config_text: &str) -> (Hosting, cloudwit_host::Provider) {
    let hosting = Hosting::new(HostOptions::default());
    let settings = ProviderSettings {
        config_text: config_text.into(),
        ..settings()
    };
    let provider = hosting.load("reads_config", settings).await;
    (hosting, provider)
}

#[tokio::test]
async fn one_config_in_three_formats_is_equal() {
    for text in [
        r#"{"global": {"auth-url": "https://k.test", "insecure-flag": true},
            "virtualcenter": {"10.0.0.1": {"port": 443, "datacenters": ["a", "b"]}}}"#,
        "# as upstream writes it\n[Global]\nAuth-URL = \"https://k.test\" ; quoted\ninsecure-flag\n\
         [VirtualCenter \"10.0.0.1\"]\nport = 443\ndatacenters = a\ndatacenters = b\n",
        "global:\n  auth-url: https://k.test\n  insecure-flag: true\nvirtualcenter:\n  10.0.0.1:\n    port: 443\n    \
         datacenters: [a, b]\n",
    ] {
        let (_hosting, provider) = loaded(text).await;
        assert_eq!(provider.check().await.unwrap(), [], "{text}");
        let told = provider.probe().await.unwrap_err().to_string();
        assert!(told.contains("https://k.test true 10.0.0.1:443 a+b"), "{text}: {told}");
    }
}

#[tokio::test]
async fn mistakes_are_reported_together_in_each_format() {
    for text in [
        r#"{"global": {"auth-ur": "x", "insecure-flag": "maybe"}}"#,
        "[Global]\nauth-ur = x\ninsecure-flag = maybe\n",
        "global:\n  auth-ur: x\n  insecure-flag: maybe\n",
    ] {
        let (_hosting, provider) = loaded(text).await;
        let mut places: Vec<String> = provider
            .check()
            .await
            .unwrap()
            .into_iter()
            .map(|problem| problem.at)
            .collect();
        places.sort();
        assert_eq!(
            places,
            ["global.auth-ur", "global.auth-url", "global.insecure-flag"],
            "{text}"
        );
    }
    for (text, line) in [
        ("{\"global\":", "line 1"),
        ("[Global\n", "line 1"),
        ("global:\n  a: [\n", "line 2"),
    ] {
        let (_hosting, provider) = loaded(text).await;
        let problems = provider.check().await.unwrap();
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].message.contains(line), "{text}: {problems:?}");
    }
}
