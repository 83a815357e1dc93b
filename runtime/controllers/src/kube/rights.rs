//! Advice for requests that RBAC denies: the rule that grants them. Pure.
//!
//! A role that lacks a verb shows as work that is never done, and the refusal alone does not say where to put the verb
//! (kubernetes/cloud-provider-openstack#3225: Nodes of machines that are gone stayed for ever after a change of the role). The words
//! of the refusal are the API server's own (`apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, `forbiddenMessage`), the same
//! whichever authorizer refused.

/// The refusal, followed by the rule that would allow the request. Refusals for other reasons stay as they are.
pub fn with_advice(refusal: &str) -> String {
    match rule(refusal) {
        Some(rule) => format!("{refusal}; to allow it, add this rule to the ClusterRole of this controller: {rule}"),
        None => refusal.to_owned(),
    }
}

/// The rule as YAML that can be pasted below `rules:`.
fn rule(refusal: &str) -> Option<String> {
    let (_, what) = refusal.split_once(" cannot ")?;
    let (verb, rest) = what.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once('"')?;
    let group = rest.strip_prefix(" in API group \"")?.split('"').next()?;
    Some(format!(
        "- {{apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [\"{verb}\"]}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_comes_with_the_rule_that_grants_it() {
        for (refusal, rule) in [
            (
                "nodes \"a\" is forbidden: User \"system:serviceaccount:kube-system:cloudwit\" cannot delete resource \"nodes\" in \
                 API group \"\" at the cluster scope",
                "- {apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"delete\"]}",
            ),
            (
                "services \"web\" is forbidden: User \"u\" cannot patch resource \"services/status\" in API group \"\" in the namespace \
                 \"default\"",
                "- {apiGroups: [\"\"], resources: [\"services/status\"], verbs: [\"patch\"]}",
            ),
            (
                "leases.coordination.k8s.io is forbidden: User \"u\" cannot list resource \"leases\" in API group \
                 \"coordination.k8s.io\" at the cluster scope: RBAC: clusterrole \"x\" not found",
                "- {apiGroups: [\"coordination.k8s.io\"], resources: [\"leases\"], verbs: [\"list\"]}",
            ),
        ] {
            let text = with_advice(refusal);
            assert!(text.starts_with(refusal) && text.ends_with(rule), "{text}");
        }
    }

    #[test]
    fn refusals_for_other_reasons_stay_as_they_are() {
        for refusal in [
            "admission webhook \"x\" denied the request: you cannot do that",
            "quota exceeded",
            "",
        ] {
            assert_eq!(with_advice(refusal), refusal);
        }
    }
}
