//! Pages `/explain/...` of Nodes, Services, PersistentVolumes and claims: HTML, text or JSON.
//!
//! Every answer carries a header by which `cloudwit explain` recognizes a Cloudwit.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cloudwit_controllers::{Explain, Explanation};
use serde::Deserialize;

use crate::commands::explain_answer::Answer;
use crate::process::work_runtime::WorkRuntime;
use crate::serving::pages::stalled;
use crate::status::explain_page::{self, Said};
use crate::status::facts::{Moment, Process};
use crate::status::frame::Frame;
use crate::status::pages::html;
use crate::volumes::explain::VolumeExplain;

/// Name and value of the header.
pub const MARK: (&str, &str) = ("x-cloudwit", "explain");

/// Who explains.
#[derive(Debug, Clone)]
pub struct ExplainSource {
    /// Nodes and Services.
    pub explain: Explain,
    /// Volumes.
    pub volumes: VolumeExplain,
    /// Where explanations of controllers are found.
    pub work: WorkRuntime,
    /// This process.
    pub process: Process,
}

/// The pages.
pub fn router(source: ExplainSource) -> Router {
    Router::new()
        .route("/explain/node/{name}", get(node))
        .route("/explain/service/{namespace}/{name}", get(service))
        .route("/explain/pv/{name}", get(volume))
        .route("/explain/pvc/{namespace}/{name}", get(claim))
        .with_state(source)
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Text,
    Json,
}

#[derive(Debug, Default, Deserialize)]
struct Wish {
    /// `html`, `text` or `json`; else what the client accepts.
    format: Option<String>,
    /// `off` holds the page still.
    renew: Option<String>,
}

impl Wish {
    fn form(&self, headers: &HeaderMap) -> Form {
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let accepts = |kind: &str| accepted.is_some_and(|value| value.contains(kind));
        match self.format.as_deref() {
            Some("json") => Form::Json,
            Some("text") => Form::Text,
            Some("html") => Form::Html,
            _ if accepts("text/html") => Form::Html,
            _ if accepts("application/json") => Form::Json,
            _ => Form::Text,
        }
    }
}

/// Parameters of a request.
struct Asked {
    /// `Node NAME`.
    object: String,
    path: String,
    form: Form,
    renews: bool,
}

impl Asked {
    fn new(object: String, uri: &Uri, wish: &Wish, headers: &HeaderMap) -> Self {
        Self {
            object,
            path: uri.path().to_owned(),
            form: wish.form(headers),
            renews: wish.renew.as_deref() != Some("off"),
        }
    }
}

type Sent = (Uri, Query<Wish>, HeaderMap);

async fn node(State(source): State<ExplainSource>, Path(name): Path<String>, (uri, wish, headers): Sent) -> Response {
    let asked = Asked::new(format!("Node {name}"), &uri, &wish, &headers);
    of_controllers(source, asked, move |explain| explain.node(&name)).await
}

async fn service(
    State(source): State<ExplainSource>,
    Path((namespace, name)): Path<(String, String)>,
    (uri, wish, headers): Sent,
) -> Response {
    let asked = Asked::new(format!("Service {namespace}/{name}"), &uri, &wish, &headers);
    of_controllers(source, asked, move |explain| explain.service(&namespace, &name)).await
}

async fn volume(State(source): State<ExplainSource>, Path(name): Path<String>, (uri, wish, headers): Sent) -> Response {
    let asked = Asked::new(format!("PersistentVolume {name}"), &uri, &wish, &headers);
    let found = source.volumes.volume(&name).await;
    explained(&asked, source.volumes.is_ready(), found, &source.process)
}

async fn claim(
    State(source): State<ExplainSource>,
    Path((namespace, name)): Path<(String, String)>,
    (uri, wish, headers): Sent,
) -> Response {
    let asked = Asked::new(
        format!("PersistentVolumeClaim {namespace}/{name}"),
        &uri,
        &wish,
        &headers,
    );
    let found = source.volumes.claim(&namespace, &name).await;
    explained(&asked, source.volumes.is_ready(), found, &source.process)
}

/// Finds the explanation on the working thread.
async fn of_controllers(
    source: ExplainSource,
    asked: Asked,
    find: impl FnOnce(&Explain) -> Option<Explanation> + Send + 'static,
) -> Response {
    let ExplainSource {
        explain, work, process, ..
    } = source;
    let found = work.query(move || {
        let found = find(&explain);
        explained(&asked, explain.is_ready(), Ok(found), &process)
    });
    found.await.unwrap_or_else(|| ([MARK], stalled()).into_response())
}

fn explained(asked: &Asked, is_ready: bool, found: Result<Option<Explanation>, String>, process: &Process) -> Response {
    let (status, said) = match found {
        _ if !is_ready => {
            let text = "This Cloudwit works on nothing yet: it has just started, or another replica leads.";
            (StatusCode::SERVICE_UNAVAILABLE, Said::Nothing(text.into()))
        }
        Err(why) => (StatusCode::BAD_GATEWAY, Said::Nothing(why)),
        Ok(None) => (
            StatusCode::NOT_FOUND,
            Said::Nothing(format!("There is no {}.", asked.object)),
        ),
        Ok(Some(found)) => (StatusCode::OK, Said::Found(Answer::from(found))),
    };
    let body = match (asked.form, said) {
        (Form::Html, said) => html(|nonce| {
            let frame = Frame {
                title: &asked.object,
                nonce,
                renews: asked.renews,
                path: &asked.path,
                query: "",
                process,
                at: Moment(jiff::Timestamp::now()),
            };
            explain_page::page(&asked.object, &said, &frame)
        }),
        (_, Said::Nothing(why)) => format!("{why}\n").into_response(),
        (Form::Text, Said::Found(answer)) => answer.text().into_response(),
        (Form::Json, Said::Found(answer)) => match answer.json() {
            Ok(json) => ([("content-type", "application/json")], json).into_response(),
            Err(_) => return (StatusCode::INTERNAL_SERVER_ERROR, [MARK]).into_response(),
        },
    };
    (status, [MARK], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::verdict::tests::facts;

    fn asked(form: Form) -> Asked {
        Asked {
            object: "Node a".into(),
            path: "/explain/node/a".into(),
            form,
            renews: true,
        }
    }

    #[test]
    fn replica_without_lead_says_so() {
        for form in [Form::Text, Form::Json, Form::Html] {
            let answer = explained(&asked(form), false, Ok(None), &facts().process);
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(answer.headers()[MARK.0], MARK.1, "it is a Cloudwit all the same");
        }
    }

    #[test]
    fn a_browser_gets_a_page_that_runs_nothing() {
        let found = Explanation {
            object: "Node a".into(),
            statements: Vec::new(),
        };
        let answer = explained(&asked(Form::Html), true, Ok(Some(found)), &facts().process);
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'nonce-"), "{policy}");
    }

    #[test]
    fn the_form_is_what_is_wanted_else_what_is_accepted() {
        let form = |format: Option<&str>, accept: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, header::HeaderValue::from_static(accept));
            }
            let wish = Wish {
                format: format.map(Into::into),
                renew: None,
            };
            wish.form(&headers)
        };
        assert_eq!(form(None, None), Form::Text);
        assert_eq!(form(None, Some("*/*")), Form::Text, "curl");
        assert_eq!(form(None, Some("application/json")), Form::Json);
        assert_eq!(form(None, Some("text/html,application/xhtml+xml")), Form::Html);
        assert_eq!(form(Some("json"), Some("text/html")), Form::Json);
        assert_eq!(form(Some("text"), Some("text/html")), Form::Text);
    }
}
