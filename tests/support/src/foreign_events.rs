//! Events that the API server writes about Services by itself.
//!
//! Its repair loops compare all cluster IPs and node ports with what it has handed out. A Service that is made while they look is told of as not
//! allocated, and put right. A test that says which Events there are means those of controllers.

use k8s_openapi::api::core::v1::Event;

/// Whether one of the API server's repair loops wrote it (`ipallocator-repair-controller`, `portallocator-repair-controller`).
pub fn is_of_the_api_server(event: &Event) -> bool {
    let source = event.source.as_ref().and_then(|source| source.component.as_deref());
    [source, event.reporting_component.as_deref()]
        .into_iter()
        .flatten()
        .any(|component| component.ends_with("allocator-repair-controller"))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::EventSource;

    use super::*;

    #[test]
    fn whoever_reports_is_looked_at_in_both_places() {
        let source = |component: &str| Event {
            source: Some(EventSource {
                component: Some(component.into()),
                host: None,
            }),
            ..Event::default()
        };
        let reporting = |component: &str| Event {
            reporting_component: Some(component.into()),
            ..Event::default()
        };
        assert!(is_of_the_api_server(&source("ipallocator-repair-controller")));
        assert!(is_of_the_api_server(&reporting("portallocator-repair-controller")));
        assert!(!is_of_the_api_server(&source("service-controller")));
        assert!(!is_of_the_api_server(&Event::default()));
    }
}
