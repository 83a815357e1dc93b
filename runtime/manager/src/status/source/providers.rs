//! Facts of providers and of the API hosts they call.

use cloudwit_host::{LastFault, ProviderStatus, Swap, SwappableProvider};

use crate::status::facts::{ApiHost, FaultFacts, HostError, Moment, ProviderFacts, SwapFacts};
use crate::status::source::Now;

pub(super) fn of_provider(status: ProviderStatus) -> ProviderFacts {
    ProviderFacts {
        name: status.name,
        provider: status.provider,
        version: status.version,
        contract: status.contract,
        component_digest: status.component_digest,
        abilities: status.abilities.names(),
        provider_id_prefixes: status.provider_id_prefixes,
        granted: status.granted,
        lacking: status.lacking,
        since: Moment(status.since),
        last_swap: status.last_swap.map(swap),
        last_fault: status.last_fault.map(fault),
    }
}

fn swap(swap: Swap) -> SwapFacts {
    SwapFacts {
        at: Moment(swap.at),
        result: swap.result.label(),
        refused: swap.result.is_refusal(),
        message: swap.message,
        took_seconds: swap.took.as_secs_f64(),
    }
}

fn fault(LastFault { at, mut fault }: LastFault) -> FaultFacts {
    let output = std::mem::take(&mut fault.output);
    FaultFacts {
        at: Moment(at),
        kind: fault.kind.label(),
        message: fault.to_string(),
        output,
    }
}

pub(super) fn api_hosts(provider: &SwappableProvider, now: Now) -> Vec<ApiHost> {
    let host = |budget: cloudwit_host::BudgetStatus| ApiHost {
        provider: provider.name().to_owned(),
        host: budget.host,
        per_second: budget.rate.map(|rate| rate.per_second),
        burst: budget.rate.map(|rate| rate.burst),
        left: budget.rate.map(|rate| rate.left),
        paused_until: budget.paused_for.map(|pause| now.after(pause)),
        waiting: budget.waiting,
        requests: budget.answers.requests,
        errors: budget.answers.errors,
        errors_in_a_row: budget.answers.errors_in_a_row,
        last_success: budget.answers.last_success.map(Moment),
        last_error: budget
            .answers
            .last_error
            .map(|(at, what)| HostError { at: Moment(at), what }),
    };
    provider.budgets().into_iter().map(host).collect()
}
