//! Says that a load balancer is ready but not where, and answers fewer route changes than it was asked for.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::TRIGGER;

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

impl LoadBalancers for Guest {
    fn get(&self, _: &Service) -> Result<Option<Balancer>, Failure> {
        Ok(Some(Balancer::at(Vec::new())))
    }

    fn ensure(&self, service: &Service, _: &[Target], _: Option<&str>) -> Result<Balancer, Failure> {
        let ingress = if service.name == TRIGGER {
            Vec::new()
        } else {
            vec![Ingress::ip("192.0.2.1")]
        };
        Ok(Balancer::at(ingress))
    }

    fn update_targets(
        &self,
        service: &Service,
        _: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        if service.name == TRIGGER {
            return Err(Failure::conflict("somebody else changes it"));
        }
        Ok(token
            .map(|token| AnnotationChange::set("token", token))
            .into_iter()
            .collect())
    }

    fn delete(&self, _: &Service, _: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        Ok(vec![AnnotationChange::remove("token")])
    }
}

impl Routes for Guest {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        Ok(Vec::new())
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let created = create.iter().skip(1).map(|_| Ok(())).collect();
        Ok(RouteOutcome {
            created,
            deleted: delete.iter().map(|_| Ok(())).collect(),
        })
    }
}

register_provider!(Guest: LoadBalancers, Routes);
