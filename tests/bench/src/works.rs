//! Runs the pieces of work that were asked for, in the order of the report.

use anyhow::{Context, Result};
use xtask::commands::bench::work::BenchWork;

use crate::binary::Build;
use crate::contestant::Contestants;
use crate::ledger::Ledger;
use crate::measure::Section;
use crate::setting::Setting;
use crate::{calls, cold_start, fan_out, growth, node_wave, passing, services, sizes, steady, swap};

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
