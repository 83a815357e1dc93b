//! Explanation of one object as a page for people, in the dress of the status page.

use maud::{Markup, html};

use crate::commands::explain_answer::Answer;
use crate::status::frame::Frame;

/// What is answered about an object.
pub enum Said {
    /// The explanation.
    Found(Answer),
    /// Why there is none.
    Nothing(String),
}

/// The page.
pub fn page(object: &str, said: &Said, frame: &Frame<'_>) -> String {
    frame.around(&html! {
        nav aria-label="Pages" {
            a href="/#waiting" { "What waits" }
            a href="/#hosts" { "API hosts" }
            a href="/" { "Status of all" }
        }
        h1 { (object) }
        div class="card" { (content(said)) }
        nav aria-label="Other forms" {
            a href={ (frame.path) "?format=text" } { "As text" }
            a href={ (frame.path) "?format=json" } { "JSON" }
        }
    })
}

fn content(said: &Said) -> Markup {
    let answer = match said {
        Said::Found(answer) => answer,
        Said::Nothing(why) => return html! { p { (why) } },
    };
    html! {
        @if answer.statements().is_empty() {
            p { "No controller of this process has anything to do with it." }
        }
        @for statement in answer.statements() {
            p class="said" {
                (capital(&statement.text))
                @if !statement.controller.is_empty() { br; span class="dim" { (statement.controller) } }
            }
        }
    }
}

/// The statements continue the object's name, which is the heading here.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use cloudwit_controllers::Explanation;
    use cloudwit_controllers::report::explain::Statement;

    use super::*;
    use crate::status::verdict::tests::{at, facts};

    fn shown(object: &str, said: &Said) -> String {
        let frame = Frame {
            title: object,
            nonce: "abc",
            renews: true,
            path: "/explain/node/a",
            query: "",
            process: &facts().process,
            at: at(3600),
        };
        page(object, said, &frame)
    }

    #[test]
    fn an_explanation_is_text_with_its_controller_and_the_way_back() {
        let hostile = "<script>alert('x')</script>";
        let explanation = Explanation {
            object: "Node a".into(),
            statements: vec![Statement {
                controller: "cloud-node-controller",
                text: format!("waits: {hostile}."),
            }],
        };
        let page = shown("Node a", &Said::Found(explanation.into()));
        assert!(
            page.contains("<h1>Node a</h1>") && page.contains("Waits: &lt;script&gt;"),
            "{page}"
        );
        assert!(
            page.contains("cloud-node-controller") && !page.contains("<script"),
            "{page}"
        );
        for link in [
            "href=\"/\"",
            "href=\"/#waiting\"",
            "href=\"/explain/node/a?format=json\"",
        ] {
            assert!(page.contains(link), "{link} is missing in {page}");
        }
    }

    #[test]
    fn an_object_that_is_not_there_has_a_page_too() {
        let page = shown("Node a", &Said::Nothing("There is no Node a.".into()));
        assert!(page.contains("There is no Node a.") && page.contains("href=\"/\""));
    }
}
