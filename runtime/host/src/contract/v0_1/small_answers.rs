//! Converts answers of the interfaces `clusters`, `dns` and `location`.
//!
//! What they say ends in flags, files and environments of other programs, so every text is checked for the form required there.

use std::net::IpAddr;

use cloudwit_model::dns_name::{is_domain, is_node_name};
use cloudwit_model::known_cluster::CONTROL_PLANE_PORT;
use cloudwit_model::resolver::is_nameserver;
use cloudwit_model::{KnownCluster, MachineLocation, Resolver};

use crate::call::answer::limits;
use crate::call::answer::{self, Checked, InvalidResponse, Screen, quoted};
use crate::call::walk::Walk;
use crate::contract::adapter::Listed;
use crate::contract::v0_1::answers::{extra, instance, listed};
use crate::contract::v0_1::generated::exports::cloudwit::provider as exports;

/// A text without control characters and blanks at its ends, for a table or a file.
fn visible(screen: Screen<'_>, what: std::fmt::Arguments<'_>, text: String, most: usize) -> Checked<String> {
    let text = screen.name(what, text, most)?;
    if text.contains(char::is_control) || text.trim() != text {
        let shown = quoted(&text);
        return Err(InvalidResponse(format!(
            "{what} is {shown}; control characters and blanks at its ends are not allowed"
        )));
    }
    Ok(text)
}

fn cluster(screen: Screen<'_>, cluster: exports::clusters::KnownCluster) -> Checked<KnownCluster> {
    let name = visible(
        screen,
        format_args!("the name of a cluster"),
        cluster.name,
        limits::HOST_NAME,
    )?;
    let whose = format_args!("cluster {name:?}");
    extra(screen, whose, cluster.extra)?;
    let host = screen.optional(format_args!("the host of {whose}"), cluster.host, limits::HOST_NAME)?;
    if let Some(host) = host
        .as_deref()
        .filter(|host| host.parse::<IpAddr>().is_err() && !is_domain(host))
    {
        return Err(InvalidResponse(format!(
            "the host of {whose} is {}, which is neither an IP address nor a DNS name",
            quoted(host)
        )));
    }
    let port = cluster.port.unwrap_or(CONTROL_PLANE_PORT);
    if port == 0 {
        return Err(InvalidResponse(format!("the port of {whose} is 0")));
    }
    Ok(KnownCluster { name, host, port })
}

/// All clusters that make sense; one that does not is left out.
pub(crate) async fn clusters(
    screen: Screen<'_>,
    walk: &mut Walk,
    found: Vec<exports::clusters::KnownCluster>,
) -> Checked<Listed<KnownCluster>> {
    answer::at_most(format_args!("the list of clusters"), &found, limits::CLUSTERS)?;
    let bytes = |one: &exports::clusters::KnownCluster| {
        let pairs = one.extra.iter().map(|pair| pair.key.len() + pair.value.len());
        one.name.len() + one.host.as_ref().map_or(0, String::len) + pairs.sum::<usize>()
    };
    Ok(listed(screen, walk, found, bytes, |one| cluster(screen, one)).await)
}

/// Name servers and domains of a call, all good: one that is not would end in a file that every Pod of the machine reads.
pub(crate) fn resolver(screen: Screen<'_>, resolver: exports::dns::Resolver) -> Checked<Resolver> {
    let exports::dns::Resolver {
        nameservers,
        searches,
        extra: pairs,
    } = resolver;
    answer::at_most(format_args!("the name servers"), &nameservers, limits::NAMESERVERS)?;
    answer::at_most(format_args!("the search domains"), &searches, limits::SEARCHES)?;
    extra(screen, format_args!("the resolver"), pairs)?;
    let server = |text: String| match is_nameserver(&text) {
        true => Ok(text),
        false => Err(InvalidResponse(format!(
            "a name server is {}, which is not an IP address",
            quoted(&text)
        ))),
    };
    let search = |text: String| {
        let text = screen.name(format_args!("a search domain"), text, limits::SEARCH)?;
        match is_domain(&text) {
            true => Ok(text),
            false => Err(InvalidResponse(format!(
                "a search domain is {}, which is not a DNS name",
                quoted(&text)
            ))),
        }
    };
    Ok(Resolver {
        nameservers: nameservers.into_iter().map(server).collect::<Checked<_>>()?,
        searches: searches.into_iter().map(search).collect::<Checked<_>>()?,
    })
}

/// The calling machine. Whether its provider id is one that the provider gives out is checked where its prefixes are known.
pub(crate) fn machine(screen: Screen<'_>, machine: exports::location::Machine) -> Checked<MachineLocation> {
    let node = screen.name(
        format_args!("the Node's name of this machine"),
        machine.node,
        limits::HOST_NAME,
    )?;
    if !is_node_name(&node) {
        return Err(InvalidResponse(format!(
            "this machine's name {} can be no Node's: lower-case letters, digits, - and . are allowed, with a letter or digit at both ends of each part; \
             give the machine another name in its cloud, or a host name to the kubelet",
            quoted(&node)
        )));
    }
    let instance = instance(screen, &node, machine.instance)?;
    let texts = [
        Some(&instance.provider_id),
        instance.zone.as_ref(),
        instance.region.as_ref(),
        instance.instance_type.as_ref(),
    ];
    let texts = texts.into_iter().flatten();
    let addresses = instance.addresses.iter().map(|address| &address.value);
    if let Some(odd) = texts.chain(addresses).find(|text| text.contains(char::is_control)) {
        return Err(InvalidResponse(format!(
            "{} of node {node:?} has control characters",
            quoted(odd)
        )));
    }
    Ok(MachineLocation { node, instance })
}

#[cfg(test)]
mod tests;
