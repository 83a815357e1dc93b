//! `cloudwit provider call`: one function, called as the controllers call it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloudwit_host::Provider;
use cloudwit_model::{CloudError, EventKind, Failure, NodeRef, ObjectEvent};
use serde_json::{Value, json};

use crate::commands::calls::function::{Function, FunctionCall};
use crate::commands::calls::small::SmallInput;
use crate::commands::calls::volumes::{VolumeInput, pair};
use crate::commands::calls::{answer, objects};
use crate::commands::cluster::Cluster;
use crate::commands::explain::Output;
use crate::commands::provider::source::{self, SourceArgs};
use crate::commands::recordings::cassette::{Cassette, RecordedCall};
use crate::commands::recordings::exchanges::{Exchange, Exchanges};
use crate::config::mistakes::Mistakes;

/// Arguments of `provider call`.
#[derive(Debug, clap::Args)]
pub struct CallArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// What is called.
    #[arg(value_enum)]
    function: Function,

    /// A Node: NAME, or NAME=PROVIDER-ID. May be given again.
    #[arg(long = "node", value_name = "NODE", value_parser = objects::node)]
    node: Vec<NodeRef>,

    /// A file with Node manifests, as `kubectl get nodes -o json` prints them; - for standard input.
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,

    /// A file with the manifest of a Service; - for standard input.
    #[arg(long, value_name = "FILE")]
    service: Option<PathBuf>,

    /// The token of a pending answer, from which the call continues.
    #[arg(long, value_name = "TEXT", conflicts_with = "wait")]
    token: Option<String>,

    /// A route to create, CIDR=NODE. May be given again.
    #[arg(long, value_name = "CIDR=NODE", value_parser = route)]
    create: Vec<(String, NodeRef)>,

    /// The destination of a listed route to delete. May be given again.
    #[arg(long, value_name = "CIDR")]
    delete: Vec<String>,

    /// A tag of a machine, KEY=VALUE. May be given again.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = pair)]
    tags: Vec<(String, String)>,

    #[command(flatten)]
    volume: VolumeInput,

    #[command(flatten)]
    small: SmallInput,

    /// Call again, as the controllers do, until the answer is no longer pending.
    #[arg(long)]
    wait: bool,

    /// Write calls, answers and requests to this file, for `provider replay`. Secrets are not in it.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Text, or JSON for programs.
    #[arg(id = "call_output", long = "output", short = 'o', value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
}

fn route(text: &str) -> Result<(String, NodeRef), String> {
    let (destination, node) = text.split_once('=').ok_or("give CIDR=NODE")?;
    Ok((destination.to_owned(), objects::node(node)?))
}

/// A call that was made.
struct CallOutcome {
    answer: Result<Value, CloudError>,
    exchanges: Vec<Exchange>,
    took: Duration,
}

