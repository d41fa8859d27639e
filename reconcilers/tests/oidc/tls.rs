//! Providers that speak TLS.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use reconcilers::drivers::oidc::{IdentityProvider, ProviderError, ProviderSettings};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::driver;
use super::provider::{Op, ok};

/// An authority in PEM, and a server's configuration with a certificate of it.
pub fn certified(expired: bool) -> (String, Arc<ServerConfig>) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = parameters.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(parameters, key);
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if expired {
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, &issuer).unwrap().pem();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    (authority, Arc::new(config))
}

/// Speaks TLS in front of a server that does not. Lives as long as the runtime.
pub async fn in_front_of(address: &str, config: Arc<ServerConfig>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = address.to_owned();
    let tasks = TaskTracker::new();
    tasks.clone().spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, address) = (TlsAcceptor::from(config.clone()), address.clone());
            tasks.spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let mut server = TcpStream::connect(address).await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                }
            });
        }
    });
    port
}

/// A provider with TLS, and how it is asked.
async fn provider(expired: bool) -> (Op, ProviderSettings) {
    let op = Op::new().await;
    let (authority, config) = certified(expired);
    let port = in_front_of(&op.server.address, config).await;
    let issuer = format!("https://localhost:{port}");
    op.tell(|says| {
        says.more = json!({
            "issuer": issuer, "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/authorize"), "token_endpoint": format!("{issuer}/token"),
        });
    });
    let settings = ProviderSettings {
        issuer,
        ca_certificate: Some(authority),
        ..op.settings()
    };
    (op, settings)
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_it_is_set() {
    let (_op, settings) = provider(false).await;
    driver().begin(&settings, false).await.unwrap();
    let without = ProviderSettings {
        ca_certificate: None,
        ..settings.clone()
    };
    let failed = driver().begin(&without, false).await.unwrap_err();
    assert!(
        matches!(failed, ProviderError::Certificate(_)),
        "{failed:?}"
    );
    assert!(failed.to_string().contains("set oidc.ca_certificate"));
    let (other, _) = certified(false);
    let wrong = ProviderSettings {
        ca_certificate: Some(other),
        ..settings.clone()
    };
    let failed = driver().begin(&wrong, false).await.unwrap_err();
    assert!(
        matches!(failed, ProviderError::Certificate(_)),
        "{failed:?}"
    );
    let none = ProviderSettings {
        ca_certificate: Some(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----".to_owned(),
        ),
        ..settings
    };
    let failed = driver().begin(&none, false).await.unwrap_err();
    assert!(matches!(failed, ProviderError::Authority(_)), "{failed:?}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_none() {
    let (_op, settings) = provider(true).await;
    let failed = driver().begin(&settings, false).await.unwrap_err();
    assert!(
        matches!(failed, ProviderError::Certificate(_)),
        "{failed:?}"
    );
    assert!(
        failed.to_string().to_lowercase().contains("expired"),
        "{failed}"
    );
}

#[tokio::test]
async fn a_provider_with_tls_names_no_address_without() {
    for name in ["jwks_uri", "authorization_endpoint", "token_endpoint"] {
        let (op, settings) = provider(false).await;
        let plain = format!("{}/plain", op.issuer());
        op.tell(|says| {
            says.more[name] = json!(plain);
            says.token = ok(&json!({}));
        });
        let driver = driver();
        let failed = match driver.begin(&settings, false).await {
            Err(failed) => failed,
            Ok((_, pending)) => {
                let returned = super::returned();
                let finished = driver.finish(&settings, &pending, &returned).await;
                finished.unwrap_err()
            }
        };
        assert!(
            matches!(failed, ProviderError::Plain(_)),
            "{name}: {failed:?}"
        );
        assert_eq!(op.asked("/plain"), 0);
    }
}
