//! Schedule of faults: every fault once, in an order drawn from the seed, each followed by a calm.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

/// Share of a turn in which its fault lasts; the rest is calm.
const FAULTY: f64 = 0.6;

/// Shortest fault: longer than the lease of a stopped leader.
const SHORTEST: Duration = Duration::from_secs(14);

/// Shortest calm: a few periods of all loops.
const CALM: Duration = Duration::from_secs(5);

/// Longest turn. A longer run has more rounds instead.
const LONGEST: Duration = Duration::from_secs(300);

/// Components under `tests/guests/examples` that misbehave in a look-up of the Node `trigger`.
/// Those that are not built are left out.
pub const GUESTS: [&str; 12] = [
    "blurts",
    "exits",
    "floods_log",
    "grows",
    "holds_memory",
    "huge_answer",
    "odd_machines",
    "opens_many_requests",
    "panics",
    "recurses",
    "spins",
    "wrong_length",
];

/// What goes wrong in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    /// The cloud answers 500.
    CloudErrors,
    /// The cloud answers 429 with `Retry-After`.
    CloudThrottles,
    /// The cloud answers 200 with text that is no JSON.
    CloudGarbage,
    /// The cloud never answers.
    CloudHangs,
    /// The cloud does the work and cuts the connection.
    CloudLosesAnswers,
    /// The cloud sends credentials back in error texts.
    CloudEchoesSecrets,
    /// The cloud lists nothing, while a fifth of the Nodes is not Ready.
    CloudListsNothing,
    /// DNS answers after seconds.
    SlowDns,
    /// Connections to the API server are cut and refused.
    ApiServerAway,
    /// The API server ends and starts again with the same data.
    ApiServerRestarts,
    /// Each request to the API server takes longer.
    ApiServerSlow,
    /// Each watch ends with 410 Gone.
    WatchesExpire,
    /// Watches are cut every second.
    WatchesCut,
    /// The leader gets SIGSTOP, and SIGCONT at the end.
    LeaderStopped,
    /// The leader gets SIGKILL.
    LeaderKilled,
    /// The certificate of the HTTPS port is replaced.
    CertificatesRotate,
    /// The token of the cloud is replaced and the old one revoked.
    SecretsRotate,
    /// The provider of most Nodes is replaced by variants of itself.
    ProviderSwaps,
    /// The provider's file is no component.
    ProviderBroken,
    /// Both replicas have 16 descriptors more than they use.
    FewDescriptors,
    /// The volume of the compile cache is full, while providers are replaced.
    CacheFull,
    /// Nothing but the hostile provider.
    HostileAlone,
}

impl Disturbance {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::CloudErrors,
        Self::CloudThrottles,
        Self::CloudGarbage,
        Self::CloudHangs,
        Self::CloudLosesAnswers,
        Self::CloudEchoesSecrets,
        Self::CloudListsNothing,
        Self::SlowDns,
        Self::ApiServerAway,
        Self::ApiServerRestarts,
        Self::ApiServerSlow,
        Self::WatchesExpire,
        Self::WatchesCut,
        Self::LeaderStopped,
        Self::LeaderKilled,
        Self::CertificatesRotate,
        Self::SecretsRotate,
        Self::ProviderSwaps,
        Self::ProviderBroken,
        Self::FewDescriptors,
        Self::CacheFull,
        Self::HostileAlone,
    ];

    /// As it stands in tables and in `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloudErrors => "cloud-500",
            Self::CloudThrottles => "cloud-429",
            Self::CloudGarbage => "cloud-garbage",
            Self::CloudHangs => "cloud-hangs",
            Self::CloudLosesAnswers => "cloud-loses-answers",
            Self::CloudEchoesSecrets => "cloud-echoes-secrets",
            Self::CloudListsNothing => "cloud-lists-nothing",
            Self::SlowDns => "slow-dns",
            Self::ApiServerAway => "api-server-away",
            Self::ApiServerRestarts => "api-server-restarts",
            Self::ApiServerSlow => "api-server-slow",
            Self::WatchesExpire => "watches-expire",
            Self::WatchesCut => "watches-cut",
            Self::LeaderStopped => "leader-stopped",
            Self::LeaderKilled => "leader-killed",
            Self::CertificatesRotate => "certificates-rotate",
            Self::SecretsRotate => "secrets-rotate",
            Self::ProviderSwaps => "provider-swaps",
            Self::ProviderBroken => "provider-broken",
            Self::FewDescriptors => "few-descriptors",
            Self::CacheFull => "cache-full",
            Self::HostileAlone => "hostile-alone",
        }
    }

    /// The disturbance of this name.
    ///
    /// # Errors
    ///
    /// When there is none; names all.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }

    /// Whether a replica may end by itself in it: a leader that cannot renew its Lease has to.
    pub fn may_end_replicas(self) -> bool {
        matches!(
            self,
            Self::ApiServerAway
                | Self::ApiServerRestarts
                | Self::ApiServerSlow
                | Self::LeaderStopped
                | Self::LeaderKilled
        )
    }
}

