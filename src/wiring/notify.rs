//! Notifications for the service manager, by the protocol of `sd_notify(3)`: readiness, watchdog, status, end.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use reconcilers::runtime::supervise::Supervisor;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::health::Health;

/// Interval between two notifications when the manager asks for no watchdog, and the longest otherwise.
const EVERY: Duration = Duration::from_secs(5);

/// State of the service, as the manager is notified of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vitals {
    /// No reconciler is stuck.
    pub(super) alive: bool,
    /// One line for people.
    pub(super) status: String,
}

/// Connection to the service manager that started this process.
pub(super) struct Notifier {
    socket: UnixDatagram,
    manager: SocketAddr,
    /// Time after which the manager ends a process that has said nothing.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Connection to the manager that the environment names; `None` without one.
    pub(super) fn from_env() -> Option<Self> {
        let name = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        let [time, pid] = ["WATCHDOG_USEC", "WATCHDOG_PID"].map(|name| env::var(name).ok());
        let watchdog = watchdog_time(time.as_deref(), pid.as_deref(), process::id());
        Self::new(&name, watchdog)
            .inspect_err(|error| warn!(%error, "the service manager cannot be notified"))
            .ok()
    }

    /// `name`: path of the manager's socket; with `@` in front a name without a file.
    fn new(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let manager = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read holds up nothing.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            manager,
            watchdog,
        })
    }

    /// Notifies until the shutdown, which it notifies, too.
    async fn run(self, observe: impl Fn() -> Vitals, shutdown: CancellationToken) {
        let every = self.watchdog.map_or(EVERY, |time| (time / 3).min(EVERY));
        let mut ticks = interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known: Option<String> = None;
        let mut failed = false;
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let vitals = observe();
            let text = describe(&vitals, known.as_deref(), self.watchdog.is_some());
            if text.is_empty() {
                continue;
            }
            match self.send(&text) {
                Ok(()) => {
                    known = Some(vitals.status);
                    failed = false;
                }
                Err(error) => {
                    if !failed {
                        warn!(%error, "the service manager could not be notified; retrying");
                    }
                    failed = true;
                }
            }
        }
        if let Err(error) = self.send("STOPPING=1\nSTATUS=stopping\n") {
            warn!(%error, "the service manager could not be notified of the end");
        }
    }

    fn send(&self, text: &str) -> io::Result<()> {
        self.socket
            .send_to_addr(text.as_bytes(), &self.manager)
            .map(drop)
    }
}

/// Text of the next notification; `known`: the status that the manager has, if it was notified before.
fn describe(vitals: &Vitals, known: Option<&str>, watched: bool) -> String {
    let mut text = String::new();
    if known.is_none() {
        text.push_str("READY=1\n");
    }
    if watched && vitals.alive {
        text.push_str("WATCHDOG=1\n");
    }
    if known != Some(&vitals.status) {
        let status = vitals.status.replace(char::is_control, " ");
        text.push_str(&format!("STATUS={status}\n"));
    }
    text
}

/// Time of the watchdog, if it is meant for the process `us`.
fn watchdog_time(microseconds: Option<&str>, pid: Option<&str>, us: u32) -> Option<Duration> {
    if pid.is_some_and(|pid| pid.parse() != Ok(us)) {
        return None;
    }
    let time = Duration::from_micros(microseconds?.parse().ok()?);
    (!time.is_zero()).then_some(time)
}

/// Notifies the manager, if there is one, that the service at `address` answers, and how it is.
pub(super) fn supervise(supervisor: &mut Supervisor, health: Arc<Health>, address: &str) {
    let Some(notifier) = Notifier::from_env() else {
        return;
    };
    let (address, shutdown) = (address.to_owned(), supervisor.shutdown());
    supervisor.spawn("notify", async move {
        let observe = || health.vitals(&address);
        notifier.run(observe, shutdown).await;
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn vitals(alive: bool, status: &str) -> Vitals {
        let status = status.to_owned();
        Vitals { alive, status }
    }

    /// Waits for a notification with `line` in it, and returns it.
    async fn receive(manager: &tokio::net::UnixDatagram, line: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            let received = tokio::time::timeout(EVERY, manager.recv(&mut buffer));
            let count = received.await.expect("a notification").unwrap();
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if text.lines().any(|found| found == line) {
                return text;
            }
        }
    }

    #[tokio::test]
    async fn manager_receives_readiness_watchdog_status_and_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let manager = tokio::net::UnixDatagram::bind(&path).unwrap();
        let watchdog = Some(Duration::from_millis(60));
        let notifier = Notifier::new(path.as_os_str(), watchdog).unwrap();
        let state = Mutex::new(vitals(true, "serving"));
        let observe = || state.lock().unwrap().clone();
        let shutdown = CancellationToken::new();
        let following = async {
            let first = receive(&manager, "READY=1").await;
            assert_eq!(first, "READY=1\nWATCHDOG=1\nSTATUS=serving\n");
            assert_eq!(receive(&manager, "WATCHDOG=1").await, "WATCHDOG=1\n");
            *state.lock().unwrap() = vitals(false, "stuck");
            let stuck = receive(&manager, "STATUS=stuck").await;
            assert_eq!(stuck, "STATUS=stuck\n", "the watchdog is not fed");
            shutdown.cancel();
            receive(&manager, "STOPPING=1").await;
        };
        tokio::join!(notifier.run(observe, shutdown.clone()), following);
    }

    #[tokio::test]
    async fn manager_without_a_file_receives_notifications() {
        let name = format!("agentyard-notify-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        let name = format!("@{name}");
        let notifier = Notifier::new(OsStr::new(&name), None).unwrap();
        notifier.send("READY=1\n").unwrap();
        let mut buffer = [0; 64];
        let count = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"READY=1\n");
    }

    #[test]
    fn status_is_one_line_and_sent_once() {
        let state = vitals(true, "a\nREADY=0");
        let first = describe(&state, None, false);
        assert_eq!(first, "READY=1\nSTATUS=a READY=0\n");
        assert_eq!(describe(&state, Some("a\nREADY=0"), false), "");
    }

    #[test]
    fn watchdog_of_another_process_is_ignored() {
        let time = |text, pid| watchdog_time(text, pid, 7);
        let minute = Some(Duration::from_secs(60));
        assert_eq!(time(Some("60000000"), Some("7")), minute);
        assert_eq!(time(Some("60000000"), None), minute);
        assert_eq!(time(Some("60000000"), Some("8")), None);
        assert_eq!(time(Some("0"), None), None);
        assert_eq!(time(Some("much"), None), None);
        assert_eq!(time(None, None), None);
    }
}
