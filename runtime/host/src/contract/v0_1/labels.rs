//! Calls about labels of volumes that PersistentVolumes name themselves.

use std::collections::BTreeMap;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{InTreeSource, InTreeVolume};
use wasmtime::Store;

use crate::call::answer::Screen;
use crate::call::instance::CallState;
use crate::call::walk::Walk;
use crate::contract::adapter::{CallError, Reply};
use crate::contract::label_adapter::LabelAdapter;
use crate::contract::v0_1::generated::exports::cloudwit::provider::volume_labels as wit;
use crate::contract::v0_1::{V0_1, converted, volume_answers as answers};

fn source(source: InTreeSource) -> wit::InTreeSource {
    match source {
        InTreeSource::AwsElasticBlockStore => wit::InTreeSource::AwsElasticBlockStore,
        InTreeSource::GcePersistentDisk => wit::InTreeSource::GcePersistentDisk,
        InTreeSource::AzureDisk => wit::InTreeSource::AzureDisk,
        InTreeSource::Cinder => wit::InTreeSource::Cinder,
        InTreeSource::VsphereVolume => wit::InTreeSource::VsphereVolume,
    }
}

fn volume(volume: &InTreeVolume) -> wit::InTreeVolume {
    wit::InTreeVolume {
        source: source(volume.source),
        id: volume.id.clone(),
        zone: volume.zone.clone(),
        extra: Vec::new(),
    }
}

impl V0_1 {
    async fn volume_labels_guest(&self, store: &mut Store<CallState>) -> Result<wit::Guest, CallError> {
        let found = self
            .volume_labels
            .as_ref()
            .ok_or(CallError::NotExported("volume-labels"))?;
        let instance = self.instantiate(store).await?;
        Ok(found.load(store, &instance)?)
    }
}

impl LabelAdapter for V0_1 {
    fn label_sources<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Vec<InTreeSource>> {
        Box::pin(async move {
            let guest = self.volume_labels_guest(store).await?;
            let sources = guest.call_sources(store).await?;
            Ok(Ok(answers::label_sources(sources)?))
        })
    }

    fn volume_labels<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        volumes: &'a [InTreeVolume],
    ) -> Reply<'a, Each<BTreeMap<String, String>>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.volume_labels_guest(store).await?);
            let asked: Vec<_> = volumes.iter().map(volume).collect();
            let result = guest.call_get(store, &asked).await?;
            converted(screen, result, |found| {
                answers::labels(screen, &mut walk, volumes, found)
            })
            .await
        })
    }
}
