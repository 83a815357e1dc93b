//! Ours and the peer in turn on the same work, several times, with alternating order, so that whatever else the machine does hits both.

use anyhow::{Result, bail};

use crate::measure::{Measure, Samples};
use crate::scene::contestant::Side;

/// One figure of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    measure: Measure,
    value: f64,
    nought: bool,
}

impl Reading {
    /// A value of this measure, whose own samples are ignored.
    pub fn new(measure: Measure, value: f64) -> Self {
        Self {
            measure,
            value,
            nought: false,
        }
    }

    /// A run that does not tell this figure had none of it: 0.
    #[must_use]
    pub fn nought(self) -> Self {
        Self { nought: true, ..self }
    }
}

/// Lets each side do the work so many times. `run` does it once, on a fresh cluster, and tells what it measured; a run that fails is a failure in
/// every measure of its side.
///
/// # Errors
///
/// When no run reached its end; with the reason of the first.
pub async fn pairs<R, F>(what: &str, pairs: usize, mut run: R) -> Result<Vec<Measure>>
where
    R: FnMut(Side) -> F,
    F: Future<Output = Result<Vec<Reading>>>,
{
    let mut outcomes = Vec::new();
    for pair in 0..pairs {
        for side in order(pair) {
            let outcome = run(side).await.map_err(|error| format!("{error:#}"));
            let found = match &outcome {
                Ok(readings) => readings.first().map_or_else(String::new, |reading| {
                    format!(
                        "{} {}",
                        reading.measure.title,
                        reading.measure.unit.shown(reading.value)
                    )
                }),
                Err(error) => format!("failed: {error}"),
            };
            eprintln!("{what}: pair {} of {pairs}, {side}: {found}", pair + 1);
            outcomes.push((side, outcome));
        }
    }
    together(outcomes)
}

/// Ours first in one pair, the peer first in the next.
fn order(pair: usize) -> [Side; 2] {
    let [ours, peer] = Side::BOTH;
    if pair.is_multiple_of(2) {
        [ours, peer]
    } else {
        [peer, ours]
    }
}

/// All values of each measure. Measures are in the order in which runs told them.
fn together(outcomes: Vec<(Side, Result<Vec<Reading>, String>)>) -> Result<Vec<Measure>> {
    let mut measures: Vec<(Measure, bool)> = Vec::new();
    for readings in outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok()) {
        let mut behind = 0;
        for reading in readings {
            let known = measures
                .iter()
                .position(|(measure, _)| measure.id == reading.measure.id);
            // What only this side has stands behind what both had before it.
            behind = 1 + known.unwrap_or_else(|| {
                let measure = Measure {
                    ours: Samples::default(),
                    peer: Some(Samples::default()),
                    ..reading.measure.clone()
                };
                measures.insert(behind, (measure, reading.nought));
                behind
            });
        }
    }
    if measures.is_empty() {
        let first = outcomes
            .into_iter()
            .find_map(|(side, outcome)| Some((side, outcome.err()?)));
        match first {
            Some((side, why)) => bail!("no run reached its end; {side}: {why}"),
            None => bail!("nothing was run"),
        }
    }
    for (measure, nought) in &mut measures {
        for (side, outcome) in &outcomes {
            let samples = match side {
                Side::Ours => &mut measure.ours,
                Side::Peer => measure.peer.get_or_insert_default(),
            };
            match outcome {
                Ok(readings) => {
                    let value = readings.iter().find(|reading| reading.measure.id == measure.id);
                    samples
                        .values
                        .extend(value.map(|reading| reading.value).or(nought.then_some(0.0)));
                }
                Err(why) => samples.failures.push(why.clone()),
            }
        }
    }
    Ok(measures.into_iter().map(|(measure, _)| measure).collect())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::measure::Unit;

    fn reading(id: &str, value: f64) -> Reading {
        Reading::new(Measure::new(id, id, Unit::Count), value)
    }

    #[tokio::test]
    async fn sides_take_turns_and_the_order_alternates() {
        let mut seen = Vec::new();
        let measures = pairs("a test", 3, |side| {
            seen.push(side);
            let value = seen.len() as f64;
            async move { Ok(vec![reading("time", value)]) }
        });
        let measures = measures.await.unwrap();
        let [ours, peer] = Side::BOTH;
        assert_eq!(seen, [ours, peer, peer, ours, ours, peer]);
        assert_eq!(measures[0].ours.values, [1.0, 4.0, 5.0]);
        assert_eq!(measures[0].peer.as_ref().unwrap().values, [2.0, 3.0, 6.0]);
    }

    #[tokio::test]
    async fn a_failed_run_is_counted_in_every_measure_and_has_no_value() {
        let mut runs = 0;
        let measures = pairs("a test", 2, |side| {
            runs += 1;
            let fails = runs == 3;
            async move {
                if fails {
                    return Err(anyhow!("no end").context(format!("{side}")));
                }
                Ok(vec![reading("time", 1.0), reading("cpu", 2.0)])
            }
        });
        let measures = measures.await.unwrap();
        for measure in &measures {
            let peer = measure.peer.as_ref().unwrap();
            assert_eq!(
                (peer.values.len(), peer.failures.as_slice()),
                (1, &["upstream: no end".to_owned()][..])
            );
            assert_eq!((measure.ours.values.len(), measure.ours.failures.len()), (2, 0));
        }
    }

    #[test]
    fn one_sided_need_is_zero_for_the_other_in_its_place() {
        let ours = vec![reading("all", 1.0), reading("patch", 1.0).nought(), reading("end", 0.0)];
        let peer = vec![
            reading("all", 3.0),
            reading("post", 1.0).nought(),
            reading("put", 2.0).nought(),
            reading("end", 0.0),
        ];
        let measures = together(vec![(Side::Ours, Ok(ours)), (Side::Peer, Ok(peer))]).unwrap();
        let ids: Vec<&str> = measures.iter().map(|measure| measure.id.as_str()).collect();
        assert_eq!(ids, ["all", "post", "put", "patch", "end"]);
        assert_eq!(measures[1].ours.values, [0.0]);
        assert_eq!(measures[3].peer.as_ref().unwrap().values, [0.0]);
    }

    #[tokio::test]
    async fn when_no_run_reaches_its_end_there_is_nothing_to_report() {
        let error = pairs("a test", 1, |_| async { Err(anyhow!("broken")) })
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "no run reached its end; cloudwit: broken");
    }
}
