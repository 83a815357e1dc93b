//! Labels of volumes of a loaded provider: implements `VolumeLabels` over a component.

use std::collections::BTreeMap;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, InTreeSource, InTreeVolume, VolumeLabels};

use crate::call::answer::limits::VOLUME_BATCH;
use crate::call::instance::Subjects;
use crate::metrics::{ItemKind, Operation};
use crate::provider::Provider;

impl VolumeLabels for Provider {
    fn label_sources(&self) -> Answer<'_, Vec<InTreeSource>> {
        Box::pin(async move {
            let mut session = self
                .0
                .caller
                .begin(Operation::LabelSources, Subjects::default())
                .await?;
            let asked = self.0.adapter.label_sources(&mut session.store);
            session.call.run(asked).await
        })
    }

    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answer<'a, Each<BTreeMap<String, String>>> {
        Box::pin(async move {
            if volumes.is_empty() {
                return Ok(Vec::new());
            }
            if volumes.len() > VOLUME_BATCH {
                return Err(self.too_many(volumes.len(), "volumes", VOLUME_BATCH).into());
            }
            let mut session = self
                .0
                .caller
                .begin(Operation::VolumeLabels, Subjects::default())
                .await?;
            let asked = self.0.adapter.volume_labels(&mut session.store, volumes);
            let answers = session.call.run(asked).await?;
            session.call.count_invalid(ItemKind::Volume, &answers);
            Ok(answers)
        })
    }
}
