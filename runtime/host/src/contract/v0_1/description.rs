//! Converts what a provider says about itself and its configuration: answers of `info`.

use crate::call::answer::limits;
use crate::call::answer::{self, Checked, InvalidResponse, Screen};
use crate::call::walk::Walk;
use crate::contract::adapter;
use crate::contract::v0_1::answers::extra;
use crate::contract::v0_1::generated::cloudwit::provider::common;
use crate::contract::v0_1::generated::exports::cloudwit::provider::info;
use crate::grants::SecretUse;

fn http_request(screen: Screen<'_>, request: info::HttpWish) -> Checked<adapter::HttpGrantRequest> {
    let what = |part: &str| format!("the {part} of an HTTP destination of info.describe");
    answer::at_most(
        format_args!("{}", what("list of methods")),
        &request.methods,
        limits::METHODS,
    )?;
    let method = |method| screen.value(format_args!("{}", what("method")), method, limits::METHOD);
    Ok(adapter::HttpGrantRequest {
        scheme: screen.value(format_args!("{}", what("scheme")), request.scheme, limits::METHOD)?,
        host: screen.value(format_args!("{}", what("host")), request.host, limits::HOST_NAME)?,
        port: request.port,
        methods: request.methods.into_iter().map(method).collect::<Checked<_>>()?,
        reason: screen.message(&request.reason),
    })
}

fn secret_request(screen: Screen<'_>, request: info::SecretWish) -> Checked<adapter::SecretGrantRequest> {
    let what = format_args!("the name of a secret of info.describe");
    let name = screen.value(what, request.name, limits::WORD)?;
    let uses = format_args!("the uses of secret {name:?} of info.describe");
    if request.uses.is_empty() {
        return Err(InvalidResponse(format!("{uses} are none")));
    }
    answer::at_most(uses, &request.uses, limits::SECRET_USES)?;
    let hosts = format_args!("the hosts of secret {name:?} of info.describe");
    answer::at_most(hosts, &request.hosts, limits::GRANT_REQUESTS)?;
    let host = |host| screen.name(hosts, host, limits::SECRET_HOST);
    let as_granted = |one| match one {
        info::SecretUse::Placeholder => SecretUse::Placeholder,
        info::SecretUse::Hmac => SecretUse::Hmac,
        info::SecretUse::Sign => SecretUse::Sign,
        info::SecretUse::Reveal => SecretUse::Reveal,
    };
    Ok(adapter::SecretGrantRequest {
        hosts: request.hosts.into_iter().map(host).collect::<Checked<_>>()?,
        uses: request.uses.into_iter().map(as_granted).collect(),
        reason: screen.message(&request.reason),
        optional: request.optional,
        name,
    })
}

pub(crate) fn description(screen: Screen<'_>, found: info::Description) -> Checked<adapter::Description> {
    let prefixes = &found.provider_id_prefixes;
    answer::at_most(
        format_args!("the prefixes of info.describe"),
        prefixes,
        limits::PREFIXES,
    )?;
    answer::at_most(
        format_args!("the destinations of info.describe"),
        &found.http,
        limits::GRANT_REQUESTS,
    )?;
    answer::at_most(
        format_args!("the secrets of info.describe"),
        &found.secrets,
        limits::GRANT_REQUESTS,
    )?;
    let prefix = |prefix| screen.word(format_args!("a provider-id prefix of info.describe"), prefix);
    answer::at_most(
        format_args!("the cluster views of info.describe"),
        &found.cluster,
        limits::CLUSTER_VIEWS,
    )?;
    let service_finalizers = service_finalizers(&found.extra)?;
    let tagging_label = tagging_label(&found.extra)?;
    let disabled_interfaces = disabled_interfaces(&found.extra)?;
    extra(screen, format_args!("info.describe"), found.extra)?;
    let secret = |request| secret_request(screen, request);
    let view = |request: info::ClusterWish| adapter::ClusterGrantRequest {
        view: match request.view {
            info::ClusterView::Nodes => adapter::ClusterGrantView::Nodes,
            info::ClusterView::Services => adapter::ClusterGrantView::Services,
        },
        reason: screen.message(&request.reason),
        optional: request.optional,
    };
    let http = found.http.into_iter().map(|request| http_request(screen, request));
    Ok(adapter::Description {
        name: screen.word(format_args!("the name of info.describe"), found.name)?,
        version: screen.word(format_args!("the version of info.describe"), found.version)?,
        provider_id_prefixes: found
            .provider_id_prefixes
            .into_iter()
            .map(prefix)
            .collect::<Checked<_>>()?,
        http: http.collect::<Checked<_>>()?,
        secrets: found.secrets.into_iter().map(secret).collect::<Checked<_>>()?,
        cluster: found.cluster.into_iter().map(view).collect(),
        lookup_batch: found
            .lookup_batch
            .map_or(limits::LOOKUP_BATCH, |nodes| nodes.clamp(1, limits::LOOKUP_BATCH)),
        service_finalizers,
        tagging_label,
        disabled_interfaces,
    })
}

