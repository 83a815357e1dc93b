//! The command line of the real binary: mistakes are told all at once with exit code 1, before anything is done.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};

use cloudwit_test_support::programs;

fn run(flags: &[&str]) -> Output {
    Command::new(programs::cloudwit()).args(flags).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_bad_flag_is_one_clear_message() {
    for (flag, parts) in [
        ("--no-such-flag=1", &["--no-such-flag: there is no such flag"][..]),
        ("--cloud_confg=x", &["--cloud-confg", "did you mean --cloud-config?"]),
        ("--secure-port=65536", &["--secure-port=65536"]),
        ("--bind-address=here", &["--bind-address=here"]),
        (
            "--node-monitor-period=5",
            &["--node-monitor-period=5", "write for example 10s"],
        ),
        (
            "--controllers=*,nope",
            &["\"nope\" is not in the list of known controllers"],
        ),
        (
            "--feature-gates=Nope=true",
            &["unrecognized feature gate \"Nope\"", "known: "],
        ),
        (
            "--tls-min-version=VersionTLS10",
            &["--tls-min-version=VersionTLS10", "VersionTLS12"],
        ),
        ("--tls-cipher-suites=RC4", &["\"RC4\" is not served; known: TLS_"]),
        (
            "--tls-cert-file=a.pem",
            &["--tls-cert-file and --tls-private-key-file belong together"],
        ),
        (
            "--authorization-always-allow-paths=/a*b",
            &["\"/a*b\"", "has a * that is not its end"],
        ),
        (
            "--admin-address=0.0.0.0:80",
            &["--admin-address=0.0.0.0:80", "not on loopback"],
        ),
        (
            "--leader-elect-resource-lock=endpoints",
            &["resourceLock value must be \"leases\""],
        ),
        ("--webhooks=pvl", &["\"pvl\" is not in the list of known webhooks"]),
        ("--vmodule=a=4", &["--vmodule=a=4", "RUST_LOG"]),
        ("--version=v1.0.0", &["takes true, false or raw"]),
        (
            "--concurrent-node-lifecycle-syncs=0",
            &["--concurrent-node-lifecycle-syncs=0"],
        ),
        ("now", &["cloudwit does not take any arguments, got [\"now\"]"]),
    ] {
        let output = run(&["--cloud-provider=sim", flag]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flag}: {said}");
        assert_eq!(
            said.lines().filter(|line| line.starts_with("cloudwit: ")).count(),
            1,
            "{flag}: {said}"
        );
        for part in parts {
            assert!(said.contains(part), "{flag}: {part:?} is missing in: {said}");
        }
    }
}

#[test]
fn mistakes_of_all_kinds_are_reported_together() {
    let output = run(&[
        "--cloud-providr=sim",
        "--secure-port=x",
        "--controllers=nope",
        "--cluster-cidr=10.0.0.0/33",
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "mistakes in the configuration, nothing was started",
        "--cloud-providr: there is no such flag; did you mean --cloud-provider?",
        "--secure-port=x",
        "\"nope\"",
        "10.0.0.0/33",
        "--cloud-provider cannot be empty",
    ] {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
}

#[test]
fn version_and_help_are_reported_with_exit_code_0() {
    let version = run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert!(text(&version.stdout).starts_with("cloudwit "), "{version:?}");
    assert!(text(&run(&["--version=raw"]).stdout).contains("cloud-provider v1.37"));
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    for part in [
        "Example:",
        "Leader election:",
        "--secure-port",
        "Deleting Nodes whose machines are gone:",
    ] {
        assert!(help.contains(part), "{part:?} is missing in: {help}");
    }
}
