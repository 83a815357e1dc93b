//! Secrets of a request about volumes, over those of the provider.

use cloudwit_model::VolumeSecrets;

use super::*;
use crate::grants::Grants;
use crate::net::destination::{Destination, Host, Scheme};
use crate::secrets::encoding::Encoding;
use crate::secrets::keys::{Hash, KeyError};
use crate::secrets::placeholders::{FillError, Filling, Placeholders, StandsFor};

const VALUE: &str = "qu1ck-br0wn-f0x-jumps";

/// A provider with the secret `token` and these entries for secrets of volumes.
fn provider(entries: &str) -> Secrets {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "canary-of-the-provider").unwrap();
    let path = file.path().display();
    let grants: Grants = serde_saphyr::from_str(&format!(
        "secrets:\n- {{name: token, file: {path}, hosts: [api.example.com], uses: [placeholder]}}\n{entries}"
    ))
    .unwrap();
    Secrets::new(Keyring::load(&grants.secrets).unwrap(), &[])
}

fn request(pairs: &[(&str, &str)]) -> VolumeSecrets {
    VolumeSecrets::new(
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    )
    .unwrap()
}

fn to(host: &str) -> Destination {
    Destination {
        scheme: Scheme::Https,
        host: Host::parse(host).unwrap(),
        port: 443,
    }
}

const PLACEHOLDER: &str = "- {name: volume/passphrase, hosts: [api.example.com], uses: [placeholder]}";

#[test]
fn granted_one_is_filled_at_its_hosts_in_its_call_only() {
    let provider = provider(PLACEHOLDER);
    let call = provider.with_volume_secrets(&request(&[("passphrase", VALUE)]));
    let issued = Placeholders::default();
    let stands_for = || StandsFor::Secret("volume/passphrase".into(), Encoding::Plain);
    let text = issued.issue(stands_for(), &call.keyring, &[]).unwrap();
    let fill = |secrets: &Secrets, host: &str| {
        let filled = Filling::new(&issued, &secrets.keyring, &to(host)).fill(text.as_bytes());
        filled.map(|filled| filled.map(|text| String::from_utf8(text.to_vec()).unwrap()))
    };
    assert_eq!(fill(&call, "api.example.com"), Ok(Some(VALUE.to_owned())));
    let Err(FillError::Withheld(elsewhere)) = fill(&call, "evil.example.com") else {
        panic!("it leaves for another host")
    };
    assert_eq!(
        elsewhere.entry,
        "- {name: volume/passphrase, hosts: [api.example.com, evil.example.com], uses: [placeholder]}"
    );
    // Neither the provider's other calls nor those of a request without the key have it.
    let other = provider.with_volume_secrets(&request(&[("other", VALUE), ("passphrase", "")]));
    for without in [&provider, &other] {
        assert!(matches!(fill(without, "api.example.com"), Err(FillError::Withheld(_))));
        let refused = Placeholders::default().issue(stands_for(), &without.keyring, &[]);
        let Err(KeyError::Unusable(why)) = refused else {
            panic!("{refused:?}")
        };
        assert!(why.contains("no value for the key \"passphrase\""), "{why}");
    }
}

#[test]
fn what_is_not_granted_carries_the_line_to_add() {
    let call = provider("").with_volume_secrets(&request(&[("passphrase", VALUE)]));
    let hosts = ["api.example.com".to_owned()];
    let stands_for = StandsFor::Secret("volume/passphrase".into(), Encoding::Plain);
    let refused = Placeholders::default().issue(stands_for, &call.keyring, &hosts);
    let line = "- {name: volume/passphrase, hosts: [api.example.com], uses: [placeholder]}";
    let text = format!("secret \"volume/passphrase\" is not granted; to allow it, add to grants.secrets: {line}");
    assert_eq!(refused, Err(KeyError::NotGranted(text)));
    assert!(matches!(
        call.keyring.open("volume/passphrase"),
        Err(KeyError::NotGranted(_))
    ));
    let odd = call.keyring.reveal("volume/a b");
    assert!(matches!(odd, Err(KeyError::NotGranted(text)) if text.ends_with("invalid name")));
}

#[test]
fn each_use_has_to_be_granted_and_secrets_of_the_provider_stay() {
    let call = provider(PLACEHOLDER).with_volume_secrets(&request(&[("passphrase", VALUE), ("token", "other")]));
    let Err(KeyError::Unusable(why)) = call.keyring.reveal("volume/passphrase") else {
        panic!("it is revealed")
    };
    let line = "- {name: volume/passphrase, hosts: [api.example.com], uses: [placeholder, reveal]}";
    assert!(why.ends_with(line), "{why}");
    let key = call.keyring.open("volume/passphrase").unwrap();
    assert!(matches!(key.hmac(Hash::Sha256, b""), Err(KeyError::Unusable(_))));
    let token = call.keyring.placeholder("token", &to("api.example.com")).unwrap();
    assert_eq!(token.expose(), b"canary-of-the-provider");
    let signing = provider("- {name: volume/key, uses: [hmac]}").with_volume_secrets(&request(&[("key", "k")]));
    let computed = signing
        .keyring
        .open("volume/key")
        .unwrap()
        .hmac(Hash::Sha256, b"data")
        .unwrap();
    assert_eq!(computed.len(), 32);
}

#[test]
fn texts_of_the_call_hide_all_secrets_of_both() {
    let provider = provider(PLACEHOLDER);
    let call = provider.with_volume_secrets(&request(&[
        ("passphrase", VALUE),
        ("ungranted", "lazy-d0g-sleeps-here"),
    ]));
    let text = format!("{VALUE} lazy-d0g-sleeps-here canary-of-the-provider");
    assert_eq!(
        call.redactor.redact(text.clone()),
        "[secret volume/passphrase] [secret volume/ungranted] [secret token]"
    );
    assert_eq!(
        call.redactor.betrayed(&format!("disk-{VALUE}")),
        Some("volume/passphrase")
    );
    assert_eq!(call.redactor.betrayed("canary-of-the-provider"), Some("token"));
    call.redactor.redact_of_guest(text.clone());
    assert_eq!(provider.redactor.noted().len(), 1, "it is reported with the provider's");
    assert!(provider.redactor.redact(text).starts_with(VALUE), "the call is over");
}
