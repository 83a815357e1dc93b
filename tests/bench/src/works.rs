//! Runs the pieces of work that were asked for, in the order of the report.

use anyhow::{Context, Result};
use xtask::bench_work::BenchWork;

use crate::contestant::Contestants;
use crate::growth_work::Stage;
use crate::measure::Section;
use crate::setting::Setting;
use crate::{calls, cold_start, fan_out, growth, node_wave, passing, services, sizes, steady, swap};

/// How many sizes of the cluster are not only for a full run.
const SMALL: usize = 2;

/// Does one piece of work; gives a section or several.
///
/// # Errors
///
/// When it could not be measured at all; a run that fails is told in the section.
pub async fn run(work: BenchWork, setting: &Setting) -> Result<Vec<Section>> {
    let contestants = &setting.contestants;
    let (programs, provider) = (&contestants.programs, &contestants.provider);
    match work {
        BenchWork::NodeWave => node_wave::measure(setting).await,
        BenchWork::Services => services::measure(setting).await,
        BenchWork::FanOut => fan_out::measure(setting).await,
        BenchWork::Steady => steady::measure(setting).await,
        BenchWork::ColdStart => cold_start::measure(setting).await,
        BenchWork::Component => Ok(vec![calls::measure(provider).await?]),
        BenchWork::Passing => Ok(vec![passing::measure(&setting.guests).await?]),
        BenchWork::Swap => Ok(vec![swap::measure(programs, provider).await?]),
        BenchWork::Sizes => Ok(vec![sizes_of(contestants)?]),
        BenchWork::Growth => {
            let stage = Stage {
                programs: programs.clone(),
                provider: provider.clone(),
            };
            let sizes = if setting.full {
                &growth::SIZES[..]
            } else {
                &growth::SIZES[..SMALL]
            };
            Ok(growth::measure(&stage, sizes).await)
        }
    }
}

fn sizes_of(contestants: &Contestants) -> Result<Section> {
    sizes::measure(&sizes::Things {
        programs: &contestants.programs,
        components: contestants.provider.parent().context("the component is in no folder")?,
        static_binary: &xtask::workspace::target().join("dist/x86_64-unknown-linux-musl/dist/cloudwit"),
        peer: &contestants.peer,
    })
}
