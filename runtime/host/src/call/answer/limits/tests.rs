//! Each limit is in the comment of the contract where it applies.

use super::*;

enum Limit {
    Entries(usize),
    Bytes(usize),
}
use Limit::{Bytes, Entries};

/// File, what contains the item (as it begins in the file), the item, its limits.
const TABLE: &[(&str, &str, &str, &[Limit])] = &[
    ("common", "record address {", "value", &[Bytes(HOST_NAME)]),
    ("common", "interface common {", "record instance", &[Bytes(INSTANCE)]),
    ("common", "record instance {", "provider-id", &[Bytes(ID)]),
    ("common", "record instance {", "instance-type", &[Bytes(LABEL_VALUE)]),
    ("common", "record instance {", "zone", &[Bytes(LABEL_VALUE)]),
    ("common", "record instance {", "region", &[Bytes(LABEL_VALUE)]),
    ("common", "record instance {", "addresses", &[Entries(ADDRESSES)]),
    (
        "common",
        "record instance {",
        "labels",
        &[Entries(LABELS), Bytes(KEY), Bytes(LABEL_VALUE)],
    ),
    (
        "common",
        "record node-ref {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    (
        "common",
        "record instance {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    (
        "services",
        "record service {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    (
        "info",
        "record description {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    ("common", "variant failure-kind {", "pending", &[Bytes(TOKEN)]),
    ("common", "record failure {", "code", &[Bytes(WORD)]),
    ("common", "record failure {", "message", &[Bytes(MESSAGE)]),
    ("services", "variant endpoint {", "hostname", &[Bytes(HOST_NAME)]),
    ("services", "record port-status {", "error", &[Bytes(PORT_ERROR)]),
    ("services", "record ingress {", "ports", &[Entries(PORTS)]),
    ("load-balancers", "record annotation-change {", "key", &[Bytes(KEY)]),
    (
        "load-balancers",
        "record annotation-change {",
        "value",
        &[Bytes(ANNOTATION_VALUE)],
    ),
    ("load-balancers", "record balancer {", "ingress", &[Entries(INGRESSES)]),
    (
        "load-balancers",
        "record balancer {",
        "annotations",
        &[Entries(ANNOTATIONS)],
    ),
    (
        "load-balancers",
        "interface load-balancers {",
        "name",
        &[Bytes(BALANCER_NAME)],
    ),
    (
        "load-balancers",
        "interface load-balancers {",
        "update-targets",
        &[Entries(TARGET_UPDATES), Entries(ANNOTATIONS)],
    ),
    (
        "load-balancers",
        "interface load-balancers {",
        "delete",
        &[Entries(ANNOTATIONS)],
    ),
    ("routes", "record route {", "id", &[Bytes(ID)]),
    ("routes", "record route {", "destination", &[Bytes(CIDR)]),
    ("routes", "record route {", "node", &[Bytes(HOST_NAME)]),
    ("routes", "record route {", "next-hops", &[Entries(NEXT_HOPS)]),
    ("routes", "interface routes {", "%list", &[Entries(ROUTES)]),
    ("info", "record http-wish {", "scheme", &[Bytes(METHOD)]),
    ("info", "record http-wish {", "host", &[Bytes(HOST_NAME)]),
    (
        "info",
        "record http-wish {",
        "methods",
        &[Entries(METHODS), Bytes(METHOD)],
    ),
    ("info", "record http-wish {", "reason", &[Bytes(MESSAGE)]),
    ("info", "record secret-wish {", "name", &[Bytes(WORD)]),
    ("info", "record secret-wish {", "reason", &[Bytes(MESSAGE)]),
    ("info", "record secret-wish {", "uses", &[Entries(SECRET_USES)]),
    (
        "info",
        "record secret-wish {",
        "hosts",
        &[Entries(GRANT_REQUESTS), Bytes(SECRET_HOST)],
    ),
    ("info", "record cluster-wish {", "reason", &[Bytes(MESSAGE)]),
    ("info", "record description {", "cluster", &[Entries(CLUSTER_VIEWS)]),
    ("info", "record description {", "name", &[Bytes(WORD)]),
    ("info", "record description {", "version", &[Bytes(WORD)]),
    (
        "info",
        "record description {",
        "provider-id-prefixes",
        &[Entries(PREFIXES), Bytes(WORD)],
    ),
    ("info", "record description {", "http", &[Entries(GRANT_REQUESTS)]),
    ("info", "record description {", "secrets", &[Entries(GRANT_REQUESTS)]),
    ("info", "record problem {", "at", &[Bytes(PROBLEM_AT)]),
    ("info", "record problem {", "message", &[Bytes(MESSAGE)]),
    ("info", "interface info {", "check", &[Entries(PROBLEMS)]),
    (
        "events",
        "interface events {",
        "emit-service",
        &[Bytes(EVENT_REASON), Bytes(EVENT_MESSAGE)],
    ),
    (
        "events",
        "interface events {",
        "emit-node",
        &[Bytes(EVENT_REASON), Bytes(EVENT_MESSAGE)],
    ),
    (
        "volume-types",
        "record topology {",
        "segments",
        &[Entries(SEGMENTS), Bytes(KEY), Bytes(SEGMENT_VALUE)],
    ),
    ("volume-types", "record attachment {", "node-id", &[Bytes(NODE_ID)]),
    (
        "volume-types",
        "interface volume-types {",
        "record volume",
        &[Bytes(INSTANCE)],
    ),
    ("volume-types", "record volume {", "id", &[Bytes(ID)]),
    ("volume-types", "record volume {", "topology", &[Entries(TOPOLOGIES)]),
    (
        "volume-types",
        "record volume {",
        "context",
        &[Entries(CONTEXT), Bytes(CONTEXT_KEY), Bytes(CONTEXT_BYTES)],
    ),
    (
        "volume-types",
        "record volume {",
        "attachments",
        &[Entries(ATTACHMENTS)],
    ),
    (
        "volume-types",
        "record volume {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    ("volume-types", "record volume-page {", "next", &[Bytes(TOKEN)]),
    ("volume-types", "record snapshot {", "id", &[Bytes(ID)]),
    ("volume-types", "record snapshot {", "volume", &[Bytes(ID)]),
    (
        "volume-types",
        "record snapshot {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    ("volume-types", "record snapshot-page {", "next", &[Bytes(TOKEN)]),
    ("volumes", "record driver {", "name", &[Bytes(DRIVER_NAME)]),
    (
        "volumes",
        "record driver {",
        "topology-keys",
        &[Entries(SEGMENTS), Bytes(KEY)],
    ),
    ("volumes", "record driver {", "features", &[Entries(VOLUME_FEATURES)]),
    (
        "volumes",
        "record driver {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    ("volumes", "record volume-node {", "id", &[Bytes(NODE_ID)]),
    ("volumes", "variant device {", "serial", &[Bytes(DEVICE)]),
    ("volumes", "variant device {", "wwn", &[Bytes(DEVICE)]),
    ("volumes", "variant device {", "by-id", &[Bytes(DEVICE)]),
    ("volumes", "variant device {", "path", &[Bytes(DEVICE)]),
    (
        "volumes",
        "record attached {",
        "context",
        &[Entries(CONTEXT), Bytes(CONTEXT_KEY), Bytes(CONTEXT_BYTES)],
    ),
    ("volumes", "record attached {", "devices", &[Entries(DEVICES)]),
    ("volumes", "interface volumes {", "nodes", &[Entries(VOLUME_BATCH)]),
    ("volumes", "interface volumes {", "get", &[Entries(VOLUME_BATCH)]),
    ("volumes", "interface volumes {", "attach", &[Entries(VOLUME_BATCH)]),
    ("volumes", "interface volumes {", "detach", &[Entries(VOLUME_BATCH)]),
    (
        "volume-snapshots",
        "interface volume-snapshots {",
        "get",
        &[Entries(VOLUME_BATCH)],
    ),
    (
        "volume-labels",
        "interface volume-labels {",
        "sources",
        &[Entries(IN_TREE_SOURCES)],
    ),
    (
        "volume-labels",
        "interface volume-labels {",
        "get",
        &[
            Entries(VOLUME_BATCH),
            Entries(SEGMENTS),
            Bytes(KEY),
            Bytes(SEGMENT_VALUE),
        ],
    ),
    (
        "clusters",
        "record known-cluster {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    (
        "dns",
        "record resolver {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    (
        "ssh-keys",
        "record ssh-key {",
        "extra",
        &[Entries(EXTRA), Bytes(KEY), Bytes(EXTRA_VALUE)],
    ),
    ("clusters", "record known-cluster {", "name", &[Bytes(HOST_NAME)]),
    ("clusters", "record known-cluster {", "host", &[Bytes(HOST_NAME)]),
    ("clusters", "interface clusters {", "%list", &[Entries(CLUSTERS)]),
    ("dns", "record resolver {", "nameservers", &[Entries(NAMESERVERS)]),
    (
        "dns",
        "record resolver {",
        "searches",
        &[Entries(SEARCHES), Bytes(SEARCH)],
    ),
    ("location", "record machine {", "node", &[Bytes(HOST_NAME)]),
    (
        "ssh-keys",
        "record ssh-key {",
        "user",
        &[Bytes(cloudwit_model::ssh_key::MAX_USER)],
    ),
    (
        "ssh-keys",
        "record ssh-key {",
        "public-key",
        &[Bytes(cloudwit_model::ssh_key::MAX_PUBLIC_KEY)],
    ),
    ("log", "interface log {", "log", &[Bytes(LOG_LINE), Entries(LOG_FIELDS)]),
];

/// The comment above an item of a WIT file.
fn comment(file: &str, container: &str, item: &str) -> String {
    let path = format!("{}/../../wit/v0.1/{file}.wit", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (_, inside) = text
        .split_once(container)
        .unwrap_or_else(|| panic!("{file}: {container}"));
    let mut above = String::new();
    for line in inside.lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(comment) => above.push_str(comment),
            None if line
                .strip_prefix(item)
                .is_some_and(|rest| rest.starts_with([':', '(', ' '])) =>
            {
                return above;
            }
            None => above.clear(),
        }
    }
    panic!("{file}: {container} has no {item}")
}

/// `4096` as `4,096`.
fn in_words(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = (0..digits.len())
        .rev()
        .step_by(3)
        .map(|end| &digits[end.saturating_sub(2)..=end])
        .collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

#[test]
fn contract_states_each_limit_where_it_applies() {
    for (file, container, item, limits) in TABLE {
        let comment = comment(file, container, item);
        for limit in *limits {
            let words = match limit {
                Entries(most) => format!("{} entries", in_words(*most)),
                Bytes(most) => format!("{} bytes", in_words(*most)),
            };
            assert!(
                comment.contains(&words),
                "{file}, {container} {item}: {words:?} is not in {comment:?}"
            );
        }
    }
}
