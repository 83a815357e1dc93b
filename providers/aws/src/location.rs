//! The calling instance: its identity by its metadata service.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;

use crate::config::Config;
use crate::{Aws, metadata_service};

/// Where facts about the instance begin.
const FACTS: &str = "/latest/meta-data/";

impl Location for Aws {
    fn locate(config: Config, context: Context, _: &str) -> Result<MachineLocation, Failure> {
        let http = metadata_service::session(context, config.credentials.metadata())?;
        let optional = |name: &str| -> Result<Option<String>, Failure> {
            let answer = http.get(&format!("{FACTS}{name}")).send_optional()?;
            Ok(answer
                .map(|answer| answer.text().trim().to_owned())
                .filter(|text| !text.is_empty()))
        };
        let fact = |name: &str| {
            optional(name)?.ok_or_else(|| Failure::other(format!("the metadata service does not tell {name}")))
        };
        let (id, zone) = (fact("instance-id")?, fact("placement/availability-zone")?);
        // Several domains of the DHCP options come as several names.
        let names = fact("local-hostname")?;
        let name = names.split_ascii_whitespace().next().unwrap_or_default().to_owned();
        let mut instance = Instance::new(format!("aws:///{zone}/{id}"));
        instance.zone = Some(zone);
        instance.region = Some(fact("placement/region")?);
        instance.instance_type = optional("instance-type")?;
        let internal = optional("local-ipv4")?;
        let external = optional("public-ipv4")?;
        let addresses = [(AddressKind::InternalIp, internal), (AddressKind::ExternalIp, external)];
        let addresses = addresses
            .into_iter()
            .filter_map(|(kind, text)| ip_address(kind, &text?));
        instance.addresses = addresses.collect();
        instance
            .addresses
            .push(Address::new(AddressKind::InternalDns, name.clone()));
        instance
            .addresses
            .push(Address::new(AddressKind::Hostname, name.clone()));
        Ok(MachineLocation::new(name, instance))
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

    use super::*;

    const METADATA: &str = "http://169.254.169.254";

    /// A machine whose facts are moto's, but for what is public.
    fn machine(host: &FakeHost) {
        host.config("[Global]\nRegion = us-east-1\n");
        host.serve(|request| {
            if request.url == format!("{METADATA}/latest/api/token") {
                assert_eq!(request.header("x-amz-ec2-metadata-token-ttl-seconds"), Some("21600"));
                return FakeAnswer::new(200, &[], "session");
            }
            assert_eq!(request.header("x-aws-ec2-metadata-token"), Some("session"));
            let text = match request
                .url
                .strip_prefix("http://169.254.169.254/latest/meta-data/")
                .unwrap()
            {
                "instance-id" => "i-0123456789abcdef0",
                "placement/availability-zone" => "us-east-1a",
                "placement/region" => "us-east-1",
                "local-hostname" => "ip-10-0-0-1.example.com ip-10-0-0-1.example.org",
                "instance-type" => "m5.large",
                "local-ipv4" => "10.0.0.1",
                "public-ipv4" => return FakeAnswer::new(404, &[], "no"),
                other => panic!("{other}"),
            };
            FakeAnswer::new(200, &[], text)
        });
    }

    #[test]
    fn instance_is_located_without_credentials() {
        let host = FakeHost::new();
        host.grants(METADATA, &["GET", "PUT"]);
        machine(&host);
        let found = host.locate::<Aws>("whatever").unwrap();
        assert_eq!(found.node, "ip-10-0-0-1.example.com");
        assert_eq!(found.instance.provider_id, "aws:///us-east-1a/i-0123456789abcdef0");
        assert_eq!(
            (found.instance.zone.as_deref(), found.instance.region.as_deref()),
            (Some("us-east-1a"), Some("us-east-1"))
        );
        let kinds: Vec<_> = found.instance.addresses.iter().map(|address| address.kind).collect();
        assert_eq!(
            kinds,
            [AddressKind::InternalIp, AddressKind::InternalDns, AddressKind::Hostname]
        );
    }

    #[test]
    fn metadata_service_that_is_not_granted_is_denied() {
        let host = FakeHost::new();
        host.config("[Global]\nRegion = us-east-1\n")
            .grants(METADATA, &["GET", "PUT"]);
        host.expect("PUT", &format!("{METADATA}/latest/api/token")).is_refused();
        let denied = host.locate::<Aws>("whatever").unwrap_err();
        assert_eq!(denied.kind, FailureKind::Denied);
        assert!(denied.message().contains("metadata service"), "{denied:?}");
    }
}
