//! `cloudwit provider replay`: the calls of a recording again, answered from it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde_json::Value;

use crate::commands::calls::answer;
use crate::commands::cluster::Cluster;
use crate::commands::provider::source;
use crate::commands::recordings::cassette::{Cassette, RecordedCall};
use crate::commands::recordings::exchanges::{Exchange, Exchanges};

/// Arguments of `provider replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The component, NAME.wasm or NAME.wasm.zst.
    #[arg(value_name = "FILE")]
    component: PathBuf,

    /// What `provider call --record` wrote.
    #[arg(value_name = "RECORDING")]
    cassette: PathBuf,
}

/// Makes the calls, prints what is different.
pub async fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let cassette = Cassette::read(&args.cassette)?;
    let folder = tempfile::tempdir()?;
    if cassette.calls.is_empty() {
        bail!(
            "{}: there is no call in it; what `provider conformance --record` wrote is for `provider conformance --cassette`",
            args.cassette.display()
        );
    }
    let from = source::of_recording(args.component, &args.cassette, &cassette, folder.path())?;
    let wire = Arc::new(Exchanges::answered_from(Vec::new()));
    let cluster = Arc::new(Cluster::default());
    let host = source::host(wire.clone(), None, Some(cassette.time()))?;
    let file = from.component.file(None).await?;
    let provider = host.load(&file, from.settings, cluster.outside()).await?;
    let mut differences = 0;
    for (at, call) in cassette.calls.iter().enumerate() {
        let question = call.question()?;
        wire.load(call.exchanges.clone());
        let answer = question.ask(&provider).await?;
        let answer = answer.unwrap_or_else(|error| answer::error(&error));
        let found = compare(call, &answer, &wire.take());
        let name = question.function.name();
        if found.is_empty() {
            println!("{} {name}: the same, {} requests", at + 1, call.exchanges.len());
        } else {
            println!("{} {name}: different", at + 1);
        }
        found.iter().for_each(|difference| println!("    {difference}"));
        differences += found.len();
    }
    Ok(match differences {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// What is not as it was recorded, a line each.
fn compare(call: &RecordedCall, answer: &Value, made: &[Exchange]) -> Vec<String> {
    let mut differences = Vec::new();
    if *answer != call.answer {
        differences.push(format!("the answer was {} and is {answer}", call.answer));
    }
    let mut recorded: Vec<&Exchange> = call.exchanges.iter().collect();
    for exchange in made {
        let at = exchange.place_in(recorded.iter().copied());
        let Exchange { method, url, body, .. } = exchange;
        match at.map(|at| recorded.remove(at)) {
            None => differences.push(format!("a request that was not recorded: {method} {url}")),
            Some(known) if known.body != *body => {
                differences.push(format!(
                    "{method} {url} was sent with {} and is sent with {body}",
                    known.body
                ));
            }
            Some(_) => {}
        }
    }
    for Exchange { method, url, .. } in recorded {
        differences.push(format!("a request that is not made any more: {method} {url}"));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exchange(url: &str, body: Value) -> Exchange {
        serde_json::from_value(json!({"method": "POST", "url": url, "body": body})).unwrap()
    }

    #[test]
    fn answers_and_requests_are_compared() {
        let call: RecordedCall = serde_json::from_value(json!({
            "function": "routes.list", "answer": [1],
            "exchanges": [{"method": "POST", "url": "a", "body": 1}, {"method": "POST", "url": "b", "body": 2}],
        }))
        .unwrap();
        let (a, b) = (exchange("a", json!(1)), exchange("b", json!(2)));
        assert_eq!(compare(&call, &json!([1]), &[b, a]), [""; 0]);
        let other = compare(&call, &json!([]), &[exchange("a", json!(3)), exchange("c", json!(2))]);
        assert_eq!(
            other,
            [
                "the answer was [1] and is []",
                "POST a was sent with 1 and is sent with 3",
                "a request that was not recorded: POST c",
                "a request that is not made any more: POST b",
            ]
        );
    }
}
