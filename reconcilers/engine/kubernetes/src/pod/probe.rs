//! The trial of what agents reach, from a Pod to which the same policies apply.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::names::is_answered;
use super::{is_reached, resolve_address};

/// Tries of an address that must be closed: policies are in force only a moment after a Pod has begun.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// An address and what it is of: `NAME=HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Words for people.
    pub name: String,
    /// HOST:PORT.
    pub address: String,
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, address) = text.split_once('=').ok_or("a target is NAME=HOST:PORT")?;
        Ok(Self {
            name: name.to_owned(),
            address: address.to_owned(),
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}

/// Results of a trial, each with its address.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Targets that must be closed and were reached.
    pub open: Vec<String>,
    /// Targets that may be closed and were reached.
    pub tolerated: Vec<String>,
    /// Targets that must be open and were not reached.
    pub unreached: Vec<String>,
}

/// Tries all targets at once: those that must be closed, those that may be, those that must be open, and name servers.
pub fn probe(
    closed: &[Target],
    tolerated: &[Target],
    open: &[Target],
    name_servers: &[Target],
) -> Findings {
    let stays_open = |target: &Target| !retry_test(|| !is_reached(&target.address));
    let comes_open = |target: &Target| retry_test(|| is_reached(&target.address));
    let comes_to_answer = |target: &Target| {
        retry_test(|| {
            let addresses = resolve_address(&target.address).unwrap_or_default();
            addresses.into_iter().any(is_answered)
        })
    };
    std::thread::scope(|scope| {
        let closed = scope.spawn(|| select_targets(closed, true, &stays_open));
        let tolerated = scope.spawn(|| select_targets(tolerated, true, &stays_open));
        let open = scope.spawn(|| select_targets(open, false, &comes_open));
        let unanswered = select_targets(name_servers, false, &comes_to_answer);
        // A test has no way to panic.
        let names = |test: std::thread::ScopedJoinHandle<'_, _>| test.join().unwrap_or_default();
        Findings {
            open: names(closed),
            tolerated: names(tolerated),
            unreached: [names(open), unanswered].concat(),
        }
    })
}

/// Targets of which a test says this. All are tested at once.
fn select_targets(
    targets: &[Target],
    wanted: bool,
    test: &(dyn Fn(&Target) -> bool + Sync),
) -> Vec<String> {
    std::thread::scope(|scope| {
        let tests = targets.iter().map(|target| {
            let test = scope.spawn(move || test(target));
            (target, test)
        });
        let tests: Vec<_> = tests.collect();
        let results = tests
            .into_iter()
            .map(|(target, test)| (target, test.join()));
        results
            .filter(|(_, found)| found.as_ref().is_ok_and(|found| *found == wanted))
            .map(|(target, _)| target.to_string())
            .collect()
    })
}

/// Returns true if a test succeeds in one of a few turns.
fn retry_test(test: impl Fn() -> bool) -> bool {
    (0..TRIES).any(|turn| {
        if turn > 0 {
            std::thread::sleep(PAUSE);
        }
        test()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_each_target_in_the_wrong_state() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let up = listener.local_addr().unwrap().to_string();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let down = other.local_addr().unwrap().to_string();
        drop(other);
        let target = |address: &str| Target {
            name: "one".to_owned(),
            address: address.to_owned(),
        };
        let both = [target(&up), target(&down)];
        let found = probe(&both, &both, &both, &[]);
        let [up, down] = both.map(|target| target.to_string());
        let expected = Findings {
            open: vec![up.clone()],
            tolerated: vec![up],
            unreached: vec![down],
        };
        assert_eq!(found, expected);
    }
}