/// One fault and the calm after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// What goes wrong.
    pub disturbance: Disturbance,
    /// The component of the hostile provider meanwhile, among [`GUESTS`].
    pub guest: &'static str,
    /// For how long.
    pub lasts: Duration,
    /// For how long nothing goes wrong afterwards.
    pub calm: Duration,
}

/// Turns that fill `time`, or somewhat more where every fault would be too short.
pub fn schedule(time: Duration, seed: u64, possible: &[Disturbance], guests: &[&'static str]) -> Vec<Turn> {
    let mut random = StdRng::seed_from_u64(seed);
    let count = u32::try_from(possible.len()).unwrap_or(u32::MAX).max(1);
    let mut rounds = 1;
    while time / (count * rounds) > LONGEST {
        rounds += 1;
    }
    let slot = time / (count * rounds);
    let lasts = slot.mul_f64(FAULTY).max(SHORTEST);
    let calm = slot.saturating_sub(lasts).max(CALM);
    let mut turns = Vec::new();
    for _ in 0..rounds {
        let mut round = possible.to_vec();
        round.shuffle(&mut random);
        turns.extend(round.into_iter().map(|disturbance| Turn {
            disturbance,
            guest: guests.choose(&mut random).copied().unwrap_or_default(),
            lasts,
            calm,
        }));
    }
    turns
}

/// How long these turns take.
pub fn length(turns: &[Turn]) -> Duration {
    turns.iter().map(|turn| turn.lasts + turn.calm).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hour_has_every_disturbance_for_minutes() {
        let turns = schedule(Duration::from_secs(3600), 7, &Disturbance::ALL, &GUESTS);
        let mut seen: Vec<_> = turns.iter().map(|turn| turn.disturbance).collect();
        seen.sort();
        assert_eq!(seen, Disturbance::ALL);
        assert!(
            turns.iter().all(|turn| turn.lasts > Duration::from_secs(90)),
            "{turns:?}"
        );
        assert!(length(&turns).abs_diff(Duration::from_secs(3600)) < Duration::from_secs(5));
    }

    #[test]
    fn schedule_of_one_seed_is_always_the_same() {
        let of = |seed| schedule(Duration::from_secs(3600), seed, &Disturbance::ALL, &GUESTS);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn short_run_keeps_faults_longer_than_a_lease() {
        let turns = schedule(Duration::from_secs(60), 1, &Disturbance::ALL, &GUESTS);
        assert!(turns.iter().all(|turn| turn.lasts >= SHORTEST && turn.calm >= CALM));
    }

    #[test]
    fn long_run_repeats_rounds() {
        let turns = schedule(Duration::from_secs(8 * 3600), 1, &Disturbance::ALL, &GUESTS);
        assert!(turns.len() > 3 * Disturbance::ALL.len());
        assert!(turns.iter().all(|turn| turn.lasts <= LONGEST));
    }

    #[test]
    fn disturbance_names_are_unique_and_parse() {
        for one in Disturbance::ALL {
            assert_eq!(Disturbance::named(one.name()), Ok(one));
        }
        assert!(Disturbance::named("x").unwrap_err().contains("cloud-500"));
    }
}
