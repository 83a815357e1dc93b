//! Needs three calls for each route change: the token counts them.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

struct Guest;

impl Provider for Guest {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new(module_path!(), env!("CARGO_PKG_VERSION"))
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

fn step(token: &Option<String>) -> Result<(), Failure> {
    let next = match token.as_deref() {
        None => "1",
        Some("1") => "2",
        Some(_) => return Ok(()),
    };
    Err(Failure::pending(
        Duration::from_secs(5),
        next,
        "the cloud takes its time",
    ))
}

impl Routes for Guest {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        Ok(Vec::new())
    }

    fn apply(&self, _: &[NewRoute], _: &[Route]) -> Result<RouteOutcome, Failure> {
        Err(Failure::invalid("called without tokens"))
    }

    fn apply_with(&self, _: &[NewRoute], _: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure> {
        Ok(RouteOutcome {
            created: tokens.create.iter().map(step).collect(),
            deleted: tokens.delete.iter().map(step).collect(),
        })
    }
}

register_provider!(Guest: Routes);
