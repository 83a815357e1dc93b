//! Medians, spreads, ratios, and whether a goal is met. Pure.
//!
//! The median, since one run beside a busy neighbour must not decide; the spread is all that was seen, from the least to the most, since with three to
//! five runs no quartile means anything.

use crate::measure::{Better, Goal, Measure, Samples};

/// What the values of one side come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// Whether a figure is what it shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not, or a run of ours failed.
    Missed,
    /// There is nothing to tell it from: no value, or no peer to compare with.
    Unknown,
}

/// `None` without a value.
pub fn summary(samples: &Samples) -> Option<Summary> {
    let mut values = samples.values.clone();
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    };
    Some(Summary { median, min, max })
}

/// How many times as good as the peer's median ours is: above 1, ours is better. Infinite when ours needs nothing and the peer something; 1 when both
/// need nothing. `None` when a side has no value, and for parts of other figures.
pub fn ratio(measure: &Measure) -> Option<f64> {
    let ours = summary(&measure.ours)?.median;
    let peer = summary(measure.peer.as_ref()?)?.median;
    let (above, below) = match measure.better {
        Better::Less => (peer, ours),
        Better::More => (ours, peer),
        Better::Neither => return None,
    };
    Some(if above == below { 1.0 } else { above / below })
}

/// `None` without a goal.
pub fn verdict(measure: &Measure) -> Option<Verdict> {
    let goal = measure.goal?;
    if !measure.ours.failures.is_empty() {
        return Some(Verdict::Missed);
    }
    let met = match goal {
        Goal::Times(times) => ratio(measure).map(|ratio| ratio >= times),
        Goal::AtMost(most) => summary(&measure.ours).map(|ours| ours.median <= most),
    };
    Some(match met {
        Some(true) => Verdict::Met,
        Some(false) => Verdict::Missed,
        None => Verdict::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Unit;

    fn samples(values: &[f64]) -> Samples {
        Samples {
            values: values.to_vec(),
            failures: Vec::new(),
        }
    }

    fn measure(ours: &[f64], peer: &[f64]) -> Measure {
        let mut measure = Measure::new("x", "x", Unit::Seconds).ours(ours.iter().copied());
        measure.peer = Some(samples(peer));
        measure
    }

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_two() {
        let of = |values: &[f64]| summary(&samples(values));
        assert_eq!(
            of(&[9.0, 1.0, 2.0]),
            Some(Summary {
                median: 2.0,
                min: 1.0,
                max: 9.0
            })
        );
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn above_one_ours_is_better_whichever_direction_is_the_good_one() {
        assert_eq!(ratio(&measure(&[2.0], &[6.0])), Some(3.0));
        assert_eq!(ratio(&measure(&[2.0], &[6.0]).more()), Some(1.0 / 3.0));
        assert_eq!(ratio(&measure(&[0.0], &[6.0])), Some(f64::INFINITY));
        assert_eq!(ratio(&measure(&[0.0], &[0.0])), Some(1.0));
        assert_eq!(ratio(&measure(&[2.0], &[6.0]).part()), None);
        assert_eq!(ratio(&measure(&[], &[6.0])), None);
        assert_eq!(ratio(&Measure::new("x", "x", Unit::Count).ours([1.0])), None);
    }

    #[test]
    fn a_goal_is_met_at_its_limit_and_missed_behind_it() {
        let times = |ours| verdict(&measure(&[ours], &[6.0]).goal(Goal::Times(3.0)));
        assert_eq!(times(2.0), Some(Verdict::Met));
        assert_eq!(times(2.1), Some(Verdict::Missed));
        let at_most = |ours| verdict(&measure(&[ours], &[]).goal(Goal::AtMost(5.0)));
        assert_eq!(at_most(5.0), Some(Verdict::Met));
        assert_eq!(at_most(5.1), Some(Verdict::Missed));
        assert_eq!(
            verdict(&measure(&[1.0], &[]).goal(Goal::Times(3.0))),
            Some(Verdict::Unknown)
        );
        assert_eq!(verdict(&measure(&[1.0], &[2.0])), None);
    }

    #[test]
    fn a_failed_run_of_ours_misses_every_goal() {
        let mut measure = measure(&[1.0], &[6.0]).goal(Goal::Times(3.0));
        measure.ours.failures.push("timed out".into());
        assert_eq!(verdict(&measure), Some(Verdict::Missed));
    }
}
