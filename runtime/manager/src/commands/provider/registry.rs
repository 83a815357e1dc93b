//! `cloudwit provider pin`, `push` and `sign`: components in OCI registries.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use cloudwit_host::{ComponentFile, Grants, Host, Limits, ProviderSettings};
use prometheus_client::registry::Registry;

use crate::commands::cloud::session::told;
use crate::commands::cluster::Cluster;
use crate::providers::host;
use crate::registry::access::RegistryAccess;
use crate::registry::publish::{self, Interfaces};
use crate::registry::reference::{NoReference, Reference};
use crate::registry::signatures::keys::PrivateKey;

/// Exit codes and an example of `provider pin`.
pub const PIN_HELP: &str = "Exit codes:\n  0  the line is on standard output\n  1  the registry does not have it, or it is not a component\n  \
                            2  the command line is invalid\n\n\
                            Example:\n  cloudwit provider pin registry.example.com/cloudwit/sim:1.0";

/// Exit codes and an example of `provider push`.
pub const PUSH_HELP: &str = "Exit codes:\n  0  it is in the registry; the line with its digest is on standard output\n  1  it is not a provider that this Cloudwit can run, \
                             or the registry does not take it\n  2  the command line is invalid\n\n\
                             Example:\n  cloudwit provider push sim.wasm registry.example.com/cloudwit/sim:1.0 --docker-config=$HOME/.docker/config.json";

/// Exit codes and an example of `provider sign`.
pub const SIGN_HELP: &str = "Exit codes:\n  0  it is signed; the line with its digest is on standard output\n  1  it is not: the key cannot be used, or the registry does not \
                             have the component or take the signature\n  2  the command line is invalid\n\n\
                             Example:\n  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem\n  \
                             openssl pkey -in key.pem -pubout -out key.pub\n  \
                             cloudwit provider sign registry.example.com/cloudwit/sim@sha256:DIGEST --key=key.pem";

/// How the registry is reached.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Registry")]
pub struct AccessArgs {
    /// PEM file of the authorities that are trusted, in place of the public ones.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Docker config file with credentials, as `docker login` writes it. Credential helpers are not used. Without it the registry is called anonymously.
    #[arg(long, value_name = "FILE")]
    docker_config: Option<PathBuf>,

    /// Speak plain HTTP, as registries on this machine are spoken to without it.
    #[arg(long)]
    plain_http: bool,
}

impl AccessArgs {
    fn access(self) -> RegistryAccess {
        RegistryAccess {
            ca: self.ca,
            docker_config: self.docker_config,
            plain_http: self.plain_http,
        }
    }
}

/// Arguments of `provider pin`.
#[derive(Debug, clap::Args)]
pub struct PinArgs {
    /// The component, [oci://]HOST[:PORT]/REPOSITORY[:TAG].
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,

    #[command(flatten)]
    access: AccessArgs,
}

/// Arguments of `provider push`.
#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// The component, NAME.wasm or NAME.wasm.zst. It is pushed unpacked, as others expect it.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to, [oci://]HOST[:PORT]/REPOSITORY[:TAG]. The tag is `latest` when left out.
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,

    #[command(flatten)]
    access: AccessArgs,
}

/// Arguments of `provider sign`.
#[derive(Debug, clap::Args)]
pub struct SignArgs {
    /// The component, [oci://]HOST[:PORT]/REPOSITORY@sha256:DIGEST, or with a tag, which is resolved first.
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,

    /// PEM file with the private key: ECDSA on P-256 in PKCS #8, not encrypted.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    #[command(flatten)]
    access: AccessArgs,
}

fn reference(text: &str) -> Result<Reference, NoReference> {
    Reference::parse(text)
}

/// Prints the line for the configuration that names the component by its digest.
pub async fn pin(args: PinArgs) -> anyhow::Result<ExitCode> {
    let (reference, access) = (args.reference, args.access.access());
    let digest = told("querying the registry", publish::pin(&reference, &access)).await;
    let digest = digest.with_context(|| format!("{reference} cannot be pinned"))?;
    println!("component: {}", reference.at(digest));
    Ok(ExitCode::SUCCESS)
}

/// Pushes a component that loads, and prints that line.
pub async fn push(args: PushArgs) -> anyhow::Result<ExitCode> {
    let PushArgs {
        file,
        reference,
        access,
    } = args;
    if reference.digest.is_some() {
        bail!("{reference} has a digest, which follows from the component; give a tag");
    }
    // What an operator allows is not known here.
    let limits = Limits {
        component_bytes: Limits::MOST_COMPONENT_BYTES,
        ..Limits::default()
    };
    let component = ComponentFile::read(&file, &limits)?;
    let settings = ProviderSettings {
        name: "pushed".into(),
        config_text: String::new(),
        values: Vec::new(),
        cluster_name: "kubernetes".into(),
        cluster_cidrs: Vec::new(),
        grants: Grants::default(),
        limits,
    };
    let loader = Host::new(host::on_this_system(None), &mut Registry::default())?;
    let no_cluster = Arc::new(Cluster::default()).outside();
    let provider = told("loading the component", loader.load(&file, settings, no_cluster)).await?;
    let (exports, imports) = provider.interfaces();
    let (access, interfaces) = (access.access(), Interfaces { exports, imports });
    let doing = format!("pushing {} bytes", component.bytes);
    let pushed = publish::push(component.into_unpacked(), &interfaces, &reference, &access);
    let digest = told(&doing, pushed).await;
    let digest = digest.with_context(|| format!("{} is not pushed to {reference}", file.display()))?;
    println!("component: {}", reference.at(digest));
    Ok(ExitCode::SUCCESS)
}

/// Signs a component in its registry, and prints that line.
pub async fn sign(args: SignArgs) -> anyhow::Result<ExitCode> {
    let (reference, access) = (args.reference, args.access.access());
    let named = || format!("--key={}", args.key.display());
    let pem = std::fs::read(&args.key).with_context(named)?;
    let key = PrivateKey::from_pem(&pem).with_context(named)?;
    let digest = told("signing in the registry", publish::sign(&reference, &access, &key)).await;
    let digest = digest.with_context(|| format!("{reference} is not signed"))?;
    println!("component: {}", reference.at(digest));
    Ok(ExitCode::SUCCESS)
}
