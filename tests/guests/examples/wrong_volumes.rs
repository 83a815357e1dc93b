//! Keeps none of the promises about volumes that a host cannot insist on, and some that it can.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

const GIB: u64 = 1 << 30;

struct Wrong {
    context: Context,
}

impl Provider for Wrong {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("wrong", "0.1.0")
    }

    fn new(_: NoConfig, context: Context) -> Result<Self, Failure> {
        Ok(Self { context })
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Volumes for Wrong {
    fn volume_driver(_: Option<&NoConfig>) -> Driver {
        Driver::new("wrong.csi.test", GIB, 16 * GIB, GIB).feature(Feature::ReadOnly)
    }

    /// Nodes that it does not know have an id, too.
    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let node = |node: &NodeRef| {
            Ok(VolumeNode {
                id: node.name.clone(),
                topology: Topology { segments: Vec::new() },
                max_volumes: None,
            })
        };
        Ok(nodes.iter().map(node).collect())
    }

    /// Every id is found; those that begin with `other` as another one, and none where the last is `short`.
    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        if ids.last().is_some_and(|id| id == "short") {
            return Ok(Vec::new());
        }
        let found = |id: &String| match id.strip_prefix("other") {
            Some(_) => Volume::new("another", GIB),
            None => Volume::new(id, GIB),
        };
        Ok(ids.iter().map(|id| Ok(Some(found(id)))).collect())
    }

    /// A new one each time; of half the size where the name says so.
    fn create_volume(&self, new: &NewVolume, _: Option<&str>) -> Result<Volume, Failure> {
        let part = if new.name == "half" { 2 } else { 1 };
        Ok(Volume::new(self.context.call_id(), new.size.at_least / part))
    }

    /// Also what is attached.
    fn delete_volume(&self, _: &str, _: Option<&str>) -> Result<(), Failure> {
        Ok(())
    }

    /// Also what does not exist.
    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let attached = |_: &NewAttachment| {
            Ok(Attached {
                context: Vec::new(),
                devices: Vec::new(),
            })
        };
        Ok(attachments.iter().map(attached).collect())
    }

    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        Ok(detachments.iter().map(|_| Ok(())).collect())
    }
}

register_provider!(Wrong: Volumes);
