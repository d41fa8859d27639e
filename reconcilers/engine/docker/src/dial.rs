//! A connection of its own to the engine, for what the client library does not leave alone.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use engine::{EngineError, EngineStream};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncRead;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::connect::{DockerHost, Scheme, TlsFiles};
use super::ssh::{Destination, Dialled};

/// The port of an engine that is named without one.
const PORT: u16 = 2375;

/// Bytes from and to the engine. No trait object: the compiler does not see that a future with one is `Send`.
pub(super) type Wire =
    Either<Either<UnixStream, Dialled>, Either<TcpStream, Box<TlsStream<TcpStream>>>>;

/// Connects to the engine.
///
/// # Errors
/// [`EngineError::Unavailable`].
pub(super) async fn dial_engine(
    (host, tls): (DockerHost, Option<TlsFiles>),
) -> Result<Wire, EngineError> {
    let address = host.text;
    match (host.scheme, tls) {
        (Scheme::Unix, _) => {
            let stream = UnixStream::connect(address).await.map_err(unavailable)?;
            Ok(Either::Left(Either::Left(stream)))
        }
        (Scheme::Ssh, _) => {
            let destination = Destination::parse(&address)
                .ok_or_else(|| EngineError::Unavailable("not an SSH destination".into()))?;
            let dialled = Dialled::dial_host(destination.command(OsStr::new("ssh")));
            Ok(Either::Left(Either::Right(dialled.map_err(unavailable)?)))
        }
        (Scheme::Plain, None) => Ok(Either::Right(Either::Left(connect_tcp(address).await?))),
        (Scheme::Plain | Scheme::Tls, Some(files)) => {
            let config = tokio::task::spawn_blocking(move || read_certificates(&files));
            let config = config.await.map_err(unavailable)??;
            let host = address
                .rsplit_once(':')
                .map_or(address.as_str(), |(host, _)| host);
            let host = host.trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(host).map_err(unavailable)?;
            let stream = connect_tcp(address).await?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
            let stream = stream.await.map_err(unavailable)?;
            Ok(Either::Right(Either::Right(Box::new(stream))))
        }
        (Scheme::Tls, None) => Err(EngineError::Unavailable(
            "an engine behind https:// needs certificates".into(),
        )),
    }
}

async fn connect_tcp(mut address: String) -> Result<TcpStream, EngineError> {
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !has_port {
        address += &format!(":{PORT}");
    }
    TcpStream::connect(address).await.map_err(unavailable)
}

fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> EngineError {
    EngineError::Unavailable(error.into())
}

/// Reads the certificates. The authority of `files` is the only one that is trusted.
fn read_certificates(files: &TlsFiles) -> Result<ClientConfig, EngineError> {
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, EngineError> {
        let read = CertificateDer::pem_file_iter(path).map_err(unavailable)?;
        read.collect::<Result<_, _>>().map_err(unavailable)
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&files.ca)?);
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unavailable)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unavailable)?
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(&files.cert)?, key)
        .map_err(unavailable)
}

/// The bytes that come, piece by piece.
pub(super) fn bytes_of(
    reader: impl AsyncRead + Send + 'static,
    most: usize,
) -> EngineStream<bytes::Bytes> {
    use futures::StreamExt;
    let pieces = tokio_util::io::ReaderStream::with_capacity(reader, most);
    pieces.map(|piece| piece.map_err(unavailable)).boxed()
}
