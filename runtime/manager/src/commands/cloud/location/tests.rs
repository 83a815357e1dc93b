//! The forms of a machine's location, read back by what they are for.

use std::process::Command;

use cloudwit_model::Instance;

use super::*;

fn here(provider_id: &str) -> MachineLocation {
    MachineLocation {
        node: "node-1".into(),
        instance: Instance {
            provider_id: provider_id.into(),
            zone: Some("sim-1a".into()),
            region: Some("sim-1".into()),
            ..Instance::default()
        },
    }
}

#[test]
fn flags_are_those_of_the_kubelet() {
    let text = written(&here("sim://vm-1"), Form::Flags).unwrap();
    assert_eq!(
        text,
        "--hostname-override=node-1 --provider-id=sim://vm-1 \
         --node-labels=topology.kubernetes.io/region=sim-1,topology.kubernetes.io/zone=sim-1a\n"
    );
}

#[test]
fn shell_reads_the_environment_as_it_was_meant() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), written(&here("sim://vm-1"), Form::Environment).unwrap()).unwrap();
    let script = format!(
        ". {} && printf '%s|' \"$NODE_NAME\" \"$PROVIDER_ID\" \"$ZONE\" $KUBELET_EXTRA_ARGS",
        file.path().display()
    );
    let output = Command::new("sh").args(["-euc", &script]).output().unwrap();
    let read = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        read,
        "node-1|sim://vm-1|sim-1a|--hostname-override=node-1|--provider-id=sim://vm-1|\
         --node-labels=topology.kubernetes.io/region=sim-1,topology.kubernetes.io/zone=sim-1a|"
    );
}

#[test]
fn what_a_shell_would_read_is_refused_and_json_has_it() {
    let odd = here("sim://vm-1';touch /tmp/x;'");
    for form in [Form::Flags, Form::Environment] {
        let wrong = written(&odd, form).unwrap_err().to_string();
        assert!(wrong.contains("json"), "{wrong}");
    }
    let text = written(&odd, Form::Json).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["providerID"], "sim://vm-1';touch /tmp/x;'");
}

#[test]
fn kubelet_configuration_is_yaml_with_the_provider_id() {
    let text = written(&here("sim://a\"b: #c"), Form::KubeletConfig).unwrap();
    let read: serde_json::Value = crate::config::yaml::read(&text).unwrap();
    assert_eq!(read["kind"], "KubeletConfiguration");
    assert_eq!(read["providerID"], "sim://a\"b: #c");
    assert!(text.contains("#   --hostname-override=node-1\n"));
}

#[test]
fn zone_that_is_no_label_value_is_no_label() {
    let mut odd = here("sim://vm-1");
    odd.instance.zone = Some("zone of ann".into());
    let text = written(&odd, Form::Flags).unwrap();
    assert!(
        text.ends_with("--node-labels=topology.kubernetes.io/region=sim-1\n"),
        "{text}"
    );
    odd.instance.region = None;
    assert!(!written(&odd, Form::Flags).unwrap().contains("--node-labels"));
    assert!(written(&odd, Form::Text).unwrap().contains("region         -\n"));
}

#[test]
fn host_name_is_read_as_the_kubelet_reads_it() {
    assert_eq!(host_name(" Node-1.Example\n").unwrap(), "node-1.example");
    for bad in ["", " \n", "a\u{7}b", &"a".repeat(254)] {
        assert!(host_name(bad).is_err(), "{bad:?}");
    }
}
