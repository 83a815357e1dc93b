//! For tests: client certificates in files, and a TLS server that requests them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::serve::Listener;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::grants::HttpGrant;
use crate::net::tls::crypto;

/// A certificate, its own authority, with its key.
pub(crate) struct TestIdentity {
    pub certificate: String,
    pub key: String,
    pub der: CertificateDer<'static>,
}

/// The files of one, kept as long as the folder is.
pub(crate) struct IdentityFiles {
    _folder: TempDir,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TestIdentity {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
        }
    }

    pub fn files(&self) -> IdentityFiles {
        let folder = tempfile::tempdir().unwrap();
        let files = IdentityFiles {
            certificate: folder.path().join("client.pem"),
            key: folder.path().join("client.key"),
            _folder: folder,
        };
        files.renew(self);
        files
    }
}

impl IdentityFiles {
    pub fn renew(&self, identity: &TestIdentity) {
        std::fs::write(&self.certificate, &identity.certificate).unwrap();
        std::fs::write(&self.key, &identity.key).unwrap();
    }
}

/// The grant with these files.
pub(crate) fn with_identity(grant: HttpGrant, files: &IdentityFiles) -> HttpGrant {
    HttpGrant {
        client_certificate: Some(files.certificate.clone()),
        client_key: Some(files.key.clone()),
        ..grant
    }
}

/// What a server does about certificates of its clients.
pub(crate) enum Requested<'a> {
    /// It requests one of these, and continues without.
    Optional(&'a [&'a TestIdentity]),
    /// It ends a handshake without one of these.
    Demanded(&'a [&'a TestIdentity]),
}

/// Answers `200 OK` to every request over TLS. Runs until the test's runtime ends.
pub(crate) struct RequestingServer {
    pub port: u16,
    /// Its certificate, by which it is trusted.
    pub authority: tempfile::NamedTempFile,
    presented: Presented,
}

/// The certificate of each handshake that succeeded, in their order.
type Presented = Arc<Mutex<Vec<Option<CertificateDer<'static>>>>>;

impl RequestingServer {
    /// For `localhost`, with these versions of TLS. In 1.2 a client knows of a refusal before it sends a request.
    pub async fn start(requested: Requested<'_>, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let own = TestIdentity::new("server");
        let mut roots = RootCertStore::empty();
        let (accepted, optional) = match requested {
            Requested::Optional(accepted) => (accepted, true),
            Requested::Demanded(accepted) => (accepted, false),
        };
        for identity in accepted {
            roots.add(identity.der.clone()).unwrap();
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(crypto()));
        let verifier = match optional {
            true => verifier.allow_unauthenticated(),
            false => verifier,
        };
        let key = KeyPair::from_pem(&own.key).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(crypto()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![own.der.clone()], private)
            .unwrap();
        let authority = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authority.path(), &own.certificate).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = tcp.local_addr().unwrap().port();
        let presented = Presented::default();
        let listener = RequestingListener {
            tcp,
            tls: TlsAcceptor::from(Arc::new(config)),
            presented: Arc::clone(&presented),
        };
        let router = Router::new().fallback(|| async { "OK" });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            port,
            authority,
            presented,
        }
    }

    pub fn presented(&self) -> Vec<Option<CertificateDer<'static>>> {
        self.presented.lock().unwrap().clone()
    }

    /// The grant of this server, as YAML without what is `more` in it.
    pub fn grant(&self, more: &str) -> String {
        let authority = self.authority.path().display();
        format!(
            "- {{host: localhost, port: {}, allowLoopback: true, ca: '{authority}'{more}}}\n",
            self.port
        )
    }
}

struct RequestingListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
    presented: Presented,
}

impl Listener for RequestingListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, from)) = self.tcp.accept().await else {
                continue;
            };
            if let Ok(stream) = self.tls.accept(stream).await {
                let chain = stream.get_ref().1.peer_certificates();
                let first = chain.and_then(|chain| chain.first().cloned());
                self.presented
                    .lock()
                    .unwrap()
                    .push(first.map(CertificateDer::into_owned));
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
