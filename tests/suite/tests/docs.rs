//! What the documents promise exists: links lead somewhere, the commands they show are commands, and the tests they name are tests.

use std::fs;
use std::path::Path;

use clap::Parser;
use cloudwit_suite::documents::{broken_links, commands, test_names};
use cloudwit_suite::{files_below, root};

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let documents = files_below(&root(), ".md");
    assert!(documents.contains(&root().join("README.md")), "{documents:?}");
    for file in documents {
        let text = fs::read_to_string(&file).unwrap();
        broken.extend(
            broken_links(&file, &text)
                .into_iter()
                .map(|link| format!("{} -> {link}", file.display())),
        );
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_command_of_the_readme_is_understood() {
    let shown = commands(&fs::read_to_string(root().join("README.md")).unwrap());
    for wanted in ["cargo xtask sandbox", "cargo xtask test"] {
        assert!(
            shown.iter().any(|command| command == wanted),
            "the README does not show `{wanted}`: {shown:?}"
        );
    }
    let unknown: Vec<_> = shown.iter().filter_map(|command| check(command).err()).collect();
    assert!(
        unknown.is_empty(),
        "commands of the README that do not exist:\n{}",
        unknown.join("\n")
    );
}

/// Every issue and pull request that `docs/reference/user-pain.md` has to have a row for.
const PAINS: [&str; 50] = [
    "oracle/oci-cloud-controller-manager#57",
    "kubernetes/cloud-provider-vsphere#479",
    "kubernetes/cloud-provider-vsphere#501",
    "kubernetes/cloud-provider-openstack#2062",
    "kubernetes/kubernetes#58334",
    "kubernetes/kubernetes#63226",
    "apache/cloudstack-kubernetes-provider#37",
    "outscale/cloud-provider-osc#83",
    "kubernetes/cloud-provider-openstack#3225",
    "kubernetes/kubernetes#75285",
    "kubernetes/kubernetes PR #75405",
    "kubernetes/cloud-provider-openstack#540",
    "rancher/rke2#7822",
    "kubernetes-retired/cloud-provider-equinix-metal#531",
    "kubernetes-sigs/cloud-provider-azure#1700",
    "hetznercloud/hcloud-cloud-controller-manager#611",
    "hetznercloud/hcloud-cloud-controller-manager#661",
    "hetznercloud/hcloud-cloud-controller-manager#308",
    "kubernetes/kubernetes#25610",
    "kubernetes/kubernetes#111539",
    "kubernetes/kubernetes#26119",
    "kubernetes-sigs/cloud-provider-azure#5904",
    "syself/cluster-api-provider-hetzner#1331",
    "deckhouse/deckhouse#12982",
    "kubernetes/cloud-provider-openstack PR #743",
    "kubernetes/kubernetes#35056",
    "kubernetes/kubernetes#53451",
    "kubernetes/kubernetes#78124",
    "kubernetes/kubernetes#78954",
    "kubernetes/cloud-provider-gcp#981",
    "kubernetes/cloud-provider-openstack#1931",
    "kubernetes/cloud-provider-openstack#2751",
    "kubernetes/cloud-provider-openstack#1597",
    "oracle/oci-cloud-controller-manager#196",
    "kubernetes/cloud-provider-openstack#2962",
    "kubernetes/cloud-provider-openstack#1595",
    "kubernetes/cloud-provider-openstack#2858",
    "kubernetes/cloud-provider-openstack#1304",
    "kubernetes-sigs/cloud-provider-azure#1194",
    "hetznercloud/hcloud-cloud-controller-manager#1139",
    "kubernetes-sigs/cloud-provider-azure#604",
    "kubernetes/cloud-provider-vsphere#531",
    "kubernetes/cloud-provider-vsphere#786",
    "kubewarden/policy-server#374",
    "kubewarden/policy-server#682",
    "kubewarden/adm-controller#368",
    "kubewarden/policy-server#740",
    "bytecodealliance/wasmtime#4054",
    "bytecodealliance/componentize-go#53",
    "kubernetes/cloud-provider-vsphere#482",
];

#[test]
fn every_pain_has_a_row_with_a_test_of_its_name() {
    let page = fs::read_to_string(root().join("docs/reference/user-pain.md")).unwrap();
    let tests = |pain: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {pain} |")));
        row.map(test_names)
    };
    for pain in PAINS {
        let number = pain.rsplit('#').next().unwrap_or_default();
        let named = tests(pain).unwrap_or_else(|| panic!("{pain} has no row"));
        assert!(
            named.iter().any(|test| test.contains(&format!("_{number}_"))),
            "no test of {pain} has its number: {named:?}"
        );
    }
}

#[test]
fn every_test_that_a_page_names_exists() {
    let sources: String = files_below(&root(), ".rs")
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    for page in [
        "docs/reference/user-pain.md",
        "docs/reference/upstream-tests.md",
        "docs/explanation/compatibility.md",
        "SECURITY.md",
    ] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let named = test_names(&text);
        assert!(named.len() > 20, "{page} names {} tests only", named.len());
        let missing: Vec<_> = named
            .into_iter()
            .filter(|test| !sources.contains(&format!("fn {test}(")))
            .collect();
        assert!(missing.is_empty(), "{page} names tests that do not exist: {missing:#?}");
    }
}

/// Whether a command that we own has this subcommand and these flags; commands of others are taken as they are.
fn check(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", arguments @ ..] => xtask::cli::Cli::try_parse_from([&["xtask"], arguments].concat())
            .map(|_| ())
            .map_err(|error| format!("{command}: {error}")),
        [program, arguments @ ..] if Path::new(program).ends_with("cloudwit") => check_flags(command, arguments),
        _ => Ok(()),
    }
}

/// The flags of the binary are fields of its arguments.
fn check_flags(command: &str, arguments: &[&str]) -> Result<(), String> {
    let declared: String = files_below(&root().join("runtime/manager/src"), ".rs")
        .iter()
        .map(|file| fs::read_to_string(file).expect("a file that was just found can be read"))
        .filter(|text| text.contains("clap::Args") || text.contains("Parser)"))
        .collect();
    for flag in arguments.iter().filter_map(|argument| argument.strip_prefix("--")) {
        let name = flag.split('=').next().unwrap_or_default().replace('-', "_");
        if !declared.contains(&format!("pub {name}:")) {
            return Err(format!("{command}: cloudwit has no flag --{flag}"));
        }
    }
    Ok(())
}
