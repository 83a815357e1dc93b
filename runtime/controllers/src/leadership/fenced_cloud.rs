//! A cloud that is changed only while this process leads.
//!
//! Reads pass; calls that change something are refused when the term is over and given up when it ends during the call, so that a successor
//! does not meet them.

use std::sync::Arc;

use cloudwit_model::{
    Answer, CloudError, Failure, Gate, Gated, GatedSshKeys, GatedVolumes, PlannedWrite, SshKeys, Telling, VolumeCloud,
};

use crate::leadership::dry_run::DryRunLog;
use crate::leadership::{Leadership, NotLeading};

/// A cloud behind a [`Leadership`].
pub type LeadingCloud = Gated<Leadership>;

impl Gate for Leadership {
    fn change<'a, T: Send + 'a>(
        &'a self,
        _: PlannedWrite<'a>,
        call: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move { self.write(call()).await.unwrap_or_else(|error| Err(refused(error))) })
    }
}

/// Volumes that are changed only while this process leads, and never in a dry run.
pub fn leading_volumes(cloud: Arc<dyn VolumeCloud>, leadership: Leadership, dry_run: bool) -> Arc<dyn VolumeCloud> {
    if dry_run {
        let said = DryRunLog::default();
        return Arc::new(GatedVolumes::over(cloud, Telling::to(move |write| said.log(write))));
    }
    Arc::new(GatedVolumes::over(cloud, leadership))
}

/// SSH keys that are given to machines only while this process leads, and never in a dry run.
pub fn leading_ssh_keys(cloud: Arc<dyn SshKeys>, leadership: Leadership, dry_run: bool) -> Arc<dyn SshKeys> {
    if dry_run {
        let said = DryRunLog::default();
        return Arc::new(GatedSshKeys::over(cloud, Telling::to(move |write| said.log(write))));
    }
    Arc::new(GatedSshKeys::over(cloud, leadership))
}

fn refused(error: NotLeading) -> CloudError {
    Failure::Unavailable(error.to_string().into()).into()
}
