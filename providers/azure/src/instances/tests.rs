use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use super::*;

const GROUP: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";

fn node(id: &str) -> NodeRef {
    NodeRef::named("one").with_provider_id(format!("azure://{id}"))
}

/// A provider whose cloud answers by path; anything else is unknown to it.
fn provider(answers: &'static [(&'static str, u16, &'static str)]) -> (FakeHost, Azure) {
    let host = FakeHost::new();
    host.config(r#"{"useManagedIdentityExtension": true, "subscriptionId": "s", "resourceGroup": "rg", "location": "westeurope"}"#);
    host.serve(move |request| {
        if request.url.contains("/metadata/identity") {
            return FakeAnswer::json(200, &json!({ "access_token": "t", "expires_in": "9999" }));
        }
        let known = answers.iter().find(|(path, ..)| request.url.contains(path));
        let missing = r#"{"error": {"code": "ResourceNotFound", "message": "no"}}"#;
        let (status, body) = known.map_or((404, missing), |(_, status, body)| (*status, *body));
        FakeAnswer::new(status, &[], body)
    });
    let provider = host.provider();
    (host, provider)
}

#[test]
fn ids_of_other_things_are_refused() {
    for id in [
        "/subscriptions/s",
        "",
        "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/loadBalancers/a",
        "vm-1",
    ] {
        assert_eq!(Place::of(id), None, "{id}");
    }
    let (_host, provider) = provider(&[]);
    let answer = provider.lookup(&[node("/subscriptions/s")]).unwrap().remove(0);
    assert_eq!(answer.unwrap_err().kind, FailureKind::Invalid);
}

#[test]
fn places_do_not_depend_on_case() {
    let place = Place::of(&format!("{GROUP}/virtualMachines/a")).unwrap();
    let shouted =
        Place::of("/SUBSCRIPTIONS/S/RESOURCEGROUPS/RG/PROVIDERS/MICROSOFT.COMPUTE/VIRTUALMACHINES/B").unwrap();
    assert_eq!(place, shouted);
    let of_set = Place::of(&format!("{GROUP}/virtualMachineScaleSets/Set/virtualMachines/0")).unwrap();
    assert_eq!(
        of_set.machines(),
        format!("{}/virtualMachineScaleSets/set/virtualMachines", GROUP)
    );
}

#[test]
fn only_the_cloud_itself_denies_a_machine() {
    let (_host, denied) = provider(&[]);
    let id = format!("{GROUP}/virtualMachines/a");
    assert_eq!(
        denied.lookup(&[node(&id)]).unwrap(),
        [Ok(Presence::Absent(Evidence::ById))]
    );
    let (_host, page) = provider(&[("virtualMachines/a", 404, "<html>")]);
    assert_eq!(page.lookup(&[node(&id)]).unwrap_err().kind, FailureKind::Unavailable);
    let (_host, elsewhere) = provider(&[(
        "virtualMachines/a",
        404,
        r#"{"error": {"code": "SubscriptionNotFound", "message": "no"}}"#,
    )]);
    assert_eq!(
        elsewhere.lookup(&[node(&id)]).unwrap()[0].clone().unwrap_err().kind,
        FailureKind::Invalid
    );
}

#[test]
fn a_machine_without_an_address_is_no_absence() {
    let (_host, provider) = provider(&[(
        "virtualMachines/a",
        200,
        r#"{"id": "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/a", "name": "a", "location": "WestEurope"}"#,
    )]);
    let answer = provider
        .lookup(&[node(&format!("{GROUP}/virtualMachines/a"))])
        .unwrap()
        .remove(0);
    assert_eq!(answer.unwrap_err().kind, FailureKind::FailedPrecondition);
}

#[test]
fn a_machine_that_is_being_changed_counts_as_running() {
    let machine = |provisioning: &str, power: &str| {
        let value = json!({ "id": "/x", "location": "WestEurope", "zones": ["2"], "properties": {
            "provisioningState": provisioning, "instanceView": { "statuses": [{ "code": format!("PowerState/{power}") }] } } });
        let machine = Machine::read(&value).unwrap();
        matches!(machine.existing(&machine.view, Vec::new()), Existing::Stopped(_))
    };
    assert!(
        machine("Succeeded", "deallocated") && machine("Succeeded", "stopped") && machine("Succeeded", "deallocating")
    );
    assert!(!machine("Updating", "stopped") && !machine("Succeeded", "running") && !machine("Succeeded", "starting"));
}
