//! Keys of the configuration file: name, meaning, unit, default.
//!
//! The types that the file is read into are in `config::file` and in the host; a test holds the table to them key by key.

/// A key.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What may stand there.
    pub shape: Shape,
    /// Whether it has to be there.
    pub required: bool,
    /// What holds when it is left out, as it would be written; empty when there is nothing to say.
    pub default: &'static str,
    /// What it is for, in a sentence or two.
    pub doc: &'static str,
}

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number without a fraction, from the first to the second.
    Whole(u64, u64),
    /// A number.
    Decimal,
    /// `500ms`, `5s`, `1m 30s`, from the first to the second, in milliseconds.
    Duration(u64, u64),
    /// A list.
    List(&'static Shape),
    /// Texts under keys of the operator's choice.
    Texts,
    /// These keys and no others.
    Keys(&'static [Key]),
}

/// A key that may be left out.
const fn key(name: &'static str, shape: Shape, default: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        shape,
        required: false,
        default,
        doc,
    }
}

/// A key that has to be there.
const fn must(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key {
        name,
        shape,
        required: true,
        default: "",
        doc,
    }
}

const TEXTS: Shape = Shape::List(&Shape::Text);

/// The file.
pub const FILE: Shape = Shape::Keys(&[
    must(
        "apiVersion",
        Shape::Word(&["cloudwit.dev/v1alpha1"]),
        "Version of this format.",
    ),
    must("kind", Shape::Word(&["CloudwitConfiguration"]), "What this file is."),
    must(
        "providers",
        Shape::List(&PROVIDER),
        "The providers. All run in one process.",
    ),
    key(
        "guestMemoryBytes",
        Shape::Whole(1 << 20, 1 << 40),
        "twice limits.memoryBytes of each provider",
        "Memory of all calls of all providers together, in bytes. Each provider's share has room for one of its largest calls; the rest is divided \
         equally. A call that does not fit into its provider's share waits.",
    ),
    key(
        "routing",
        ROUTING,
        "",
        "Which Nodes and Services are whose. Needed where there are several providers.",
    ),
]);

/// One provider.
pub const PROVIDER: Shape = Shape::Keys(&[
    must(
        "name",
        Shape::Text,
        "Name of your choice: lower-case letters, digits, '-' and '.', at most 63. It is a label of metrics, and what Nodes and Services \
         name in `cloudwit.dev/provider`.",
    ),
    must(
        "component",
        Shape::Text,
        "The component's file. A relative path starts at this file's folder; a bare file name that is not there is looked for in \
         --provider-dir.",
    ),
    key(
        "cloudConfig",
        Shape::Text,
        "",
        "The provider's own configuration, as text.",
    ),
    key(
        "cloudConfigFile",
        Shape::Text,
        "",
        "The file with the provider's own configuration, instead of cloudConfig. A relative path starts at this file's folder.",
    ),
    key("values", Shape::Texts, "{}", "Single values for the provider."),
    key("grants", GRANTS, "", "What the provider may do. Nothing when left out."),
    key("limits", LIMITS, "", "What the provider may use."),
]);

/// What a provider may do.
pub const GRANTS: Shape = Shape::Keys(&[
    key("http", Shape::List(&HTTP), "[]", "Where its requests may go."),
    key(
        "secrets",
        Shape::List(&SECRET),
        "[]",
        "Its secrets, and what may be done with each.",
    ),
    key("cluster", CLUSTER, "", "What it may see of the cluster."),
    key("state", STATE, "", "Space for what outlives a call."),
]);

/// A destination of HTTP requests.
pub const HTTP: Shape = Shape::Keys(&[
    key(
        "scheme",
        Shape::Word(&["https", "http"]),
        "https",
        "Scheme of the requests.",
    ),
    must(
        "host",
        Shape::Text,
        "A name, an IP address, or `*.example.com` for every name below example.com.",
    ),
    key("port", Shape::Whole(1, 65_535), "443, or 80 for http", "Port."),
    key(
        "methods",
        TEXTS,
        "[GET, HEAD, POST, PUT, PATCH, DELETE]",
        "Methods, in upper case.",
    ),
    key(
        "ca",
        Shape::Text,
        "the public authorities",
        "PEM file of the authorities that are trusted here, and no others.",
    ),
    key(
        "thumbprints",
        TEXTS,
        "[]",
        "In place of `ca`: thumbprints (SHA-256 or SHA-1) of the certificates that are trusted here, and no others.",
    ),
    key(
        "proxy",
        Shape::Text,
        "",
        "URL of a forward proxy, `http://HOST:PORT` or `https://HOST:PORT`.",
    ),
    key(
        "allowLoopback",
        Shape::Flag,
        "false",
        "Allow addresses of this machine.",
    ),
    key(
        "allowLinkLocal",
        Shape::Flag,
        "false",
        "Allow link-local addresses, among them the metadata services of clouds.",
    ),
    key(
        "connectTimeoutSeconds",
        Shape::Whole(1, u32::MAX as u64),
        "10",
        "Longest wait for a connection, in seconds.",
    ),
    key(
        "responseTimeoutSeconds",
        Shape::Whole(1, u32::MAX as u64),
        "60",
        "Longest wait for the head of a response, and for each further piece of it, in seconds.",
    ),
    key(
        "maxResponseBytes",
        Shape::Whole(1, u64::MAX),
        "67108864",
        "Largest response body, in bytes.",
    ),
    key(
        "requestsPerSecond",
        Shape::Decimal,
        "no limit",
        "Requests in a second, over all calls, for each API host (scheme, host and port), 0.001 to 10000.",
    ),
    key(
        "burst",
        Shape::Whole(1, 10_000),
        "requestsPerSecond, rounded up",
        "Requests that may leave at once after a rest.",
    ),
]);

