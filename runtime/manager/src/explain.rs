//! `cloudwit explain`: asks the running process, and where none answers, the API server what the object itself tells.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Subcommand;
use kube::Client;
use kube::core::DynamicObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api_server;

/// The running process is on this machine; it answers at once or not at all.
const ANSWER: Duration = Duration::from_secs(5);

/// What can be done beside running the controllers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say in plain words what state a Node or Service is in and what Cloudwit waits for.
    ///
    /// Asks the Cloudwit that runs at --admin-address. Exit code 0: it has answered. 1: there is no such object, or no Cloudwit was
    /// reached; what the object itself tells is printed then if the API server can be asked.
    #[command(
        after_help = "Examples:\n  cloudwit explain node node-7\n  cloudwit explain service default/web\n  \
                            kubectl exec deploy/cloudwit -- cloudwit explain node node-7"
    )]
    Explain(ExplainArgs),
}

/// Flags and arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// About what.
    #[command(subcommand)]
    pub object: Object,

    /// Where the running Cloudwit serves its admin pages.
    #[arg(long, global = true, value_name = "IP:PORT", default_value = "127.0.0.1:10258")]
    pub admin_address: SocketAddr,

    /// Kubeconfig file, for when no Cloudwit answers; without it the service account of the Pod.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// The object that is asked about.
#[derive(Debug, Subcommand)]
pub enum Object {
    /// A Node.
    Node {
        /// Its name.
        name: String,
    },
    /// A Service.
    Service {
        /// Its namespace and name.
        #[arg(value_name = "NAMESPACE/NAME", value_parser = namespaced)]
        name: String,
    },
}

fn namespaced(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => Ok(text.into()),
        _ => Err("it has to be NAMESPACE/NAME, such as default/web".into()),
    }
}

impl Object {
    fn page(&self) -> String {
        match self {
            Self::Node { name } => format!("/explain/node/{name}"),
            Self::Service { name } => format!("/explain/service/{name}"),
        }
    }

    fn api_path(&self) -> String {
        match self {
            Self::Node { name } => format!("/api/v1/nodes/{name}"),
            Self::Service { name } => {
                let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
                format!("/api/v1/namespaces/{namespace}/services/{name}")
            }
        }
    }
}

/// Prints what is known.
pub async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let page = args.object.page();
    match tokio::time::timeout(ANSWER, get(args.admin_address, &page)).await {
        Ok(Ok((status, text))) => {
            print!("{text}");
            Ok(if status == 200 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        _ => {
            println!(
                "No running Cloudwit was reached at --admin-address={}: start it, or run this where it runs.",
                args.admin_address
            );
            let client = api_server::connect(args.kubeconfig.as_deref()).await?;
            print!("{}", from_object(&client, &args.object).await?);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// One request over plain HTTP; status and body.
async fn get(address: SocketAddr, page: &str) -> anyhow::Result<(u16, String)> {
    if page
        .bytes()
        .any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
    {
        bail!("{page:?} is no name");
    }
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {page} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    parse(&answer).context("that is no Cloudwit")
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    // An admin page says of what kind it is; any other server's page is not printed as an explanation.
    head.to_ascii_lowercase()
        .contains("x-cloudwit: explain")
        .then(|| (status, body.to_owned()))
}

/// What the object tells without Cloudwit's memory.
async fn from_object(client: &Client, object: &Object) -> anyhow::Result<String> {
    let request = http::Request::get(object.api_path()).body(Vec::new())?;
    match client.request::<DynamicObject>(request).await {
        Ok(found) => Ok(describe(&object.page()["/explain/".len()..], &found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(format!("There is no {}.\n", &object.page()[9..])),
        Err(error) => Err(error).context("the API server could not be asked"),
    }
}

fn describe(name: &str, object: &DynamicObject) -> String {
    let list = |items: Vec<String>| {
        if items.is_empty() {
            "none".into()
        } else {
            items.join(", ")
        }
    };
    let texts = |at: &str, field: &str| -> Vec<String> {
        let items = object.data.pointer(at).and_then(|items| items.as_array());
        items
            .into_iter()
            .flatten()
            .filter_map(|item| Some(item.get(field)?.as_str()?.to_owned()))
            .collect()
    };
    let conditions = object
        .data
        .pointer("/status/conditions")
        .and_then(|items| items.as_array());
    let conditions = conditions.into_iter().flatten().map(|one| {
        let text = |field: &str| one.get(field).and_then(|text| text.as_str()).unwrap_or_default();
        format!("{}={} ({})", text("type"), text("status"), text("reason"))
    });
    format!(
        "The API server says of {name}:\n  being deleted: {}\n  finalizers: {}\n  taints: {}\n  conditions: {}\n  \
         load balancer: {}\n",
        if object.metadata.deletion_timestamp.is_some() {
            "yes"
        } else {
            "no"
        },
        list(object.metadata.finalizers.clone().unwrap_or_default()),
        list(texts("/spec/taints", "key")),
        list(conditions.collect()),
        list(
            [
                texts("/status/loadBalancer/ingress", "ip"),
                texts("/status/loadBalancer/ingress", "hostname")
            ]
            .concat()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_only_when_it_is_an_explanation() {
        let ours = "HTTP/1.0 404 Not Found\r\nx-cloudwit: explain\r\n\r\nThere is no Node a.\n";
        assert_eq!(parse(ours), Some((404, "There is no Node a.\n".into())));
        assert_eq!(parse("HTTP/1.0 200 OK\r\nserver: other\r\n\r\nhello"), None);
        assert_eq!(parse("SSH-2.0-x"), None);
    }

    #[test]
    fn a_service_is_named_with_its_namespace() {
        assert!(namespaced("default/web").is_ok());
        for wrong in ["web", "/web", "default/", "a/b/c"] {
            assert!(namespaced(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_object_is_described_by_what_holds_it_up() {
        let node: DynamicObject = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a", "finalizers": ["x/y"] },
            "spec": { "taints": [{ "key": "t/u", "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Dead" }] },
        }))
        .unwrap();
        assert_eq!(
            describe("node/a", &node),
            "The API server says of node/a:\n  being deleted: no\n  finalizers: x/y\n  taints: t/u\n  \
             conditions: Ready=False (Dead)\n  load balancer: none\n"
        );
    }
}
