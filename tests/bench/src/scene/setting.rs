//! What all pieces of work are given: the programs, and how much shall be measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::measure::observer::{self, Observer};
use crate::plan::Plan;
use crate::scene::Scene;
use crate::scene::contestant::{Contestants, Side, Tuning};

/// What the run is about.
pub struct Setting {
    /// The programs of both sides.
    pub contestants: Contestants,
    /// The folder with the test guests.
    pub guests: PathBuf,
    /// All sizes instead of the small ones.
    pub full: bool,
    /// What is done, and how often.
    pub plan: Plan,
    cache: TempDir,
    primed: OnceCell<()>,
}

impl Setting {
    /// With an empty compile cache.
    ///
    /// # Errors
    ///
    /// When the folder of the cache cannot be made.
    pub fn new(contestants: Contestants, guests: PathBuf, full: bool, plan: Plan) -> Result<Self> {
        Ok(Self {
            contestants,
            guests,
            full,
            plan,
            cache: tempfile::tempdir().context("making a folder for the compile cache")?,
            primed: OnceCell::new(),
        })
    }

    /// The compile cache of ours, as the first start on a machine leaves it. The first who asks makes that start.
    ///
    /// # Errors
    ///
    /// When Cloudwit does not start.
    pub async fn warm_cache(&self) -> Result<&Path> {
        self.primed.get_or_try_init(|| self.prime()).await?;
        Ok(self.cache.path())
    }

    /// This tuning with the warm cache.
    ///
    /// # Errors
    ///
    /// As [`warm_cache`](Self::warm_cache).
    pub async fn warm(&self, tuning: Tuning) -> Result<Tuning> {
        Ok(Tuning {
            cache: Some(self.warm_cache().await?.to_owned()),
            ..tuning
        })
    }

    async fn prime(&self) -> Result<()> {
        let scene = Scene::set(self, "first-start", Duration::ZERO).await?;
        scene.waiting_nodes(1).await?;
        let mut nodes = Observer::start(kube::Api::all(scene.client.clone())).await?;
        let tuning = Tuning {
            cache: Some(self.cache.path().to_owned()),
            ..Tuning::defaults()
        };
        let running = scene.start(Side::Ours, &tuning)?;
        let limit = Duration::from_secs(60);
        nodes
            .until("the first start", 1, observer::is_initialised, &running, limit)
            .await?;
        scene.end(running)
    }
}
