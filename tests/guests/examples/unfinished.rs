//! Needs three calls for each load balancer and each route change: the token counts them. Load balancers are reached after the first.

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

const STEP: Duration = Duration::from_secs(5);

impl LoadBalancers for Guest {
    fn get(&self, _: &Service) -> Result<Option<Balancer>, Failure> {
        Ok(None)
    }

    fn ensure(&self, _: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let balancer = Balancer::at(vec![Ingress::ip("192.0.2.1")]);
        Ok(match token {
            None => balancer.remaining(STEP, "1", format!("{} targets are added", targets.len())),
            Some("1") => balancer.remaining(STEP, "2", "targets are checked"),
            Some(_) => balancer,
        })
    }

    fn update_targets(&self, _: &Service, _: &[Target], _: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        Ok(Vec::new())
    }

    fn delete(&self, _: &Service, _: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        Ok(Vec::new())
    }
}

fn step(token: &Option<String>) -> Result<(), Failure> {
    let next = match token.as_deref() {
        None => "1",
        Some("1") => "2",
        Some(_) => return Ok(()),
    };
    Err(Failure::pending(STEP, next, "the cloud takes its time"))
}

impl Routes for Guest {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        Ok(Vec::new())
    }

    fn apply(&self, _: &[NewRoute], _: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure> {
        Ok(RouteOutcome {
            created: tokens.create.iter().map(step).collect(),
            deleted: tokens.delete.iter().map(step).collect(),
        })
    }
}

register_provider!(Guest: LoadBalancers, Routes);
