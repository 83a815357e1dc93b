//! One operation per volume at a time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::Status;

/// What is under way, by volume.
#[derive(Debug, Clone, Default)]
pub struct Locks(Arc<State>);

#[derive(Debug, Default)]
struct State {
    under_way: Mutex<HashMap<String, &'static str>>,
    ended: Notify,
}

/// An operation that is under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Held {
    volume: String,
    locks: Locks,
}

impl Locks {
    /// Begins an operation.
    ///
    /// # Errors
    ///
    /// `Aborted` when another one of this volume is under way: the kubelet retries.
    pub fn begin(&self, volume: &str, method: &'static str) -> Result<Held, Status> {
        let mut under_way = self.0.under_way.lock();
        if let Some(other) = under_way.get(volume) {
            return Err(Status::aborted(format!(
                "another operation of volume {volume} is under way: {other}"
            )));
        }
        under_way.insert(volume.to_owned(), method);
        Ok(Held {
            volume: volume.to_owned(),
            locks: self.clone(),
        })
    }
}

impl Locks {
    /// Waits until nothing is under way.
    pub async fn idle(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.under_way.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.locks.0.under_way.lock().remove(&self.volume);
        self.locks.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_operation_of_a_volume_waits_for_the_first() {
        let locks = Locks::default();
        let first = locks.begin("vol-1", "NodeStageVolume").unwrap();
        let refused = locks.begin("vol-1", "NodeUnstageVolume").unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Aborted);
        assert!(refused.message().contains("NodeStageVolume"), "{refused}");
        assert!(locks.begin("vol-2", "NodeStageVolume").is_ok());
        drop(first);
        assert!(locks.begin("vol-1", "NodeUnstageVolume").is_ok());
    }

    #[tokio::test]
    async fn end_of_the_last_operation_is_waited_for() {
        let locks = Locks::default();
        locks.idle().await;
        let held = locks.begin("vol-1", "NodeStageVolume").unwrap();
        let mut idle = std::pin::pin!(locks.idle());
        tokio::select! {
            biased;
            () = &mut idle => panic!("an operation is under way"),
            () = std::future::ready(()) => {}
        }
        drop(held);
        idle.await;
    }
}
