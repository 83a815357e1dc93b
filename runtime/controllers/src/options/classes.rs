//! Values of `spec.loadBalancerClass` that this process serves.
//!
//! None unless an operator gives them to a provider: a class names another controller otherwise, as upstream has it.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;

/// The classes whose Services we look after, beside those without a class. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes(Arc<BTreeSet<String>>);

impl Classes {
    /// These, and no others.
    pub fn new(classes: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(classes.into_iter().collect()))
    }

    /// Whether the Service's class gives it to another controller.
    pub fn is_foreign_class(&self, service: &Service) -> bool {
        let spec = service.spec.as_ref();
        let class = spec.and_then(|spec| spec.load_balancer_class.as_ref());
        class.is_some_and(|class| !self.0.contains(class))
    }
}
