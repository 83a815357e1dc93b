//! First contact with a Node, and its addresses from then on.

use crate::cluster::Context;

/// Prepares the loop.
pub fn prepare(context: Context) -> impl Future<Output = ()> + Send + 'static {
    async move { context.shutdown.cancelled().await }
}
