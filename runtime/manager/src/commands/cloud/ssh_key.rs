//! `cloudwit cloud ssh-key add`: a key for all machines, once.

use std::path::PathBuf;
use std::process::ExitCode;

use cloudwit_model::{EnsuredKey, SshKeys as _};

use crate::commands::cloud::session::{self, SessionArgs};
use crate::ssh_keys::key_file::KeyFile;

/// Arguments of `cloud ssh-key add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// The user on the machines whom the key lets in.
    #[arg(id = "ssh_key_user", long = "user", value_name = "USER")]
    user: String,

    /// The key. Of a private key FILE the public half FILE.pub is read, and FILE itself never; a file whose name ends with .pub is the public half.
    #[arg(id = "ssh_key_file", long = "keyfile", value_name = "FILE")]
    file: PathBuf,

    /// Say what would be done, and change nothing.
    #[arg(id = "ssh_key_dry_run", long = "dry-run")]
    dry_run: bool,
}

/// Calls, and prints the result.
pub async fn run(args: AddArgs) -> anyhow::Result<ExitCode> {
    let key = KeyFile::new(&args.user, &args.file).read().await?;
    let session = match session::begin(&args.session, ("ssh-keys", |has| has.ssh_keys)).await? {
        Ok(session) => session,
        Err(ended) => return Ok(ended.exit()),
    };
    let what = format!("the {} key of {}", key.algorithm(), key.user());
    if args.dry_run {
        println!("dry run: {what} would be given to all machines that do not have it");
        return Ok(ExitCode::SUCCESS);
    }
    let asked = session.ask("giving all machines the key", |token| {
        let (provider, key) = (&session.provider, &key);
        Box::pin(async move { provider.ensure_ssh_key(key, token.as_deref()).await })
    });
    match asked.await {
        Ok(EnsuredKey::Added) => println!("{what} was given to all machines"),
        Ok(EnsuredKey::Present) => println!("{what} is on all machines already"),
        Err(ended) => return Ok(ended.exit()),
    }
    Ok(ExitCode::SUCCESS)
}
