//! `cloudwit config check`: validates the configuration file without starting anything.
//!
//! ```text
//!   file::read   keys, ranges, routing, named files, with line and path    same as at start
//!   ComponentFile       each component is one, and not too large                  same as at start
//!   summary             what the file comes to: providers, grants, routing
//! ```
//!
//! Secrets are not read, so that the check also runs where they are not.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use cloudwit_host::ComponentFile;
use cloudwit_host::grants::HttpGrant;

use crate::config::file::{self, Common, Configured, Routing};
use crate::config::mistakes::Mistakes;
use crate::config::schema;
use crate::providers::component::Component;
use crate::providers::swap::Source;

/// What is done with a configuration file.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// Say all that is wrong with a configuration file, as the start would, or in short what it comes to.
    ///
    /// Reads the file and the files it names, except secrets. Touches neither cluster nor cloud. The provider's own check of its cloud config is
    /// made by `cloudwit install`, and at start.
    #[command(
        after_help = "Exit codes:\n  0  nothing is wrong\n  1  mistakes; all are reported, with file, line and path\n  \
                            2  the command line is invalid\n\n\
                            Example:\n  cloudwit config check cloudwit.yaml --provider-dir=providers"
    )]
    Check(CheckArgs),

    /// Print the JSON schema of the configuration file, for editors.
    ///
    /// Save it beside the file and begin the file with `# yaml-language-server: $schema=cloudwit-configuration.schema.json`: the editor then knows
    /// each key, its meaning and its default.
    #[command(after_help = "Exit codes:\n  0  always\n\n\
                            Example:\n  cloudwit config schema > cloudwit-configuration.schema.json")]
    Schema,
}

/// Arguments of `config check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The configuration (CloudwitConfiguration), as --config takes it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Where components are looked for that are not beside the file.
    // A name of its own: the process has a flag of this name too.
    #[arg(id = "check_provider_dir", long = "provider-dir", value_name = "DIR", default_value = crate::flags::groups::provider::PROVIDER_DIR)]
    pub provider_dir: PathBuf,
}

/// Prints what was requested.
pub fn run(command: &ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Schema => {
            println!("{:#}", schema::configuration());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let common = Common {
        provider_dir: &args.provider_dir,
        cluster_name: "",
        cluster_cidrs: &[],
    };
    let wrong = |mistakes| Mistakes::of(mistakes, " in the configuration");
    let configured = file::read(&args.file, common).map_err(wrong)?;
    let components = components(&configured).map_err(wrong)?;
    print!(
        "{}: nothing is wrong.\n{}",
        args.file.display(),
        summary(&configured, &components)
    );
    Ok(ExitCode::SUCCESS)
}

/// The components that are files here; none for one in a registry, which is not called.
fn components(configured: &Configured) -> Result<Vec<Option<ComponentFile>>, Vec<String>> {
    let (mut files, mut mistakes) = (Vec::new(), Vec::new());
    for source in &configured.providers {
        let Component::File(file) = &source.component else {
            files.push(None);
            continue;
        };
        match ComponentFile::read(file, &source.settings.limits) {
            Ok(file) => files.push(Some(file)),
            Err(error) => mistakes.push(format!("{}.component: {error}", source.config_origin)),
        }
    }
    if mistakes.is_empty() { Ok(files) } else { Err(mistakes) }
}

fn summary(configured: &Configured, components: &[Option<ComponentFile>]) -> String {
    let mut text = String::new();
    for (source, component) in configured.providers.iter().zip(components) {
        provider(&mut text, source, component.as_ref());
    }
    routing(&mut text, &configured.routing);
    text
}

fn provider(text: &mut String, source: &Source, file: Option<&ComponentFile>) {
    let grants = &source.settings.grants;
    let (name, component) = (&source.settings.name, &source.component);
    let _ = writeln!(text, "\nProvider {name}");
    let _ = match (file, component) {
        (Some(file), _) => writeln!(
            text,
            "  component: {component}, {} bytes, sha256:{}",
            file.file_bytes, file.digest
        ),
        (None, Component::Pinned(pinned)) if !pinned.keys.is_empty() => {
            let keys: Vec<String> = pinned.keys.iter().map(|file| file.display().to_string()).collect();
            writeln!(
                text,
                "  component: {component} (not pulled), signed by a key of {}",
                keys.join(", ")
            )
        }
        (None, _) => writeln!(text, "  component: {component} (not pulled), of any signer"),
    };
    if grants.http.is_empty() {
        let _ = writeln!(text, "  may reach nothing");
    }
    for grant in &grants.http {
        let _ = writeln!(text, "  may reach {}", destination(grant));
    }
    for secret in &grants.secrets {
        let uses: Vec<&str> = secret.uses.iter().map(|one| one.as_str()).collect();
        let from = match secret.volume_key() {
            Some(_) => "requests about volumes".to_owned(),
            None => secret.file.display().to_string(),
        };
        let name = &secret.name;
        let _ = writeln!(text, "  has the secret {name} from {from}, for {}", uses.join(", "));
    }
    for (granted, what) in [(grants.cluster.nodes, "Nodes"), (grants.cluster.services, "Services")] {
        if granted {
            let _ = writeln!(text, "  may see all {what}");
        }
    }
}

/// `https://api.example.com:8443 with GET, POST, by the client certificate client.pem`.
fn destination(grant: &HttpGrant) -> String {
    let port = match grant.port {
        Some(port) => format!(":{port}"),
        None => String::new(),
    };
    let (scheme, host, methods) = (grant.scheme.as_str(), &grant.host, grant.methods.join(", "));
    let certificate = match &grant.client_certificate {
        Some(file) => format!(", by the client certificate {}", file.display()),
        None => String::new(),
    };
    format!("{scheme}://{host}{port} with {methods}{certificate}")
}

fn routing(text: &mut String, routing: &Routing) {
    let _ = writeln!(text, "\nRouting");
    for (provider, prefixes) in &routing.prefixes {
        let _ = writeln!(
            text,
            "  Nodes with ids that begin with {}: {provider}",
            prefixes.join(", ")
        );
    }
    for (class, provider) in &routing.services.classes {
        let _ = writeln!(text, "  Services of class {class}: {provider}");
    }
    for ((key, value), provider) in &routing.services.annotations {
        let _ = writeln!(text, "  Services annotated {key}={value}: {provider}");
    }
    let _ = writeln!(text, "  all that names no other: {}", routing.default);
}
