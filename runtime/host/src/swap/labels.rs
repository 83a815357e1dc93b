//! Labels of volumes of a provider that can change: each call takes the one that runs when it begins.

use std::collections::BTreeMap;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, InTreeSource, InTreeVolume, VolumeLabels};

use crate::swap::SwappableProvider;

impl VolumeLabels for SwappableProvider {
    fn label_sources(&self) -> Answer<'_, Vec<InTreeSource>> {
        let provider = self.current();
        Box::pin(async move { provider.label_sources().await })
    }

    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answer<'a, Each<BTreeMap<String, String>>> {
        let provider = self.current();
        Box::pin(async move { provider.volume_labels(volumes).await })
    }
}