/// Calls it, and prints all about it.
pub async fn run(args: CallArgs) -> anyhow::Result<ExitCode> {
    let from = args.source.read()?;
    let mut cluster = Cluster::default();
    let mut nodes = args.node;
    if let Some(file) = &args.nodes {
        for (node, view) in objects::nodes(file)? {
            nodes.push(node);
            cluster.nodes.push(view);
        }
    }
    let service = args.service.as_deref().map(objects::manifest).transpose()?;
    let mut question = FunctionCall {
        function: args.function,
        nodes,
        service,
        token: args.token,
        create: args.create,
        delete: args.delete,
        tags: args.tags.into_iter().collect(),
        secrets: args.volume.secrets()?,
        volume: args.volume,
        small: args.small,
    };
    Mistakes::none_of(question.mistakes(), "")?;
    cluster.services.extend(question.service()?);
    let (cluster, wire) = (Arc::new(cluster), Arc::new(Exchanges::default()));
    let provider = source::load(&from, cluster.outside(), wire.clone()).await?;
    if question.function != Function::Check {
        source::insist_on_soundness(&provider, &from).await?;
    }
    let mut cassette = Cassette::new(&from.settings, |text| provider.redacted(text));
    let mut made = Vec::new();
    loop {
        let call = ask(&provider, &question, &wire).await?;
        let answer = call.answer.clone().unwrap_or_else(|error| answer::error(&error));
        cassette
            .calls
            .push(RecordedCall::of(&question, answer, call.exchanges.clone()));
        let pending = match &call.answer {
            Err(CloudError::Failure(Failure::Pending { after, token, message })) if args.wait => {
                Some((*after, token.clone(), message.clone()))
            }
            _ => None,
        };
        made.push(call);
        let Some((after, token, message)) = pending else {
            break;
        };
        eprintln!("waiting {after:?}: {message}");
        tokio::time::sleep(after).await;
        question.token = Some(token);
    }
    if let Some(file) = &args.record {
        cassette.write(file)?;
    }
    let events = std::mem::take(&mut *cluster.events.lock());
    let report = Report {
        made: &made,
        events: &events,
        memory: provider.guest_memory().peak,
    };
    match args.output {
        Output::Text => print!("{}", report.text()),
        Output::Json => println!("{:#}", report.json()),
    }
    let answered = made.last().is_some_and(|call| call.answer.is_ok());
    Ok(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(provider: &Provider, question: &FunctionCall, wire: &Exchanges) -> anyhow::Result<CallOutcome> {
    let began = Instant::now();
    let answer = question.ask(provider).await?;
    Ok(CallOutcome {
        answer,
        exchanges: wire.take(),
        took: began.elapsed(),
    })
}

/// The report of the calls.
struct Report<'a> {
    made: &'a [CallOutcome],
    events: &'a [ObjectEvent],
    /// Most memory that a call of the provider had, in bytes.
    memory: u64,
}

impl Report<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        for call in self.made {
            match &call.answer {
                Ok(answer) => {
                    let _ = writeln!(text, "{answer:#}");
                }
                Err(error) => {
                    let _ = writeln!(text, "{}: {error}", error.label());
                }
            }
            let _ = writeln!(text, "\n{} requests, {:.1?}", call.exchanges.len(), call.took);
            for exchange in &call.exchanges {
                let outcome = match (&exchange.response, &exchange.error) {
                    (Some(response), _) => response.status.to_string(),
                    (None, error) => error.clone().unwrap_or_default(),
                };
                let Exchange { method, url, took, .. } = exchange;
                let _ = writeln!(text, "  {method} {url}  {outcome}  {took:.1?}");
            }
        }
        for event in self.events {
            let kind = match event.kind {
                EventKind::Normal => "Normal",
                EventKind::Warning => "Warning",
            };
            let _ = writeln!(text, "Event {kind} {}: {}", event.reason, event.message);
        }
        let _ = writeln!(text, "at most {} KiB of memory", self.memory >> 10);
        text
    }

    fn json(&self) -> Value {
        let calls = self.made.iter().map(|call| {
            let exchanges = call.exchanges.iter().map(|exchange| {
                json!({
                    "method": exchange.method, "url": exchange.url,
                    "status": exchange.response.as_ref().map(|response| response.status),
                    "error": exchange.error, "milliseconds": exchange.took.as_millis(),
                })
            });
            let exchanges: Vec<Value> = exchanges.collect();
            let (answer, error) = match &call.answer {
                Ok(answer) => (answer.clone(), Value::Null),
                Err(error) => (Value::Null, answer::error(error)),
            };
            json!({"answer": answer, "error": error, "requests": exchanges, "milliseconds": call.took.as_millis()})
        });
        let events = self.events.iter();
        let events: Vec<Value> = events
            .map(|event| json!({"reason": event.reason, "message": event.message}))
            .collect();
        json!({"calls": calls.collect::<Vec<_>>(), "events": events, "memoryBytes": self.memory})
    }
}
