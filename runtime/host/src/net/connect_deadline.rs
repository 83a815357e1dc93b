//! Connect timeout of one request.
//!
//! The client is shared, so it only has the grant's limit. A request that allows less says so in a task-local, which this layer around
//! the client's connector reads; and it signals the request while it connects, so that the wait for the answer is not counted meanwhile.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tower::{Layer, Service};

/// Shared state of a request and the connector.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// Longest time for name look-up, TCP and TLS together.
    pub limit: Duration,
    /// True while a connection is being made.
    pub busy: watch::Sender<bool>,
}

tokio::task_local! {
    /// The request on whose behalf a connection is made.
    pub static CONNECTING: Connecting;
}

/// No connection in the time the request allowed.
#[derive(Debug, Clone, Copy, Error)]
#[error("no connection in the time allowed")]
pub struct ConnectTimedOut;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct ConnectDeadline;

impl<S> Layer<S> for ConnectDeadline {
    type Service = Deadlined<S>;

    fn layer(&self, inner: S) -> Deadlined<S> {
        Deadlined(inner)
    }
}

/// A connector with the deadline of the request.
#[derive(Debug, Clone)]
pub struct Deadlined<S>(S);

type BoxError = Box<dyn StdError + Send + Sync>;

impl<S, R> Service<R> for Deadlined<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connect = self.0.call(request);
        let Ok(connecting) = CONNECTING.try_with(Connecting::clone) else {
            return Box::pin(connect);
        };
        Box::pin(async move {
            connecting.busy.send_replace(true);
            let _idle_again = Idle(connecting.busy);
            timeout(connecting.limit, connect).await.map_err(|_| ConnectTimedOut)?
        })
    }
}

/// Says when the connection is there, or given up.
struct Idle(watch::Sender<bool>);

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// Waits until the request has waited this long for an answer; the time in which it is `busy` connecting is not counted.
pub async fn unanswered_for(time: Duration, busy: &mut watch::Receiver<bool>) {
    loop {
        // A closed channel means that no task is busy.
        let _ = busy.wait_for(|busy| !busy).await;
        let end = Instant::now() + time;
        let connects_again = timeout_at(end, busy.wait_for(|busy| *busy))
            .await
            .map(|found| found.is_ok());
        match connects_again {
            Ok(true) => {}
            Ok(false) => return sleep_until(end).await,
            Err(_elapsed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_an_answer_does_not_count_the_time_to_connect() {
        let (sender, mut busy) = watch::channel(true);
        let start = Instant::now();
        let connect = async {
            sleep(Duration::from_secs(7)).await;
            sender.send(false).unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = connect => {}
            () = unanswered_for(Duration::from_secs(2), &mut busy) => {}
        }
        assert_eq!(start.elapsed(), Duration::from_secs(9));
    }
}
