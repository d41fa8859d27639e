//! Certificates that the service relies on: their ends, and whether the newest files of its own can be used.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::config::{Config, keys};
use schema::ids::Timestamp;

use crate::certificate::{file_end, first_end};

/// The part of the service that has a fault while its certificate cannot be read again.
pub(super) const PART: &str = "certificate";
const DAY: u64 = 24 * 60 * 60;
/// Time before its end in which a certificate should be renewed.
const RENEWAL: Duration = Duration::from_secs(21 * DAY);
/// The service's own.
const OWN: &str = "web";
/// Its own at the engine, and the engine's authority.
const ENGINE: &str = "engine";
const DIRECTORY: &str = "ldap_ca";
const PROVIDER: &str = "oidc_ca";

/// See the [module](self).
#[derive(Default)]
pub struct Certificates {
    own: Option<PathBuf>,
    of_engine: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of each certificate that could be read.
    ends: Vec<(&'static str, Timestamp)>,
    /// Time since which the newest files of the own certificate cannot be used.
    refused_since: Option<Timestamp>,
}

impl Certificates {
    /// Those in files: the service's own, and those of the connection to the engine.
    pub fn new(own: Option<PathBuf>, of_engine: Vec<PathBuf>) -> Self {
        Self {
            own,
            of_engine,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all of them again. Reads files, so it blocks shortly.
    pub(super) fn read(&self, config: &Config) {
        let own = match self.refused_since() {
            None => self.own.as_ref().and_then(|file| file_end(file).ok()),
            // The one before is in use.
            Some(_) => self.end_of(OWN),
        };
        let of_engine = self.of_engine.iter().filter_map(|file| file_end(file).ok());
        let set = |text: Option<String>| text.and_then(|text| first_end(&text));
        let ends = [
            (OWN, own),
            (ENGINE, of_engine.min()),
            (DIRECTORY, set(config.get(&keys::ldap::CA_CERTIFICATE))),
            (PROVIDER, set(config.get(&keys::oidc::CA_CERTIFICATE))),
        ];
        let ends = ends
            .into_iter()
            .filter_map(|(name, end)| Some((name, end?)));
        self.state().ends = ends.collect();
    }

    /// Notes whether the newest files of the own certificate can be used.
    pub(super) fn note_own(&self, is_refused: bool, now: Timestamp) {
        let mut state = self.state();
        state.refused_since = is_refused.then(|| state.refused_since.unwrap_or(now));
    }

    /// Time since which the newest files of the own certificate cannot be used.
    pub(super) fn refused_since(&self) -> Option<Timestamp> {
        self.state().refused_since
    }

    /// The end of each certificate that could be read.
    pub(super) fn ends(&self) -> Vec<(&'static str, Timestamp)> {
        self.state().ends.clone()
    }

    fn end_of(&self, name: &str) -> Option<Timestamp> {
        let ends = self.ends().into_iter();
        ends.filter(|(known, _)| *known == name)
            .map(|it| it.1)
            .next()
    }

    /// Warnings of those that end soon, each with its remedy.
    pub(super) fn warnings(&self, now: Timestamp) -> Vec<String> {
        let ends = self.ends().into_iter();
        let soon = ends.filter(|(_, end)| *end < now.plus(RENEWAL));
        soon.map(|(name, end)| {
            let (what, remedy) = match name {
                OWN => (
                    "the certificate of --tls-cert",
                    "renew it; the server reads new files within 5 s",
                ),
                ENGINE => (
                    "a certificate of the connection to the engine",
                    "renew it in the directory of --docker-cert-path",
                ),
                DIRECTORY => (
                    "a certificate in ldap.ca_certificate",
                    "replace it, or remove it if the one that replaces it is there",
                ),
                _ => (
                    "a certificate in oidc.ca_certificate",
                    "replace it, or remove it if the one that replaces it is there",
                ),
            };
            let date = end.to_rfc3339();
            match end.as_secs() - now.as_secs() {
                left @ 0.. => {
                    let days = left.unsigned_abs() / DAY;
                    format!("{what} expires in {days} days, {date}; {remedy}")
                }
                _ => format!("{what} has expired, {date}; {remedy}"),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of_from_21_days_before_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let file = dir.path().join(name);
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            std::fs::write(&file, made.cert.pem()).unwrap();
            file
        };
        let own = write("own.pem");
        let end = file_end(&own).unwrap();
        let certificates = Certificates::new(Some(own.clone()), vec![dir.path().join("none")]);
        let config = Config::default();
        certificates.read(&config);
        assert_eq!(certificates.ends(), [("web", end)]);
        let day = |number: u64| Duration::from_secs(number * DAY);
        assert!(certificates.warnings(end.minus(day(22))).is_empty());
        let soon = certificates.warnings(end.minus(day(20)));
        let said = "the certificate of --tls-cert expires in 20 days, ";
        assert!(soon.len() == 1 && soon[0].starts_with(said), "{soon:?}");
        let late = certificates.warnings(end.plus(day(1)));
        assert!(late[0].contains("--tls-cert has expired"), "{late:?}");

        // The end of one that is not in use says nothing.
        certificates.note_own(true, Timestamp::from_secs(5));
        certificates.note_own(true, Timestamp::from_secs(9));
        std::fs::remove_file(&own).unwrap();
        certificates.read(&config);
        assert_eq!(certificates.ends(), [("web", end)]);
        assert_eq!(certificates.refused_since(), Some(Timestamp::from_secs(5)));
        certificates.note_own(false, Timestamp::from_secs(10));
        assert_eq!(certificates.refused_since(), None);
    }

    #[test]
    fn authorities_in_settings_are_watched() {
        let made = rcgen::generate_simple_self_signed(vec!["ca".to_owned()]).unwrap();
        let pem = made.cert.pem();
        let stored = [("ldap.ca_certificate".to_owned(), serde_json::json!(pem))];
        let config = Config::from_stored(stored.into());
        let certificates = Certificates::default();
        certificates.read(&config);
        let end = first_end(&pem).unwrap();
        assert_eq!(certificates.ends(), [("ldap_ca", end)]);
        assert!(first_end("no certificate").is_none());
    }
}
