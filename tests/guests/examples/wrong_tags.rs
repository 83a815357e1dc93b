//! Tags machines wrongly, as a tag says: answers about fewer, asks to be called again at an impossible time, traps.

use cloudwit_guest_sdk::prelude::*;

struct Guest;

impl Provider for Guest {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new(module_path!(), env!("CARGO_PKG_VERSION")).tagging_label("k8s.io/cloud-provider-wrong")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Tagging for Guest {
    fn tag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        match tags[0].key.as_str() {
            "fewer" => Ok(nodes.iter().skip(1).map(|_| Ok(())).collect()),
            "long" => {
                let failed = |number| {
                    Err(Failure::pending(
                        std::time::Duration::ZERO,
                        "t".repeat(5000 * number),
                        "later",
                    ))
                };
                Ok((0..nodes.len()).map(failed).collect())
            }
            "traps" => panic!("as it was told"),
            _ => Err(Failure::denied("no rights")),
        }
    }

    fn untag(&self, nodes: &[NodeRef], _: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        Ok(nodes.iter().map(|_| Ok(())).collect())
    }
}

register_provider!(Guest: Tagging);
