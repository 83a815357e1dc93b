//! Annotations as users write them.

use super::*;
use crate::testing::{FakeHost, assert_readme};
use crate::types::FailureKind;
use crate::types::Pair;

const TABLE: Table = Table::new(
    "lab.example/",
    &[
        Annotation::new("internal", "false", "no address on the Internet"),
        Annotation::new("timeout", "60", "seconds, 1 to 4000"),
        Annotation::new("delay", "", "seconds; `delay` of the configuration"),
        Annotation::new("protocol", "tcp", "`tcp` | `http`"),
        Annotation::new("subnets", "", "ids between commas"),
        Annotation::new("tags", "", "`key=value` between commas"),
        Annotation::new("allowed", "10.0.0.0/8", "networks"),
        Annotation::new("other.example/internal", "", "an old name of `internal`"),
        Annotation::new("other.example/port_{port}_timeout", "", "seconds of one port"),
    ],
);

fn service(annotations: &[(&str, &str)]) -> Service {
    let mut service = Service::new("default", "web", "1");
    service.annotations = annotations.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
    service
}

#[test]
fn unset_keys_take_the_tables_default() {
    for service in [
        service(&[]),
        service(&[("lab.example/timeout", ""), ("lab.example/internal", " ")]),
    ] {
        let mut read = TABLE.read(&service);
        assert_eq!(
            (read.boolean("internal"), read.integer("timeout", 1..=4000)),
            (Some(false), Some(60))
        );
        assert_eq!(
            (read.integer("delay", 1..=9), read.list("subnets"), read.map("tags")),
            (None, None, None)
        );
        assert_eq!(read.cidrs("allowed"), Some(vec![cidr::parse("10.0.0.0/8").unwrap()]));
        assert_eq!(read.boolean("other.example/internal"), None);
        assert_eq!(read.finish(), Ok(()));
    }
}

#[test]
fn values_of_every_kind_are_read() {
    let service = service(&[
        ("lab.example/internal", " True "),
        ("lab.example/timeout", "4000"),
        ("lab.example/protocol", "HTTP"),
        ("lab.example/subnets", " a, ,b ,"),
        ("lab.example/tags", "a=1, b = x=y ,c,d="),
        ("lab.example/allowed", "fd00::1/64, 10.0.0.1/32"),
        ("other.example/internal", "0"),
    ]);
    let mut read = TABLE.read(&service);
    assert_eq!(
        (read.boolean("internal"), read.boolean("other.example/internal")),
        (Some(true), Some(false))
    );
    assert_eq!(read.integer("timeout", 1..=4000), Some(4000));
    assert_eq!(read.word("protocol", &[("tcp", 'T'), ("http", 'H')]), Some('H'));
    assert_eq!(read.list("subnets"), Some(vec!["a", "b"]));
    assert_eq!(
        read.map("tags"),
        Some(vec![("a", "1"), ("b", "x=y"), ("c", ""), ("d", "")])
    );
    let allowed: Vec<String> = read.cidrs("allowed").unwrap().iter().map(IpNet::to_string).collect();
    assert_eq!(allowed, ["fd00::/64", "10.0.0.1/32"]);
    assert!(read.is_set("internal") && !read.is_set("delay"));
    assert_eq!(read.finish(), Ok(()));
}

#[test]
fn each_port_has_annotations_of_its_own() {
    let service = service(&[
        ("other.example/port_80_timeout", "5"),
        ("other.example/port_81_timeout", "x"),
    ]);
    let mut read = TABLE.read(&service);
    let mut timeout = |number| {
        read.port(number);
        read.integer("other.example/port_{port}_timeout", 1..=9)
    };
    assert_eq!((timeout(80), timeout(8)), (Some(5), None));
    timeout(81);
    let failure = read.finish().unwrap_err();
    assert!(
        failure.message().contains("other.example/port_81_timeout is \"x\""),
        "{failure:?}"
    );
}

