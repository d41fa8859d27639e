//! A server that is reached over the network.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Certificate;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::cli::{Failure, Result, failed};

/// Longest wait for a connection to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The server, and with what commands act there.
#[derive(Clone)]
pub struct Remote {
    /// Name of the context; `None` when the environment names the server.
    pub name: Option<String>,
    /// Its address, without a slash at its end.
    pub url: String,
    /// Authorities that are trusted in place of the system's, in PEM.
    pub ca: Option<String>,
    /// With what commands act; `None` before the sign-in.
    pub credential: Option<Credential>,
}

/// With what commands act on a server.
#[derive(Clone)]
pub enum Credential {
    /// A superadmin's session: the value of its cookie.
    Session {
        /// The superadmin.
        username: String,
        /// The cookie.
        cookie: SecretString,
    },
    /// An API token.
    Token(SecretString),
}

/// A context as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Remote {
    /// The server at an address, before the sign-in.
    ///
    /// # Errors
    /// When the address is not one of an Agentyard server.
    pub fn new(name: Option<String>, url: &str, ca: Option<String>) -> Result<Self> {
        Ok(Self {
            name,
            url: read_url(url).map_err(Failure::Usage)?,
            ca,
            credential: None,
        })
    }

    pub(super) fn from_stored(name: &str, stored: Stored) -> Result<Self> {
        let mut remote = Self::new(Some(name.to_owned()), &stored.url, stored.ca)?;
        remote.credential = match (stored.username, stored.session, stored.token) {
            (_, None, Some(token)) => Some(Credential::Token(token.into())),
            (Some(username), Some(cookie), None) => Some(Credential::Session {
                username,
                cookie: cookie.into(),
            }),
            _ => None,
        };
        Ok(remote)
    }

    pub(super) fn to_stored(&self) -> Stored {
        let (username, session, token) = match &self.credential {
            None => (None, None, None),
            Some(Credential::Session { username, cookie }) => (
                Some(username.clone()),
                Some(cookie.expose_secret().to_owned()),
                None,
            ),
            Some(Credential::Token(token)) => (None, None, Some(token.expose_secret().to_owned())),
        };
        Stored {
            url: self.url.clone(),
            ca: self.ca.clone(),
            username,
            session,
            token,
        }
    }

    /// Name of the account, or kind of the credential, for lists.
    pub(super) fn identity(&self) -> String {
        match &self.credential {
            None => "none".to_owned(),
            Some(Credential::Session { username, .. }) => username.clone(),
            Some(Credential::Token(_)) => "API token".to_owned(),
        }
    }

    /// Its name in messages.
    pub fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("{} (context {name})", self.url),
            None => format!("{} (AGENTYARD_URL)", self.url),
        }
    }

    /// A client for it.
    ///
    /// # Errors
    /// When the certificates of its authorities cannot be used.
    pub fn client(&self) -> Result<reqwest::Client> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("agentyard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        // A proxy would see the password in the clear; this address is on this machine.
        if self.url.starts_with("http://") {
            builder = builder.no_proxy();
        }
        if let Some(pem) = &self.ca {
            builder = builder.tls_certs_only(authorities(pem)?);
        }
        builder.build().map_err(failed)
    }
}

/// The certificates of a PEM file.
pub(super) fn authorities(pem: &str) -> Result<Vec<Certificate>> {
    match Certificate::from_pem_bundle(pem.as_bytes()) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(Failure::Failed(
            "the CA file contains no PEM certificate".to_owned(),
        )),
    }
}

/// Reads the address of a server: HTTPS, or HTTP on this machine, without a password, which other users of the machine could see.
fn read_url(text: &str) -> Result<String, String> {
    let wrong = |rule: &str| Err(format!("{rule}, such as https://agents.example.com"));
    let Ok(url) = Url::parse(text) else {
        return wrong("the address of the server must be a URL");
    };
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => {}
        ("http", Some(host)) if is_loopback(&host) => {}
        ("http", Some(_)) => {
            return wrong("a remote server needs HTTPS; use an https URL");
        }
        _ => return wrong("the address of the server must be a URL"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong(
            "the address of the server must not contain a user name or password; use --username",
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("the address of the server must not have a query or fragment");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => IpAddr::from(*address).is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_reached_over_https_or_on_this_machine() {
        for (text, url) in [
            ("https://a.example", "https://a.example"),
            (
                "https://A.example:8443/yard/",
                "https://a.example:8443/yard",
            ),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://127.0.0.2:1/", "http://127.0.0.2:1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(read_url(text).as_deref(), Ok(url), "{text}");
        }
        for text in [
            "a.example",
            "http://a.example",
            "http://127.0.0.1.example",
            "http://10.0.0.1",
            "ftp://a.example",
            "https://root:secret@a.example",
            "https://root@a.example",
            "https://a.example/?token=x",
            "unix:///run/x",
        ] {
            let error = read_url(text).unwrap_err();
            assert!(error.contains("https://"), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn contexts_are_the_same_after_storing() {
        let mut remote = Remote::new(Some("a".to_owned()), "https://a.example", None).unwrap();
        for credential in [
            Credential::Token("agy_api_1".to_owned().into()),
            Credential::Session {
                username: "root".to_owned(),
                cookie: "root:1:2".to_owned().into(),
            },
        ] {
            remote.credential = Some(credential);
            let text = serde_json::to_string(&remote.to_stored()).unwrap();
            let read = Remote::from_stored("a", serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(read.identity(), remote.identity());
            assert_eq!(serde_json::to_string(&read.to_stored()).unwrap(), text);
        }
    }
}
