//! What is said of each cloud: README's table is that of the built components, each cloud has a guide, and all guides have one shape.

use std::fs;

use clap::ValueEnum;
use cloudwit_suite::root;
use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use xtask::cli::SandboxCloud;
use xtask::commands::clouds;
use xtask::guests::PROVIDERS;

/// The headings of every guide, in this order.
const HEADINGS: [&str; 6] = [
    "What you need",
    "Start it",
    "Come from another controller",
    "Services",
    "Volumes",
    "Try it without a cloud",
];

#[test]
fn table_of_clouds_is_up_to_date() {
    let component = |name: &str| Ok(guests::provider(name));
    let (file, wanted) = clouds::rendered(&programs::cloudwit(), component).unwrap();
    let shipped = fs::read_to_string(&file).unwrap();
    assert!(
        shipped == wanted,
        "the table of clouds in README.md is old; cargo xtask clouds writes it anew:\n{}",
        changed_lines(&shipped, &wanted)
    );
}

fn changed_lines(old: &str, new: &str) -> String {
    let gone = old
        .lines()
        .filter(|line| !new.contains(line))
        .map(|line| format!("- {line}\n"));
    let come = new
        .lines()
        .filter(|line| !old.contains(line))
        .map(|line| format!("+ {line}\n"));
    gone.chain(come).collect()
}

#[test]
fn every_provider_in_the_tree_is_a_cloud_everywhere() {
    let entries = fs::read_dir(root().join("providers")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.join("Cargo.toml").is_file());
    let mut found: Vec<String> = folders
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut built: Vec<&str> = PROVIDERS.to_vec();
    built.sort_unstable();
    assert_eq!(found, built, "providers and xtask::guests::PROVIDERS");
    let mut shown: Vec<&str> = SandboxCloud::value_variants()
        .iter()
        .map(|cloud| cloud.name())
        .collect();
    shown.sort_unstable();
    assert_eq!(shown, built, "the clouds of the sandbox");
    let listed = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for name in built {
        assert!(
            listed.contains(&format!("(guide/{name}.md)")),
            "docs/README.md does not list guide/{name}.md"
        );
        let example = root().join("deploy/examples").join(name);
        assert!(example.is_dir(), "there is no {}", example.display());
    }
}

#[test]
fn every_cloud_has_a_guide_of_one_shape() {
    let mut wrong = Vec::new();
    for name in PROVIDERS {
        let guide = fs::read_to_string(root().join(format!("docs/guide/{name}.md"))).unwrap_or_default();
        let headings: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if headings != HEADINGS {
            wrong.push(format!("docs/guide/{name}.md has {headings:?}"));
        }
        for part in [
            "# Run Cloudwit on ".to_owned(),
            format!("(../../providers/{name}/README.md"),
            format!("(../../deploy/examples/{name}"),
            format!("--cloud-provider={name}"),
            format!("`cargo xtask sandbox --cloud {name}`"),
        ] {
            if !guide.contains(&part) {
                wrong.push(format!("docs/guide/{name}.md does not have {part:?}"));
            }
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "each guide has the headings {HEADINGS:?}:\n{wrong}");
}
