//! Answer of `cloudwit explain`, as text or JSON; shared by the command and the admin pages.

use std::fmt::Write as _;

use cloudwit_controllers::Explanation;
use cloudwit_controllers::report::explain::Statement;
use serde::Serialize;

/// Who an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A running process, with all state of its controllers.
    Cloudwit,
    /// The API server alone.
    ApiServer,
}

/// An answer about one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    answered_by: Source,
    /// `Node NAME` or `Service NAMESPACE/NAME`.
    object: String,
    statements: Vec<Statement>,
    /// What the API server has as Events of the object, the newest last. Only without a running process, which says it better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<String>,
}

impl From<Explanation> for Answer {
    fn from(explanation: Explanation) -> Self {
        Self {
            answered_by: Source::Cloudwit,
            object: explanation.object,
            statements: explanation.statements,
            events: Vec::new(),
        }
    }
}

impl Answer {
    /// The answer from the API server alone.
    pub fn from_api_server(object: String, sentences: Vec<String>, events: Vec<String>) -> Self {
        let statement = |text| Statement { controller: "", text };
        Self {
            answered_by: Source::ApiServer,
            object,
            statements: sentences.into_iter().map(statement).collect(),
            events,
        }
    }

    /// One statement for each controller that has something to say.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// For people.
    pub fn text(&self) -> String {
        let explanation = Explanation {
            object: self.object.clone(),
            statements: self.statements.clone(),
        };
        let mut text = explanation.to_string();
        if !self.events.is_empty() {
            text += "Events:\n";
        }
        for event in &self.events {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {event}");
        }
        text
    }

    /// For programs: one object with `answeredBy`, `object`, `statements` and, from the API server, `events`.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_equal() {
        let answer = Answer::from_api_server(
            "Node a".into(),
            vec!["is Ready.".into(), "is machine sim://vm-1.".into()],
            vec!["3 m ago Warning X: y".into()],
        );
        assert_eq!(
            answer.text(),
            "Node a is Ready.\nNode a is machine sim://vm-1.\nEvents:\n  3 m ago Warning X: y\n"
        );
        let json: serde_json::Value = serde_json::from_str(&answer.json().unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "answeredBy": "api-server",
                "object": "Node a",
                "statements": [
                    { "controller": "", "text": "is Ready." },
                    { "controller": "", "text": "is machine sim://vm-1." },
                ],
                "events": ["3 m ago Warning X: y"],
            })
        );
    }

    #[test]
    fn a_running_process_is_named_as_the_source() {
        let explanation = Explanation {
            object: "Service default/web".into(),
            statements: vec![Statement {
                controller: "service-lb-controller",
                text: "is queued for its first sync.".into(),
            }],
        };
        let answer = Answer::from(explanation);
        assert_eq!(
            answer.text(),
            "Service default/web is queued for its first sync. [service-lb-controller]\n"
        );
        assert!(answer.json().unwrap().contains("\"answeredBy\": \"cloudwit\""));
        assert!(!answer.json().unwrap().contains("events"));
    }
}