/// The value of an extra fact.
fn fact<'a>(extra: &'a [common::Pair], key: &str) -> Option<&'a str> {
    let found = extra.iter().find(|pair| pair.key == key);
    found.map(|pair| pair.value.as_str())
}

/// Reads the extra fact `disabled-interfaces`. Names of later versions count for nothing.
fn disabled_interfaces(extra: &[common::Pair]) -> Checked<Vec<String>> {
    let Some(value) = fact(extra, "disabled-interfaces") else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = value.split(',').collect();
    answer::at_most(
        format_args!("the disabled-interfaces of info.describe"),
        &names,
        limits::DISABLED_INTERFACES,
    )?;
    let is_name = |name: &&str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty() && name.bytes().all(plain)
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(InvalidResponse(format!(
            "{name:.320?} among the disabled-interfaces of info.describe is not an interface"
        ))),
        None => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// Reads the extra fact `service-finalizers`.
fn service_finalizers(extra: &[common::Pair]) -> Checked<Vec<String>> {
    let Some(value) = fact(extra, "service-finalizers") else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = value.split(',').collect();
    answer::at_most(
        format_args!("the service-finalizers of info.describe"),
        &names,
        limits::SERVICE_FINALIZERS,
    )?;
    match names.iter().find(|name| !is_others_finalizer(name)) {
        Some(name) => Err(InvalidResponse(format!(
            "the service-finalizer {name:.320?} of info.describe is not DOMAIN/NAME, or one of Kubernetes' own"
        ))),
        None => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// Reads the extra fact `tagging-label`. Only a label of this form can be one: a provider must not get at those that schedulers read.
fn tagging_label(extra: &[common::Pair]) -> Checked<Option<String>> {
    let Some(fact) = extra.iter().find(|pair| pair.key == "tagging-label") else {
        return Ok(None);
    };
    let name = fact.value.strip_prefix("k8s.io/").unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_one = name.starts_with("cloud-provider-") && !name.ends_with('-') && name.len() <= 63;
    if is_one && name.bytes().all(plain) {
        return Ok(Some(fact.value.clone()));
    }
    let value = &fact.value;
    Err(InvalidResponse(format!(
        "the tagging-label {value:.320?} of info.describe is not k8s.io/cloud-provider-NAME"
    )))
}

/// Whether it is a finalizer (domain and name) that is not Kubernetes' own.
fn is_others_finalizer(name: &str) -> bool {
    let plain = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let kubernetes = |domain: &str| {
        ["kubernetes.io", "k8s.io"]
            .iter()
            .any(|own| domain == *own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')))
    };
    name.split_once('/')
        .is_some_and(|(domain, rest)| plain(domain) && domain.contains('.') && plain(rest) && !kubernetes(domain))
}

/// The problems, as far as people read them; further ones are counted.
pub(crate) async fn problems(
    screen: Screen<'_>,
    walk: &mut Walk,
    mut problems: Vec<info::Problem>,
) -> Vec<adapter::Problem> {
    let further = problems.len().saturating_sub(limits::PROBLEMS);
    let mut further_error = problems.iter().skip(limits::PROBLEMS);
    let further_error = further_error.any(|problem| problem.severity == info::Severity::Error);
    problems.truncate(limits::PROBLEMS);
    let mut all = Vec::with_capacity(problems.len() + 1);
    for problem in problems {
        walk.next(limits::PROBLEM_AT + limits::MESSAGE).await;
        all.push(adapter::Problem {
            severity: match problem.severity {
                info::Severity::Error => adapter::Severity::Error,
                info::Severity::Warning => adapter::Severity::Warning,
            },
            at: screen.shown(&problem.at, limits::PROBLEM_AT),
            message: screen.message(&problem.message),
        });
    }
    if further > 0 {
        all.push(adapter::Problem {
            severity: if further_error {
                adapter::Severity::Error
            } else {
                adapter::Severity::Warning
            },
            at: String::new(),
            message: format!("{further} further problems are not listed"),
        });
    }
    all
}
