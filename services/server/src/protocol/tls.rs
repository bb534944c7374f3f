//! TLS: files of certificates and keys, and the handshake with a client.
//!
//! Versions 1.2 and 1.3, by rustls with the cryptography of ring.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::error::{Error, Result};
use crate::options::Tls;

/// Reads the files.
///
/// # Errors
/// [`Error::Tls`] with the file that cannot be used.
pub(crate) fn load(files: &Tls) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(&files.key, "a private key in PEM", error))?;
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, "of use to the cryptography", error))?;
    let clients = match &files.client_ca {
        None => versions.with_no_client_auth(),
        Some(file) => {
            let expected = "certificates in PEM of who signs those of clients";
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| wrong(file, expected, error))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            versions
                .with_client_cert_verifier(verifier.map_err(|error| wrong(file, expected, error))?)
        }
    };
    let config = clients.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InvalidCertificate(_) => {
            wrong(&files.certificate, "one or more certificates in PEM", error)
        }
        error => wrong(&files.key, "the key of the certificate (--tls-certificate)", error),
    })?;
    Ok(Arc::new(config))
}

/// The certificates of a file, which must have at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let expected = "one or more certificates in PEM";
    let found = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(file, expected, error))?;
    match found.is_empty() {
        true => Err(wrong(file, expected, "there is none in it")),
        false => Ok(found),
    }
}

fn wrong(file: &Path, expected: &'static str, found: impl Display) -> Error {
    Error::Tls { file: file.into(), expected, found: found.to_string() }
}

/// The TLS handshake with a client; `None` if it fails or takes longer than `longest`.
pub(crate) async fn shake_hands(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    longest: Duration,
) -> Option<TlsStream<TcpStream>> {
    let accepting = TlsAcceptor::from(Arc::clone(config)).accept(stream);
    tokio::time::timeout(longest, accepting).await.ok()?.ok()
}