#[test]
fn all_mistakes_are_reported_with_key_value_and_choices() {
    let service = service(&[
        ("lab.example/internal", "yes"),
        ("lab.example/timeout", "4001"),
        ("lab.example/delay", "5s"),
        ("lab.example/protocol", "quic\n"),
        ("lab.example/tags", "a=1,=2"),
        ("lab.example/allowed", "10.0.0.0/8,everywhere"),
        ("lab.example/subnets", "a,b"),
    ]);
    let mut read = TABLE.read(&service);
    assert_eq!(
        (
            read.boolean("internal"),
            read.integer("timeout", 1..=4000),
            read.integer("delay", -1..=9)
        ),
        (None, None, None)
    );
    assert_eq!(read.word("protocol", &[("tcp", 1), ("http", 2)]), None);
    assert_eq!((read.map("tags"), read.cidrs("allowed")), (None, None));
    assert_eq!(read.wrong::<()>("subnets", "one for each zone"), None);
    read.mistake("lab.example/tags and lab.example/subnets exclude each other");
    let Err(Failure {
        kind: FailureKind::Invalid,
        message: text,
        ..
    }) = read.finish()
    else {
        panic!("mistakes are invalid")
    };
    assert_eq!(
        text.split("; ").collect::<Vec<_>>(),
        [
            "lab.example/internal is \"yes\", but has to be true or false",
            "lab.example/timeout is \"4001\", but has to be a whole number from 1 to 4000",
            "lab.example/delay is \"5s\", but has to be a whole number from -1 to 9",
            "lab.example/protocol is \"quic\\n\", but has to be tcp or http",
            "lab.example/tags is \"a=1,=2\", but has to be a list like key=value,key=value",
            "lab.example/allowed is \"10.0.0.0/8,everywhere\", but has to be a list of networks like 10.0.0.0/8,fd00::/64",
            "lab.example/subnets is \"a,b\", but has to be one for each zone",
            "lab.example/tags and lab.example/subnets exclude each other",
        ]
    );
}

#[test]
fn misspelt_annotation_event_suggests_the_name() {
    let host = FakeHost::new();
    let service = service(&[
        ("lab.example/intrenal", "true"),
        ("lab.example/wholly-different", "true"),
        ("lab.example/timeout", "7"),
        ("other.example/internal", "true"),
        ("other.example/unheard-of", "true"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
    ]);
    TABLE.warn_unknown(&service, &host.context());
    let events: Vec<_> = host
        .events()
        .into_iter()
        .map(|event| (event.reason, event.message))
        .collect();
    let event = |text: &str| ("UnknownAnnotation".to_owned(), text.to_owned());
    assert_eq!(
        events,
        [
            event(
                "the annotation lab.example/intrenal is not known and has no effect; did you mean lab.example/internal?"
            ),
            event("the annotation lab.example/wholly-different is not known and has no effect"),
        ]
    );
    assert_eq!(host.events()[0].kind, EventKind::Warning);
}

#[test]
#[should_panic(expected = "the annotation internl is in no row of the table")]
fn a_key_that_is_not_declared_fails_every_test_that_reads_it() {
    TABLE.read(&service(&[])).boolean("internl");
}

#[test]
fn the_table_is_printed_for_a_readme() {
    let table = TABLE.markdown();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| Annotation | Default | Meaning |");
    assert_eq!(
        lines[2],
        "| `lab.example/internal` | `false` | no address on the Internet |"
    );
    assert_eq!(
        lines[4],
        "| `lab.example/delay` |  | seconds; `delay` of the configuration |"
    );
    assert_eq!(lines[5], "| `lab.example/protocol` | `tcp` | `tcp` \\| `http` |");
    assert_eq!(lines[9], "| `other.example/internal` |  | an old name of `internal` |");
    assert_readme(&format!("# Lab\n\n{table}\nmore"), &TABLE);
}

#[test]
#[should_panic(expected = "paste this:\n\n| Annotation |")]
fn differing_readme_is_found() {
    assert_readme(&TABLE.markdown().replace("`60`", "`50`"), &TABLE);
}

#[test]
#[should_panic(expected = "declared twice")]
fn an_annotation_that_is_declared_twice_is_found() {
    const TWICE: Table = Table::new(
        "a/",
        &[Annotation::new("b", "", "one"), Annotation::new("b", "", "other")],
    );
    assert_readme(&TWICE.markdown(), &TWICE);
}
