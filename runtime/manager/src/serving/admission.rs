//! Admission of requests: authentication, then authorization, then the page.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use rustls::pki_types::CertificateDer;
use serde_json::json;

use crate::serving::access::authentication::{Authenticator, NotAuthenticated};
use crate::serving::access::authorization::{Authorizer, Verdict};
use crate::serving::access::user::User;
use crate::serving::pages::Trusted;

/// The certificates a client has shown, its own first; an extension of each request.
#[derive(Clone, Default)]
pub struct Chain(pub Arc<Vec<CertificateDer<'static>>>);

/// Who decides.
pub struct Admission {
    /// The client.
    pub authenticator: Arc<Authenticator>,
    /// Whether he may.
    pub authorizer: Authorizer,
}

impl Admission {
    /// The pages for authorized users; others cannot find out whether a page exists. Requests need a [`Chain`].
    pub fn before(self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(Arc::new(self), admit))
    }
}

/// Lets a request pass if its sender may send it.
async fn admit(
    State(admission): State<Arc<Admission>>,
    Extension(chain): Extension<Chain>,
    mut request: Request,
    next: Next,
) -> Response {
    let user = match admission.authenticator.who(request.headers_mut(), &chain.0).await {
        Ok(user) => user,
        Err(NotAuthenticated::Busy) => return busy(),
        Err(NotAuthenticated::Wrong(why)) => {
            tracing::debug!(why, "request denied: authentication failed");
            return status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized".into());
        }
    };
    let (verb, path) = (
        request.method().as_str().to_ascii_lowercase(),
        request.uri().path().to_owned(),
    );
    match admission.authorizer.allows(&user, &verb, &path).await {
        Verdict::Allowed => {}
        Verdict::Denied(reason) | Verdict::NoOpinion(reason) => return forbidden(&user, &verb, &path, &reason),
        Verdict::Busy => return busy(),
        Verdict::Unknown(why) => {
            tracing::warn!(why, "failed to authorize request");
            let text = "authorization check failed".into();
            return status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", text);
        }
    }
    let known = !user.is_anonymous();
    if known {
        request.extensions_mut().insert(Trusted);
    }
    let mut response = next.run(request).await;
    if known {
        // For the connection, which is kept longer then.
        response.extensions_mut().insert(Trusted);
    }
    protect(&mut response);
    response
}

/// No cache keeps what its reader alone may see, and no browser takes it for something else.
fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
}

fn forbidden(user: &User, verb: &str, path: &str, reason: &str) -> Response {
    let mut text = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
    if !reason.is_empty() {
        text += &format!(": {reason}");
    }
    status(StatusCode::FORBIDDEN, "Forbidden", text)
}

/// Too many that are not known; who is known, and what is always allowed, is not affected.
fn busy() -> Response {
    let text = "too many requests of unknown senders".into();
    let mut response = status(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", text);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A refusal as the API server writes it.
fn status(code: StatusCode, reason: &str, message: String) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    let mut response = (code, Json(body)).into_response();
    protect(&mut response);
    response
}

#[cfg(test)]
mod tests;
