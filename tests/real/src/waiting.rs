//! Lines with the time since the start, and conditions that are waited for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a condition may take to hold, on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// After how long it is said that it is still waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Says what happens, with the time since the start.
#[derive(Debug, Clone, Copy)]
pub struct Narrator(Instant);

impl Narrator {
    /// Begins now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// One line.
    pub fn say(self, line: &str) {
        println!("{:>6.1} s  {line}", self.0.elapsed().as_secs_f64());
    }

    /// Waits until the look finds something, and says from time to time that it does.
    ///
    /// # Errors
    ///
    /// When the look fails, or finds nothing for [`LIMIT`].
    pub async fn until<T>(self, what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
        let started = Instant::now();
        let mut said = started;
        loop {
            if let Some(found) = look().await.with_context(|| format!("waiting until {what}"))? {
                return Ok(found);
            }
            if started.elapsed() > LIMIT {
                bail!(
                    "waited {} s in vain until {what}; logs are in target/sandbox",
                    LIMIT.as_secs()
                );
            }
            if said.elapsed() > PATIENCE {
                said = Instant::now();
                self.say(&format!("  waiting until {what}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
