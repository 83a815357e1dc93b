//! The steps of the service controller as requests: where one is stopped, the process is at that step.

use cloudwit_sim_cloud::LoadBalancer;
use cloudwit_test_support::gate::{Point, Stop};
use cloudwit_test_support::scenes::rig::Rig;
use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

/// A step of one Service. `Cloud` and `Api` say which way the request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The finalizer is not on the Service yet.
    BeforeFinalizer,
    /// It is, and the process does not know yet. The next thing were the first call to the cloud.
    AfterFinalizer,
    /// The first request of a call to the cloud, which only searches.
    Searching,
    /// The load balancer is about to be made.
    BeforeCreate,
    /// It is made, and the process does not know yet.
    AfterCreate,
    /// It is about to be changed.
    BeforeChange,
    /// It is changed, and the process does not know yet.
    AfterChange,
    /// Its targets are about to be changed.
    BeforeTargets,
    /// They are changed, and the process does not know yet.
    AfterTargets,
    /// The cloud has answered; the address is not on the Service yet.
    BeforeStatus,
    /// It is, and the process does not know yet.
    AfterStatus,
    /// It is, but no Event says so.
    BeforeEvent,
    /// The load balancer is about to be deleted.
    BeforeDelete,
    /// It is deleted, and the process does not know yet.
    AfterDelete,
    /// The cloud has answered; the finalizer is still there.
    BeforeRelease,
    /// It is gone, and the process does not know yet.
    AfterRelease,
}

impl Step {
    /// Stops this Service there.
    pub fn stop(self, rig: &Rig, service: &Service) -> Stop {
        let uid = service.uid().unwrap();
        let status = format!("/services/{}/status", service.name_any());
        let balancer = || format!("/v1/load-balancers/{}", balancer_of(rig, service).unwrap().id);
        let api = |point| rig.to_api.stop_at(point);
        let cloud = |point| rig.to_cloud.stop_at(point);
        match self {
            Self::BeforeFinalizer => api(Point::before(Method::PATCH, status)),
            Self::AfterFinalizer => api(Point::after(Method::PATCH, status)),
            Self::Searching => cloud(Point::before(Method::GET, format!("owner={uid}"))),
            Self::BeforeCreate => cloud(Point::before(Method::POST, "/v1/load-balancers").with(uid)),
            Self::AfterCreate => cloud(Point::after(Method::POST, "/v1/load-balancers").with(uid)),
            Self::BeforeChange => cloud(Point::before(Method::PUT, balancer())),
            Self::AfterChange => cloud(Point::after(Method::PUT, balancer())),
            Self::BeforeTargets => cloud(Point::before(Method::PUT, format!("{}/targets", balancer()))),
            Self::AfterTargets => cloud(Point::after(Method::PUT, format!("{}/targets", balancer()))),
            Self::BeforeStatus => api(Point::before(Method::PATCH, status).with(r#""ingress":[{"#)),
            Self::AfterStatus => api(Point::after(Method::PATCH, status).with(r#""ingress":[{"#)),
            Self::BeforeEvent => api(Point::before(Method::POST, "/events")
                .with(uid)
                .with("EnsuredLoadBalancer")),
            Self::BeforeDelete => cloud(Point::before(Method::DELETE, balancer())),
            Self::AfterDelete => cloud(Point::after(Method::DELETE, balancer())),
            Self::BeforeRelease => api(Point::before(Method::PATCH, status).with("$deleteFromPrimitiveList")),
            Self::AfterRelease => api(Point::after(Method::PATCH, status).with("$deleteFromPrimitiveList")),
        }
    }
}

/// The Service's load balancer in the cloud.
pub fn balancer_of(rig: &Rig, service: &Service) -> Option<LoadBalancer> {
    let owner = service.uid();
    rig.cloud
        .load_balancers()
        .into_iter()
        .find(|balancer| balancer.spec.owner == owner)
}
