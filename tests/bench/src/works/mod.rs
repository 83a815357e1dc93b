//! Runs the pieces of work that were asked for, in the order of the report.

pub mod calls;
pub mod cold_start;
pub mod fan_out;
pub mod growth;
pub mod node_wave;
pub mod passing;
pub mod services;
pub mod sizes;
pub mod steady;
pub mod swap;

use anyhow::{Context, Result};
use xtask::commands::bench::work::BenchWork;

use crate::measure::Section;
use crate::report::ledger::Ledger;
use crate::scene::binary::Build;
use crate::scene::contestant::Contestants;
use crate::scene::setting::Setting;

/// Does one piece of work, as far as it is planned; each section goes into the ledger as soon as it is there.
///
/// # Errors
///
/// When the report cannot be written. A run that fails is told in its section, and a section that could not be measured in the ledger.
pub async fn run(work: BenchWork, setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    let contestants = &setting.contestants;
    let alone = |section: Result<Section>| section.map(|section| vec![section]);
    match work {
        BenchWork::NodeWave => node_wave::measure(setting, ledger).await,
        BenchWork::Services => services::measure(setting, ledger).await,
        BenchWork::FanOut => fan_out::measure(setting, ledger).await,
        BenchWork::Steady => steady::measure(setting, ledger).await,
        BenchWork::ColdStart => cold_start::measure(setting, ledger).await,
        BenchWork::Component => ledger.take("component", alone(calls::measure(&contestants.provider).await)),
        BenchWork::Passing => ledger.take("passing-5000", alone(passing::measure(&setting.guests).await)),
        BenchWork::Swap => ledger.take("swap", alone(swap::measure(contestants).await)),
        BenchWork::Sizes => ledger.take("sizes", alone(sizes_of(contestants))),
        BenchWork::Growth => growth::measure(setting, ledger).await,
    }
}

fn sizes_of(contestants: &Contestants) -> Result<Section> {
    sizes::measure(&sizes::Things {
        cloudwit: &contestants.binary.folder().join("cloudwit"),
        ships: contestants.binary.build == Build::Static,
        components: contestants.provider.parent().context("the component is in no folder")?,
        peer: &contestants.peer,
    })
}
