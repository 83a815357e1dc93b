//! `/metrics/slis`: results of health checks, with upstream's names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::serving::health::checks::{Check, Page, State};
use crate::telemetry::metric_text::go_float;
use crate::telemetry::process_metrics;

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    healthy_now: bool,
    successes: u64,
    errors: u64,
}

/// Counts by check and page; clones share them. Names of checks come from closed sets, so there are few.
#[derive(Debug, Clone, Default)]
pub struct Slis(Arc<Mutex<BTreeMap<(String, Page), Counts>>>);

impl Slis {
    /// Counts a look at these checks.
    pub fn seen(&self, page: Page, checks: &[Check]) {
        let mut all = self.0.lock();
        for check in checks {
            let counts = all.entry((check.name.clone(), page)).or_default();
            counts.healthy_now = !matches!(check.state, State::Failed(_));
            counts.successes += u64::from(counts.healthy_now);
            counts.errors += u64::from(!counts.healthy_now);
        }
    }

    /// Forgets all counts.
    pub fn reset(&self) {
        self.0.lock().clear();
    }

    /// In the text format of Prometheus.
    pub fn text(&self) -> String {
        let all = self.0.lock().clone();
        let mut text = String::from(
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n# TYPE kubernetes_healthcheck gauge\n",
        );
        for ((name, page), counts) in &all {
            let (page, now) = (page.name(), u8::from(counts.healthy_now));
            let _ = writeln!(text, "kubernetes_healthcheck{{name=\"{name}\",type=\"{page}\"}} {now}");
        }
        text += "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n# TYPE kubernetes_healthchecks_total counter\n";
        for ((name, page), counts) in &all {
            let page = page.name();
            for (status, count) in [("error", counts.errors), ("success", counts.successes)] {
                let labels = format!("name=\"{name}\",status=\"{status}\",type=\"{page}\"");
                let _ = writeln!(text, "kubernetes_healthchecks_total{{{labels}}} {count}");
            }
        }
        text += "# HELP process_start_time_seconds [ALPHA] Start time of the process since unix epoch in seconds.\n\
                 # TYPE process_start_time_seconds gauge\n";
        let _ = writeln!(
            text,
            "process_start_time_seconds {}",
            go_float(process_metrics::started())
        );
        text
    }
}
