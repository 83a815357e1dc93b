//! Answers about fewer Services than it was asked to give targets to.

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

impl LoadBalancers for Guest {
    fn get(&self, _: &Service) -> Result<Option<Balancer>, Failure> {
        Ok(None)
    }

    fn ensure(&self, _: &Service, _: &[Target], _: Option<&str>) -> Result<Balancer, Failure> {
        Ok(Balancer::at(vec![Ingress::ip("192.0.2.1")]))
    }

    fn update_targets(&self, _: &Service, _: &[Target], _: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        Ok(Vec::new())
    }

    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        _: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        Ok(updates.iter().skip(1).map(|_| Ok(Vec::new())).collect())
    }

    fn delete(&self, _: &Service, _: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        Ok(Vec::new())
    }
}

register_provider!(Guest: LoadBalancers);
