use cloudwit_guest_sdk::testing::{FakeHost, placeholder};
use serde_json::json;

use super::*;
use crate::Azure;

const VMS: &str = "https://management.azure.com/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines?api-version=2025-04-01";
const TOKEN: &str = "https://login.microsoftonline.com/t/oauth2/v2.0/token";

fn host(more: &str) -> FakeHost {
    let host = FakeHost::new();
    let config = format!(
        "{{\"tenantId\": \"t\", \"subscriptionId\": \"s\", \"resourceGroup\": \"rg\", \"location\": \"westeurope\", {more}}}"
    );
    host.config(config);
    host
}

fn granted(host: &FakeHost, token: &str) {
    let expected = host
        .expect("GET", VMS)
        .with_header("authorization", &format!("Bearer {token}"));
    expected.answers(200, json!({ "value": [] }));
}

#[test]
fn a_client_secret_never_enters_the_component() {
    let host = host("\"aadClientId\": \"c\"");
    host.secret("client-secret", "s");
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "https://management.azure.com/.default"),
        ("client_id", "c"),
        ("client_secret", &placeholder("client-secret", Encoding::Form)),
    ];
    host.expect("POST", TOKEN)
        .with_form(&form)
        .answers(200, json!({ "access_token": "T", "expires_in": 3599 }));
    granted(&host, "T");
    granted(&host, "T");
    let provider: Azure = host.provider();
    provider.probe().unwrap();
    provider.probe().unwrap();
}

#[test]
fn managed_identity_uses_metadata_and_text_numbers_parse() {
    let host = host("\"useManagedIdentityExtension\": true, \"userAssignedIdentityID\": \"u\"");
    let url = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F&client_id=u";
    let expected = host.expect("GET", url).with_header("metadata", "true");
    expected.answers(200, json!({ "access_token": "M", "expires_in": "86399" }));
    granted(&host, "M");
    host.provider::<Azure>().probe().unwrap();
}

#[test]
fn refused_token_is_renewed_once_and_refused_secret_is_named() {
    let host = host("\"aadClientId\": \"c\", \"aadClientSecret\": \"plain\"");
    host.expect("POST", TOKEN)
        .with_fields(&[("client_secret", "plain")])
        .answers(200, json!({ "access_token": "T", "expires_in": 3599 }));
    let over = json!({ "error": { "code": "ExpiredAuthenticationToken", "message": "over" } });
    host.expect("GET", VMS).answers(401, over);
    let said = json!({ "error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided. Trace ID: 1" });
    host.expect("POST", TOKEN).answers(401, said);
    let failure = host.provider::<Azure>().probe().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    let text = "getting an access token: invalid_client: AADSTS7000215: Invalid client secret provided.; check tenantId, aadClientId and the identity's secret";
    assert_eq!(failure.message(), text);
}

#[test]
fn thumbprints_are_read_as_people_write_them() {
    let plain = "A1B2C3D4E5F60718293A4B5C6D7E8F9001122334";
    let colons = "a1:b2:c3:d4:e5:f6:07:18:29:3a:4b:5c:6d:7e:8f:90:01:12:23:34";
    assert_eq!(assertion::thumbprint(plain), assertion::thumbprint(colons));
    assert!(assertion::thumbprint(plain).is_some());
    assert_eq!(assertion::thumbprint("a1b2"), None);
    assert_eq!(assertion::thumbprint(&"zz".repeat(20)), None);
}
