//! Batches look-ups of volumes: many PersistentVolumes created at once cost one call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::volume::MAX_VOLUME_BATCH;
use cloudwit_model::{CloudError, Failure, InTreeSource, InTreeVolume, VolumeLabels};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// How long questions wait for others.
const WINDOW: Duration = Duration::from_millis(20);
/// Questions that wait for their window; more than the server lets in.
const WAITING: usize = 512;
/// Calls at a time. A provider's own limits of rate and memory hold besides.
const CALLS: usize = 4;

/// The labels of one volume, or why there are none, for people.
pub type Labels = Result<BTreeMap<String, String>, String>;

/// A provider by its name.
#[derive(Clone)]
pub struct Source {
    /// The operator's name for it.
    pub name: String,
    /// The query.
    pub cloud: Arc<dyn VolumeLabels>,
}

struct Asked {
    volume: InTreeVolume,
    answer: oneshot::Sender<Labels>,
}

/// Takes queries; clones share the providers.
#[derive(Clone)]
pub struct Gatherer(mpsc::Sender<Asked>);

impl Gatherer {
    /// Calls these providers, in their order, on the runtime that this is called in.
    pub fn start(sources: Vec<Source>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        drop(tokio::spawn(gather(receiver, sources.into())));
        Self(sender)
    }

    /// The labels of one volume.
    pub async fn labels(&self, volume: InTreeVolume) -> Labels {
        let (answer, answered) = oneshot::channel();
        let ended = || "the process is stopping".to_owned();
        self.0.send(Asked { volume, answer }).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

async fn gather(mut asked: mpsc::Receiver<Asked>, sources: Arc<[Source]>) {
    let calls = Arc::new(Semaphore::new(CALLS));
    while let Some(first) = asked.recv().await {
        let (mut batch, until) = (vec![first], Instant::now() + WINDOW);
        while batch.len() < MAX_VOLUME_BATCH {
            match timeout_at(until, asked.recv()).await {
                Ok(Some(next)) => batch.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        // It is never closed.
        let Ok(place) = calls.clone().acquire_owned().await else {
            return;
        };
        let sources = sources.clone();
        drop(tokio::spawn(async move {
            let _place = place;
            answer(batch, &sources).await;
        }));
    }
}

async fn answer(batch: Vec<Asked>, sources: &[Source]) {
    // Who does not wait any more needs no answer.
    let batch: Vec<Asked> = batch.into_iter().filter(|asked| !asked.answer.is_closed()).collect();
    let mut volumes: Vec<InTreeVolume> = batch.iter().map(|asked| asked.volume.clone()).collect();
    volumes.sort_unstable();
    volumes.dedup();
    let labels = look_up(&volumes, sources).await;
    for asked in batch {
        let found = labels.get(&asked.volume).cloned();
        // Its sender may have given up meanwhile.
        let _ = asked
            .answer
            .send(found.unwrap_or_else(|| Err(no_provider(&asked.volume))));
    }
}

/// The providers' answers for each volume. One that the first does not have may be the next one's.
async fn look_up(volumes: &[InTreeVolume], sources: &[Source]) -> BTreeMap<InTreeVolume, Labels> {
    let (mut found, mut open) = (BTreeMap::new(), volumes.to_vec());
    for source in sources {
        if open.is_empty() {
            break;
        }
        let served = match source.cloud.label_sources().await {
            Ok(served) => served,
            Err(error) => {
                tracing::warn!(provider = source.name, %error, "labels of volumes: the provider does not say its sources");
                for volume in &open {
                    found.insert(volume.clone(), Err(refused(source, volume, &error)));
                }
                continue;
            }
        };
        let (mine, others) = split(open, &served);
        open = others;
        let mut parts = vec![mine];
        while let Some(mut part) = parts.pop() {
            match source.cloud.volume_labels(&part).await {
                Ok(answers) => {
                    for (volume, answer) in part.into_iter().zip(answers) {
                        if matches!(answer, Err(Failure::NotFound(_))) {
                            open.push(volume.clone());
                        }
                        let answer = answer.map_err(|failure| refused(source, &volume, &failure.into()));
                        found.insert(volume, answer);
                    }
                }
                // One odd volume costs no other: each half is looked up alone. Who has waited for too long is gone by then.
                Err(error) if error.is_about_items() && part.len() > 1 => {
                    let tail = part.split_off(part.len() / 2);
                    parts.extend([part, tail]);
                }
                Err(error) => {
                    for volume in part {
                        let text = refused(source, &volume, &error);
                        found.insert(volume, Err(text));
                    }
                }
            }
        }
    }
    found
}

/// Those of these sources, and the others.
fn split(volumes: Vec<InTreeVolume>, served: &[InTreeSource]) -> (Vec<InTreeVolume>, Vec<InTreeVolume>) {
    volumes.into_iter().partition(|volume| served.contains(&volume.source))
}

fn refused(source: &Source, volume: &InTreeVolume, error: &CloudError) -> String {
    format!(
        "provider {:?} has no labels for the {} volume {:?}: {error}",
        source.name,
        volume.source.field(),
        volume.id
    )
}

fn no_provider(volume: &InTreeVolume) -> String {
    format!(
        "no provider has labels of {} volumes such as {:?}",
        volume.source.field(),
        volume.id
    )
}

#[cfg(test)]
mod tests;
