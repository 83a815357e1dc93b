//! Functions that are alone in their interfaces: arguments, and answers as JSON.

use cloudwit_host::Provider;
use cloudwit_model::{
    CloudError, DnsScrubber as _, EnsuredKey, KnownCluster, KnownClusters as _, Location as _, Resolver, SshKey,
    SshKeys as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::calls::answer;
use crate::commands::calls::function::Function;

/// What they are called with.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SmallInput {
    /// The host name of the calling machine.
    #[arg(id = "call_hostname", long = "hostname", value_name = "NAME")]
    pub hostname: Option<String>,

    /// A name server of a machine. May be given again.
    #[arg(long = "nameserver", value_name = "IP")]
    pub nameservers: Vec<String>,

    /// A search domain of a machine. May be given again.
    #[arg(long = "search", value_name = "DOMAIN")]
    pub searches: Vec<String>,

    /// The user of the key.
    #[arg(id = "call_user", long = "user", value_name = "USER")]
    pub user: Option<String>,

    /// A public key, as a line of authorized_keys.
    #[arg(long, value_name = "TEXT")]
    pub public_key: Option<String>,
}

impl SmallInput {
    /// What a function lacks.
    pub fn mistakes(&self, function: Function) -> Vec<String> {
        let wants = |what: &str| vec![format!("{} needs {what}", function.name())];
        match function {
            Function::Locate if self.hostname.is_none() => wants("a host name; add --hostname=NAME"),
            Function::EnsureSshKey => match self.key() {
                Some(Ok(_)) => Vec::new(),
                Some(Err(wrong)) => vec![wrong],
                None => wants("a user and a key; add --user=USER and --public-key=TEXT"),
            },
            _ => Vec::new(),
        }
    }

    fn key(&self) -> Option<Result<SshKey, String>> {
        let (user, text) = (self.user.as_deref()?, self.public_key.as_deref()?);
        Some(SshKey::new(user, text).map_err(|wrong| wrong.to_string()))
    }

    /// Calls the function; none where it is another.
    pub async fn call(
        &self,
        function: Function,
        provider: &Provider,
        token: Option<&str>,
    ) -> Result<Option<Value>, CloudError> {
        Ok(Some(match function {
            Function::ListClusters => {
                let one = |cluster: &KnownCluster| json!({"name": cluster.name, "controlPlane": cluster.address()});
                provider.known_clusters().await?.iter().map(one).collect()
            }
            Function::ScrubDns => {
                let found = Resolver {
                    nameservers: self.nameservers.clone(),
                    searches: self.searches.clone(),
                };
                let left = provider.scrub_dns(&found).await?;
                json!({"nameservers": left.nameservers, "searches": left.searches})
            }
            Function::Locate => {
                let found = provider.locate(self.hostname.as_deref().unwrap_or_default()).await?;
                let mut object = answer::instance(&found.instance);
                object.insert("nodeName".into(), found.node.into());
                object.into()
            }
            Function::EnsureSshKey => {
                let Some(Ok(key)) = self.key() else { return Ok(None) };
                match provider.ensure_ssh_key(&key, token).await? {
                    EnsuredKey::Added => "added".into(),
                    EnsuredKey::Present => "present".into(),
                }
            }
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_arguments_are_reported() {
        let mistakes = |function| SmallInput::default().mistakes(function).len();
        assert_eq!(mistakes(Function::ListClusters), 0);
        assert_eq!(mistakes(Function::ScrubDns), 0);
        assert_eq!(mistakes(Function::Locate), 1);
        assert_eq!(mistakes(Function::EnsureSshKey), 1);
        let wrong = SmallInput {
            user: Some("core".into()),
            public_key: Some("ssh-dss AAAA".into()),
            ..SmallInput::default()
        };
        assert_eq!(wrong.mistakes(Function::EnsureSshKey).len(), 1);
    }
}
