//! Uses the secret `volume/passphrase` as the parameters of a new volume say, and its failure says what came of it:
//!
//! - `put: URL`: sends its placeholder there, and the failure has the answer;
//! - `kept: URL`: sends the placeholder there that an earlier call kept;
//! - `sign: TEXT`: the failure has the HMAC of the text under it;
//! - `say: how`: reveals it, and says it in the log, on both standard streams and in the failure; as id of the volume where `how` is `id`.
//!
//! Looking a volume up requests a placeholder for it, too.

use cloudwit_guest_sdk::keys::Hash;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::warn;

const GIB: u64 = 1 << 30;

struct Uses {
    context: Context,
}

impl Provider for Uses {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        let uses = [SecretUse::Placeholder, SecretUse::Hmac];
        Description::new("uses", "0.1.0")
            .secret(SecretWish::new(secret_name("passphrase"), &uses, "of encrypted volumes").optional())
    }

    fn new(_: NoConfig, context: Context) -> Result<Self, Failure> {
        Ok(Self { context })
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Uses {
    fn put(&self, url: &str, body: &str) -> Result<String, Failure> {
        let response = self.context.http().put(url).body("text/plain", body).send_any()?;
        Ok(format!("{} {}", response.status, response.text()))
    }

    fn say(&self, how: &str) -> Result<Volume, Failure> {
        let secret = self.context.keys().reveal(&secret_name("passphrase"))?;
        let secret = String::from_utf8_lossy(&secret).into_owned();
        println!("out {secret}");
        eprintln!("err {secret}");
        warn!(secret = secret, "the log says {secret}");
        match how {
            "id" => Ok(Volume::new(secret, GIB)),
            _ => Err(Failure::other(format!("it is {secret}"))),
        }
    }
}

impl Volumes for Uses {
    fn volume_driver(_: Option<&NoConfig>) -> Driver {
        Driver::new("uses.csi.test", GIB, 16 * GIB, GIB)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let missing = |node: &NodeRef| Err(Failure::not_found(node.name.clone()));
        Ok(nodes.iter().map(missing).collect())
    }

    fn get_volumes(&self, _: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        self.context.keys().placeholder(&secret_name("passphrase"))?;
        Ok(Vec::new())
    }

    fn create_volume(&self, new: &NewVolume, _: Option<&str>) -> Result<Volume, Failure> {
        let (keys, name) = (self.context.keys(), secret_name("passphrase"));
        let said = |key: &str| parameter(&new.parameters, key);
        let outcome = if let Some(url) = said("put") {
            let placeholder = keys.placeholder(&name)?;
            self.context
                .state()
                .put("kept", placeholder.as_str(), Keep::WHILE_LOADED);
            self.put(url, placeholder.as_str())?
        } else if let Some(url) = said("kept") {
            let kept = self.context.state().get::<String>("kept");
            self.put(url, &kept.map(|kept| kept.value).unwrap_or_default())?
        } else if let Some(text) = said("sign") {
            let mac = keys.open(&name)?.hmac(Hash::Sha256, text.as_bytes())?;
            mac.iter().map(|byte| format!("{byte:02x}")).collect()
        } else {
            return self.say(said("say").unwrap_or_default());
        };
        Err(Failure::other(outcome))
    }

    fn delete_volume(&self, _: &str, _: Option<&str>) -> Result<(), Failure> {
        Ok(())
    }

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

register_provider!(Uses: Volumes);
