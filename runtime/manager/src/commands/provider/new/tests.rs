use std::collections::BTreeSet;

use super::*;

const ALL: [Language; 4] = [Language::Rust, Language::Go, Language::Js, Language::Python];

fn args(name: &str, lang: Language, out: &Path) -> NewArgs {
    NewArgs {
        name: name.to_owned(),
        lang,
        out: Some(out.to_owned()),
        sdk: None,
    }
}

fn text<'p>(project: &'p Project, path: &str) -> &'p str {
    let found = project.files().iter().find(|(known, _)| known == Path::new(path));
    std::str::from_utf8(&found.unwrap_or_else(|| panic!("no {path}")).1).unwrap()
}

#[test]
fn each_language_has_a_project_without_placeholders() {
    for language in ALL {
        let project = Project::of(language, "my-cloud", None).unwrap();
        for wanted in ["README.md", "settings.yaml", "cloud-config.json", ".gitignore"] {
            assert!(!text(&project, wanted).is_empty(), "{language:?} {wanted}");
        }
        assert!(text(&project, "README.md").starts_with("# my-cloud\n"));
        let paths: BTreeSet<_> = project.files().iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), project.files().len(), "{language:?}");
        for (path, content) in project.files() {
            let content = String::from_utf8(content.clone()).unwrap();
            for placeholder in ["{{name}}", "{{snake}}", "{{version}}", "{{sdk}}"] {
                assert!(!content.contains(placeholder), "{language:?} {}", path.display());
            }
            assert!(
                path.is_relative() && !path.to_string_lossy().ends_with(".tmpl"),
                "{}",
                path.display()
            );
        }
        let has_contract = paths.iter().any(|path| path.starts_with("wit"));
        assert_eq!(has_contract, language != Language::Rust, "{language:?}");
    }
}

#[test]
fn contract_of_the_project_is_the_one_of_the_repository() {
    let project = Project::of(Language::Go, "my-cloud", None).unwrap();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v0.1");
    for file in ["world.wit", "instances.wit", "deps/http.wit"] {
        let own = fs::read_to_string(wit.join(file)).unwrap();
        assert_eq!(text(&project, &format!("wit/{file}")), own, "{file}");
    }
}

#[test]
fn rust_depends_on_the_released_sdk_or_on_a_folder() {
    let released = Project::of(Language::Rust, "my-cloud", None).unwrap();
    let line = format!("\ncloudwit-guest-sdk = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(
        text(&released, "Cargo.toml").contains(&line),
        "{}",
        text(&released, "Cargo.toml")
    );
    let local = Project::of(Language::Rust, "my-cloud", Some("/a \"b\"/guest-sdk")).unwrap();
    let line = "\ncloudwit-guest-sdk = { path = \"/a \\\"b\\\"/guest-sdk\" }\n";
    assert!(
        text(&local, "Cargo.toml").contains(line),
        "{}",
        text(&local, "Cargo.toml")
    );
}

#[test]
fn names_that_no_language_takes_are_refused() {
    for good in ["lab", "my-cloud", "cloud9", "a-1-b", &"a".repeat(63)] {
        assert_eq!(mistake_of_name(good), None, "{good}");
    }
    for bad in [
        "",
        "My-cloud",
        "my_cloud",
        "9cloud",
        "-a",
        "a-",
        "a--b",
        "a/b",
        "..",
        "a b",
        "é",
        &"a".repeat(64),
    ] {
        let mistake = mistake_of_name(bad).unwrap_or_else(|| panic!("{bad:?} is taken"));
        assert!(
            mistake.contains(&format!("{bad:?}")) && mistake.contains("my-cloud"),
            "{mistake}"
        );
    }
    for taken in ["fn", "test", "std", "cloudwit-guest-sdk"] {
        let mistake = mistake_of_name(taken).unwrap_or_else(|| panic!("{taken} is taken"));
        assert!(mistake.contains(&format!("{taken}-cloud")), "{mistake}");
    }
}

#[test]
fn what_is_there_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let (full, file, empty) = (
        folder.path().join("full"),
        folder.path().join("file"),
        folder.path().join("empty"),
    );
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "mine").unwrap();
    fs::write(&file, "mine").unwrap();
    fs::create_dir(&empty).unwrap();
    for there in [&full, &file] {
        let error = run(args("my-cloud", Language::Js, there)).unwrap_err().to_string();
        assert!(
            error.contains(&there.display().to_string()) && error.contains("--out"),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    run(args("my-cloud", Language::Js, &empty)).unwrap();
    assert!(empty.join("package.json").is_file() && empty.join("wit/world.wit").is_file());
}

#[test]
fn all_mistakes_are_reported_together_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new");
    let wrong = NewArgs {
        sdk: Some(folder.path().to_owned()),
        ..args("My Cloud", Language::Rust, &out)
    };
    let error = run(wrong).unwrap_err().to_string();
    assert!(error.contains("\"My Cloud\"") && error.contains("--sdk="), "{error}");
    let wrong = NewArgs {
        sdk: Some(folder.path().to_owned()),
        ..args("my-cloud", Language::Go, &out)
    };
    let error = run(wrong).unwrap_err().to_string();
    assert!(error.contains("--lang rust only"), "{error}");
    assert!(!out.exists());
}

#[test]
fn sdk_is_known_by_its_manifest() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-sdk");
    assert!(sdk_at(&own).unwrap().ends_with("/guest-sdk"));
    let error = sdk_at(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
    assert!(error.contains("not that of cloudwit-guest-sdk"), "{error}");
}

#[test]
fn folder_in_the_next_commands_can_be_pasted() {
    let first = |out: &str| next(Language::Rust, "my-cloud", Path::new(out))[0].clone();
    assert_eq!(first("my-cloud"), "cd my-cloud && cargo test");
    assert_eq!(first("it's here"), r"cd 'it'\''s here' && cargo test");
    assert!(next(Language::Rust, "my-cloud", Path::new("x"))[2].ends_with("release/my_cloud.wasm"));
}
