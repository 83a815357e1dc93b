//! The two runtimes: one for leadership, serving and signals, one for the work.
//!
//! ```text
//!   control  this thread: signals, lease renewal, HTTPS, admin pages, watchdog        (main.rs)
//!   work     one thread: provider host, guests, controllers, Event writer             (WorkRuntime)
//! ```
//!
//! Control never waits for work without a limit: what a page needs of it is computed over there, and [`WorkRuntime::query`] gives up.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// How long a page waits for what is computed on the working runtime. A guest gives way every 10 ms.
pub const QUERY_LIMIT: Duration = Duration::from_secs(2);

/// How long work that was cancelled may take to clean up behind itself.
const CLEAN_UP: Duration = Duration::from_millis(500);

/// The runtime of the thread that starts the process.
pub fn control() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// One thread does all that runs guests and calls clouds, unless `TOKIO_WORKER_THREADS` says otherwise: several mostly wake each other,
/// which costs a wave of Nodes a quarter more CPU. A guest that calculates gives way every 10 ms; what blocks has threads of its own.
pub fn work() -> std::io::Result<Runtime> {
    let mut runtime = Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        runtime.worker_threads(1);
    }
    runtime.thread_name("cloudwit-work").enable_all().build()
}

/// The way to the working runtime; clones lead to the same.
#[derive(Debug, Clone)]
pub struct WorkRuntime(Handle);

impl WorkRuntime {
    /// The way to this runtime.
    pub fn new(handle: Handle) -> Self {
        Self(handle)
    }

    /// The runtime itself.
    pub fn handle(&self) -> &Handle {
        &self.0
    }

    /// Does something over there. When the answer is dropped, the work is cancelled at its next await.
    pub fn start<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Started<T> {
        Started(self.0.spawn(work))
    }

    /// Waits a moment until what was cancelled has dropped what it held, such as the process that compiles.
    pub async fn settle(&self) {
        // What is not dropped by then goes with the process.
        let _ = tokio::time::timeout(CLEAN_UP, self.0.spawn(async {})).await;
    }

    /// Computes something over there; none when the working thread does not come to it in time.
    pub async fn query<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let asked = self.0.spawn(async move { compute() });
        match tokio::time::timeout(QUERY_LIMIT, Started(asked).ended()).await {
            Ok(Ok(found)) => Some(found),
            _ => None,
        }
    }
}

/// Work that was started on the working runtime.
pub struct Started<T>(JoinHandle<T>);

impl<T> Started<T> {
    /// Waits for its end. Can be given up, and called again then.
    ///
    /// # Errors
    ///
    /// When it panicked.
    pub async fn ended(mut self) -> anyhow::Result<T> {
        self.join().await
    }

    /// As [`ended`](Self::ended), for who holds it.
    pub async fn join(&mut self) -> anyhow::Result<T> {
        (&mut self.0).await.context("it crashed")
    }
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_query_gives_up_when_the_working_thread_stands_still() {
        let runtime = work().unwrap();
        let way = WorkRuntime::new(runtime.handle().clone());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, blocked) = tokio::sync::oneshot::channel();
        drop(runtime.spawn(async move {
            let _ = begun.send(());
            let _ = wait.recv();
        }));
        blocked.await.unwrap();
        assert_eq!(way.query(|| 1).await, None);
        go.send(()).unwrap();
        runtime.spawn(async {}).await.unwrap();
        runtime.shutdown_background();
    }
}
