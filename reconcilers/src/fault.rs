//! Named points at which a test can end the process, to prove that the next start mends everything.
//!
//! Without the cargo feature `fault-injection` a point is an empty inline function. With it, the
//! environment variable `AGENTYARD_FAULT=<name>[:<nth>]` makes the process kill itself (SIGKILL, so
//! that nothing can tidy up) when the point of that name is passed for the nth time, first by default.

/// Passes a point. `name` is only computed when the points are compiled in.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point_with(_name: impl FnOnce() -> String) {}

/// Passes a point. `name` is only computed when the points are compiled in.
#[cfg(feature = "fault-injection")]
pub fn point_with(name: impl FnOnce() -> String) {
    point(&name());
}

/// Passes the point `name`.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_name: &str) {}

/// Passes the point `name`.
#[cfg(feature = "fault-injection")]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ARMED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let armed = ARMED.get_or_init(|| {
        std::env::var("AGENTYARD_FAULT")
            .ok()
            .map(|text| parse(&text))
    });
    let Some((wanted, nth)) = armed else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// `name` or `name:nth`.
#[cfg(feature = "fault-injection")]
fn parse(text: &str) -> (String, u64) {
    match text.rsplit_once(':') {
        Some((name, nth)) => match nth.parse() {
            Ok(nth) => (name.to_owned(), nth),
            Err(_) => (text.to_owned(), 1),
        },
        None => (text.to_owned(), 1),
    }
}

#[cfg(all(test, feature = "fault-injection"))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_fault_names_a_point_and_optionally_the_nth_passage() {
        assert_eq!(
            super::parse("mock.Start.before"),
            ("mock.Start.before".to_owned(), 1)
        );
        assert_eq!(
            super::parse("mock.Start.after:3"),
            ("mock.Start.after".to_owned(), 3)
        );
    }

    /// Run by the next test in a process of its own; by itself it passes three points and lives.
    #[test]
    fn passes_three_points() {
        for _ in 0..3 {
            super::point_with(|| "mock.Start.before".to_owned());
        }
    }

    #[test]
    fn an_armed_point_kills_the_process_at_its_nth_passage_only() {
        let run = |fault: &str| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "fault::tests::passes_three_points"])
                .env("AGENTYARD_FAULT", fault)
                .output()
                .unwrap()
                .status
        };
        assert_eq!(run("mock.Start.before:3").signal(), Some(9));
        assert!(run("mock.Start.before:4").success());
        assert!(run("mock.Start.after").success());
    }
}
