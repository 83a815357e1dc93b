//! TLS in front of a [`Gate`](crate::gate::Gate), for servers that are asked over HTTPS only.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Accepts connections that speak TLS.
pub(crate) struct Listener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener {
    /// Shows this certificate, whose key this is; both PEM.
    ///
    /// # Errors
    ///
    /// When a file is none of that, or they do not belong together.
    pub(crate) fn new(tcp: TcpListener, certificate: &Path, key: &Path) -> Result<Self> {
        let chain = vec![
            CertificateDer::from_pem_file(certificate).with_context(|| format!("reading {}", certificate.display()))?,
        ];
        let secret = PrivateKeyDer::from_pem_file(key).with_context(|| format!("reading {}", key.display()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .with_context(|| format!("using {} with {}", certificate.display(), key.display()))?;
        Ok(Self {
            tcp,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = axum::serve::Listener::accept(&mut self.tcp).await;
            // One that does not trust us hangs up; the next may.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// A certificate in DER, from a PEM file.
///
/// # Errors
///
/// When it is none.
pub(crate) fn certificate(file: &Path) -> Result<Vec<u8>> {
    let read = CertificateDer::from_pem_file(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(read.to_vec())
}