/// A secret.
pub const SECRET: Shape = Shape::Keys(&[
    must("name", Shape::Text, "The name by which the provider asks for it."),
    must(
        "file",
        Shape::Text,
        "The file it is in. One line break at its end is not part of it.",
    ),
    key(
        "hosts",
        TEXTS,
        "[]",
        "`host` or `host:port`: where its placeholder is filled in. Each has to be granted under http.",
    ),
    must(
        "uses",
        Shape::List(&Shape::Word(&["placeholder", "hmac", "sign", "reveal"])),
        "What may be done with it: be filled into requests, key an HMAC, sign, be read by the provider.",
    ),
]);

/// What of the cluster is shown.
pub const CLUSTER: Shape = Shape::Keys(&[
    key("nodes", Shape::Flag, "false", "All Nodes."),
    key("services", Shape::Flag, "false", "All Services of type LoadBalancer."),
]);

/// Space for state.
pub const STATE: Shape = Shape::Keys(&[key(
    "maxBytes",
    Shape::Whole(0, u64::MAX),
    "1048576",
    "For all entries together, in bytes.",
)]);

/// Limits of a provider.
pub const LIMITS: Shape = Shape::Keys(&[
    key(
        "componentBytes",
        Shape::Whole(64 << 10, 256 << 20),
        "33554432",
        "Size of the component, as a file and unpacked, in bytes. What compiling it may use follows from its size.",
    ),
    key(
        "memoryBytes",
        Shape::Whole(1 << 20, 256 << 20),
        "67108864",
        "Memory of one call, in bytes.",
    ),
    key(
        "cpuTime",
        Shape::Duration(10, 600_000),
        "5s",
        "CPU time of one call, 10ms to 10m. Waiting for the cloud does not count.",
    ),
    key(
        "wallTime",
        Shape::Duration(100, 3_600_000),
        "60s",
        "Time of one call, waiting included, 100ms to 1h.",
    ),
    key("concurrency", Shape::Whole(1, 10_000), "16", "Calls at the same time."),
    key(
        "outputBytes",
        Shape::Whole(1024, 64 << 20),
        "65536",
        "Log text and output of one call, in bytes; the rest is dropped.",
    ),
    key(
        "answerBytes",
        Shape::Whole(64 << 10, 1 << 30),
        "16777216",
        "Size of one answer of the provider, in bytes.",
    ),
    key("events", Shape::Whole(0, 10_000), "100", "Events one call may send."),
    key(
        "requestsPerCall",
        Shape::Whole(1, 1000),
        "16",
        "Requests of one call in flight, until the response is read to its end. Further ones wait.",
    ),
    key(
        "requests",
        Shape::Whole(1, 4000),
        "64",
        "Requests of all calls in flight.",
    ),
    key(
        "bufferedBytesPerCall",
        Shape::Whole(2 << 20, 1 << 30),
        "8388608",
        "What the requests in flight of one call may hold in memory, in bytes: their bodies, and 512 KiB for each response. A request that does \
         not fit waits.",
    ),
    key(
        "bufferedBytes",
        Shape::Whole(2 << 20, 1 << 30),
        "33554432",
        "The same for all calls together, in bytes.",
    ),
]);

/// Which Nodes and Services belong to which provider.
pub const ROUTING: Shape = Shape::Keys(&[
    key(
        "default",
        Shape::Text,
        "the only provider",
        "The provider of what names no other: Services, and Nodes that have no provider id yet. Required where there are several.",
    ),
    key(
        "nodes",
        Shape::List(&NODE_RULE),
        "[]",
        "Whose provider ids are whose, where the providers' own word does not do.",
    ),
    key(
        "services",
        Shape::List(&SERVICE_RULE),
        "[]",
        "Which Services are whose, beside the annotation cloudwit.dev/provider.",
    ),
]);

/// Nodes of a provider.
pub const NODE_RULE: Shape = Shape::Keys(&[
    must("provider", Shape::Text, "Name of the provider."),
    must(
        "providerIDPrefixes",
        TEXTS,
        "How the provider ids of its Nodes begin. They stand in place of those that the provider itself says.",
    ),
]);

/// Services of a provider.
pub const SERVICE_RULE: Shape = Shape::Keys(&[
    must("provider", Shape::Text, "Name of the provider."),
    key(
        "classes",
        TEXTS,
        "[]",
        "Values of spec.loadBalancerClass. Services of all other classes are left alone.",
    ),
    key(
        "annotations",
        Shape::Texts,
        "{}",
        "Annotations, each of which makes a Service its.",
    ),
]);

impl Shape {
    /// In words.
    pub fn kind(&self) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::Word(words) => words.join(" or "),
            Self::Flag => "true or false".into(),
            Self::Whole(..) => "a whole number".into(),
            Self::Decimal => "a number".into(),
            Self::Duration(..) => "a duration such as 5s or 500ms".into(),
            Self::List(_) => "a list".into(),
            Self::Texts => "a map of texts".into(),
            Self::Keys(_) => "a map".into(),
        }
    }
}
