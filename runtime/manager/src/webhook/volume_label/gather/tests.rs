//! How questions become calls.

use std::sync::Mutex;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, FaultKind, ProviderFault};
use futures::future::join_all;

use super::*;

/// A cloud of one source that knows the disks whose names begin with its own.
struct FakeCloud {
    name: &'static str,
    sources: Option<Vec<InTreeSource>>,
    calls: Arc<Mutex<Vec<(&'static str, usize)>>>,
}

impl VolumeLabels for FakeCloud {
    fn label_sources(&self) -> Answer<'_, Vec<InTreeSource>> {
        let sources = self.sources.clone();
        Box::pin(async move { sources.ok_or_else(|| Failure::Other("broken".into()).into()) })
    }

    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answer<'a, Each<BTreeMap<String, String>>> {
        Box::pin(async move {
            if volumes.is_empty() {
                return Ok(Vec::new());
            }
            self.calls.lock().unwrap().push((self.name, volumes.len()));
            if volumes.iter().any(|volume| volume.id == "break") {
                return Err(Failure::Unavailable("the cloud is down".into()).into());
            }
            if volumes.iter().any(|volume| volume.id == "odd") {
                return Err(CloudError::Fault(ProviderFault {
                    provider: self.name.into(),
                    kind: FaultKind::Trap,
                    message: "unreachable".into(),
                    output: String::new(),
                }));
            }
            let one = |volume: &InTreeVolume| match volume.id.starts_with(self.name) {
                true => Ok(BTreeMap::from([("of".to_owned(), self.name.to_owned())])),
                false => Err(Failure::NotFound("no such disk".into())),
            };
            Ok(volumes.iter().map(one).collect())
        })
    }
}

type Calls = Arc<Mutex<Vec<(&'static str, usize)>>>;

fn gatherer(clouds: &[(&'static str, Option<&[InTreeSource]>)]) -> (Gatherer, Calls) {
    let calls = Calls::default();
    let source = |(name, sources): &(&'static str, Option<&[InTreeSource]>)| Source {
        name: (*name).to_owned(),
        cloud: Arc::new(FakeCloud {
            name,
            sources: sources.map(<[_]>::to_vec),
            calls: calls.clone(),
        }),
    };
    (Gatherer::start(clouds.iter().map(source).collect()), calls)
}

fn volume(source: InTreeSource, id: &str) -> InTreeVolume {
    InTreeVolume {
        source,
        id: id.into(),
        zone: None,
    }
}

const CINDER: InTreeSource = InTreeSource::Cinder;
const GCE: InTreeSource = InTreeSource::GcePersistentDisk;

#[tokio::test(start_paused = true)]
async fn lookups_of_one_window_are_one_call_without_duplicates() {
    let (gatherer, calls) = gatherer(&[("a", Some(&[CINDER]))]);
    let ids = ["a1", "a2", "a1"];
    let answers = join_all(ids.map(|id| gatherer.labels(volume(CINDER, id)))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(*calls.lock().unwrap(), [("a", 2)]);
}

#[tokio::test(start_paused = true)]
async fn more_than_a_batch_is_several_calls() {
    let (gatherer, calls) = gatherer(&[("a", Some(&[CINDER]))]);
    let ids: Vec<String> = (0..250).map(|number| format!("a{number}")).collect();
    let answers = join_all(ids.iter().map(|id| gatherer.labels(volume(CINDER, id)))).await;
    assert!(answers.iter().all(Result::is_ok));
    let calls = calls.lock().unwrap();
    let sizes: Vec<usize> = calls.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 250);
    assert!(sizes.iter().all(|size| *size <= MAX_VOLUME_BATCH), "{sizes:?}");
    assert_eq!(sizes.len(), 3, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn providers_read_only_their_sources_in_order() {
    let (gatherer, calls) = gatherer(&[("a", Some(&[CINDER])), ("b", Some(&[CINDER, GCE])), ("c", Some(&[]))]);
    let asked = [
        volume(CINDER, "a1"),
        volume(CINDER, "b1"),
        volume(GCE, "b2"),
        volume(CINDER, "x"),
    ];
    let answers = join_all(asked.into_iter().map(|volume| gatherer.labels(volume))).await;
    assert_eq!(answers[0].as_ref().unwrap()["of"], "a");
    assert_eq!(answers[1].as_ref().unwrap()["of"], "b");
    assert_eq!(answers[2].as_ref().unwrap()["of"], "b");
    let unknown = answers[3].as_ref().unwrap_err();
    assert!(
        unknown.contains("no such disk") && unknown.contains("\"x\""),
        "{unknown}"
    );
    assert_eq!(*calls.lock().unwrap(), [("a", 3), ("b", 3)]);
}

#[tokio::test(start_paused = true)]
async fn call_that_fails_is_the_answer_to_each_of_its_volumes() {
    let (gatherer, _) = gatherer(&[("a", Some(&[CINDER]))]);
    let asked = [
        volume(CINDER, "a1"),
        volume(CINDER, "break"),
        volume(InTreeSource::AzureDisk, "z"),
    ];
    let answers = join_all(asked.into_iter().map(|volume| gatherer.labels(volume))).await;
    for answer in &answers[..2] {
        assert!(answer.as_ref().unwrap_err().contains("the cloud is down"), "{answer:?}");
    }
    let nobody = answers[2].as_ref().unwrap_err();
    assert!(
        nobody.contains("no provider has labels of azureDisk volumes"),
        "{nobody}"
    );
}

#[tokio::test(start_paused = true)]
async fn volume_on_which_the_provider_faults_costs_no_other() {
    let (gatherer, calls) = gatherer(&[("a", Some(&[CINDER]))]);
    let ids = (0..40).map(|number| match number {
        7 => "odd".to_owned(),
        number => format!("a{number}"),
    });
    let asked = ids.map(|id| gatherer.labels(volume(CINDER, &id)));
    let answers = join_all(asked).await;
    let refused: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].is_err()).collect();
    assert_eq!(refused, [7]);
    assert!(calls.lock().unwrap().len() <= 14, "halves, and not one by one");
}

#[tokio::test(start_paused = true)]
async fn provider_without_sources_does_not_block_the_others() {
    let (gatherer, _) = gatherer(&[("a", None), ("b", Some(&[CINDER]))]);
    assert!(gatherer.labels(volume(CINDER, "b1")).await.is_ok());
    let unknown = gatherer.labels(volume(GCE, "g")).await.unwrap_err();
    assert!(unknown.contains("broken"), "{unknown}");
}
