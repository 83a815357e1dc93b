//! Result of a swap and facts of the running provider. Contains no secrets.

use std::time::Duration;

use cloudwit_model::Abilities;
use jiff::Timestamp;

use crate::call::LastFault;
use crate::grants::HttpGrant;
use crate::provider::Provider;

/// How far a changed component, configuration or secret came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwapResult {
    /// It runs.
    Swapped,
    /// Files were written, but nothing is different: the running one stays, and it is what the files say.
    Unchanged,
    /// Refused: the settings or the secret files have mistakes.
    Settings,
    /// Refused: the registry does not give the component, or its digest or signature is not what it has to be.
    Pull,
    /// Refused: the component is none, speaks another contract, or does not start.
    Load,
    /// Refused: it lost an interface or a provider-id prefix that the running one has.
    Abilities,
    /// Refused: it misses grants that the running one does not request.
    Grants,
    /// Refused: the provider finds mistakes in its configuration.
    Check,
    /// Refused: the cloud does not answer it.
    Probe,
}

impl SwapResult {
    /// The result as a metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Swapped => "swapped",
            Self::Unchanged => "unchanged",
            Self::Settings => "settings",
            Self::Pull => "pull",
            Self::Load => "load",
            Self::Abilities => "abilities",
            Self::Grants => "grants",
            Self::Check => "check",
            Self::Probe => "probe",
        }
    }

    /// Whether the last good one stays although the files say something else.
    pub fn is_refusal(self) -> bool {
        !matches!(self, Self::Swapped | Self::Unchanged)
    }
}

/// One attempt to follow a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// When it was over.
    pub at: Timestamp,
    /// How far it came.
    pub result: SwapResult,
    /// What runs now, or why it was refused, in one line.
    pub message: String,
    /// How long it took, the wait for the cloud's answer included.
    pub took: Duration,
    /// Whether the same files may be accepted later, since the cloud or this machine may be the cause.
    pub may_pass_later: bool,
}

/// One provider as it runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// The operator's name for it.
    pub name: String,
    /// The provider's own name.
    pub provider: String,
    /// The provider's own version.
    pub version: String,
    /// The version of the contract that is spoken with it, such as `0.1`.
    pub contract: String,
    /// SHA-256 of the component, unpacked, in hexadecimal.
    pub component_digest: String,
    /// Its interfaces.
    pub abilities: Abilities,
    /// Prefixes of the provider ids it gives out.
    pub provider_id_prefixes: Vec<String>,
    /// Where it may send requests: methods and destination, such as `GET POST https://api.example.com:443`.
    pub granted: Vec<String>,
    /// Grants that it requests and does not have, each with the entry to add.
    pub lacking: Vec<String>,
    /// Since when it runs with this component and these settings.
    pub since: Timestamp,
    /// The last change of its files that was checked; none since the start.
    pub last_swap: Option<Swap>,
    /// The last call in which it, or one that ran before it, misbehaved.
    pub last_fault: Option<LastFault>,
}

impl ProviderStatus {
    /// Why the files of this provider are not what runs; none when they are.
    pub fn refused(&self) -> Option<&Swap> {
        self.last_swap.as_ref().filter(|swap| swap.result.is_refusal())
    }

    /// One line for `readyz?verbose`. A refused change is no reason not to be ready: the last good one works.
    pub fn line(&self) -> String {
        let Self {
            provider,
            version,
            component_digest,
            since,
            ..
        } = self;
        let digest = component_digest.get(..12).unwrap_or(component_digest);
        let mut line = format!("{provider} {version} ({digest}) since {since:.0}");
        if let Some(Swap { at, message, .. }) = self.refused() {
            line += &format!("; the change of {at:.0} was refused: {message}");
        }
        line
    }

    /// What can be read off the provider itself.
    pub(crate) fn of(name: &str, provider: &Provider, since: Timestamp) -> Self {
        use cloudwit_model::Cloud as _;
        let description = provider.description();
        Self {
            name: name.to_owned(),
            provider: description.name.clone(),
            version: description.version.clone(),
            contract: provider.contract(),
            component_digest: provider.component_digest().to_owned(),
            abilities: provider.abilities(),
            provider_id_prefixes: description.provider_id_prefixes.clone(),
            granted: provider.env().grants.http.iter().map(granted).collect(),
            lacking: provider
                .missing_grants()
                .iter()
                .filter(|missing| !missing.optional)
                .map(ToString::to_string)
                .collect(),
            since,
            last_swap: None,
            last_fault: provider.last_fault(),
        }
    }
}

fn granted(grant: &HttpGrant) -> String {
    let (methods, scheme) = (grant.methods.join(" "), grant.scheme.as_str());
    format!("{methods} {scheme}://{}:{}", grant.host, grant.port())
}
