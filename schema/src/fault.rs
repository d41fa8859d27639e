//! Named points at which a test can end the process, as `kill -9` would.
//!
//! Without the cargo feature `test-support` a point is an empty function. With it, the
//! environment variable `AGENTYARD_FAULT=<name>[:<nth>]` makes the process kill itself at the
//! nth hit (default: the first) of that point; `AGENTYARD_FAULT_LOG=<file>` makes it append the name
//! of each point it passes, so that a test can check that it knows them all.
//!
//! `AGENTYARD_PANIC=<name>` with `AGENTYARD_PANIC_WHILE=<file>` makes that point panic while the file
//! exists; the name may also be that of a supervised task ([`task`]). `AGENTYARD_HANG` and `AGENTYARD_HANG_WHILE` make a
//! point hold its thread in the same way. Never part of a release.

/// A point between two steps of something that must survive being killed there.
#[cfg(not(any(test, feature = "test-support")))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// A point between two steps of something that must survive being killed there.
#[cfg(any(test, feature = "test-support"))]
pub fn point(name: &'static str) {
    #[cfg(test)]
    in_process::hit(name);
    #[cfg(feature = "test-support")]
    by_environment::hit(name);
}

/// The same, with a name that is only computed when the points are compiled in.
#[cfg(not(feature = "test-support"))]
#[inline(always)]
pub fn point_with(_name: impl FnOnce() -> String) {}

/// The same, with a name that is only computed when the points are compiled in.
#[cfg(feature = "test-support")]
pub fn point_with(name: impl FnOnce() -> String) {
    by_environment::hit(&name());
}

/// A task that a test can make panic while it runs.
#[cfg(not(feature = "test-support"))]
#[inline(always)]
pub fn task<F: Future>(_name: &str, task: F) -> F {
    task
}

/// A task that a test can make panic while it runs.
#[cfg(feature = "test-support")]
pub fn task<F: Future>(name: &str, task: F) -> impl Future<Output = F::Output> + use<F> {
    let doomed = by_environment::may_panic(name);
    async move {
        if !doomed {
            return task.await;
        }
        let panicking = async {
            loop {
                by_environment::panic_if_requested();
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            output = task => output,
            output = panicking => output,
        }
    }
}

/// A bound of time that a test may shorten by an environment variable.
#[cfg(not(feature = "test-support"))]
#[inline(always)]
pub fn shorten_bound(_variable: &str, default: u32) -> u32 {
    default
}

/// A bound of time that a test may shorten by an environment variable.
#[cfg(feature = "test-support")]
pub fn shorten_bound(variable: &str, default: u32) -> u32 {
    let set = std::env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[cfg(feature = "test-support")]
mod by_environment {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The variable that names the point.
    const VARIABLE: &str = "AGENTYARD_FAULT";
    /// The variable that names the file to which passed points are appended.
    const LOG_VARIABLE: &str = "AGENTYARD_FAULT_LOG";

    static TARGET: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static HITS: AtomicU64 = AtomicU64::new(0);

    static LOG: OnceLock<Option<File>> = OnceLock::new();

    fn log(name: &str) {
        let log = LOG.get_or_init(|| {
            let path = std::env::var_os(LOG_VARIABLE)?;
            OpenOptions::new().create(true).append(true).open(path).ok()
        });
        if let Some(mut log) = log.as_ref() {
            // One write, so that lines of several threads stay whole.
            let _ = log.write_all(format!("{name}\n").as_bytes());
        }
    }

    /// The variable that names the point or task that panics.
    const PANIC_VARIABLE: &str = "AGENTYARD_PANIC";
    /// The variable that names the file while which exists it panics.
    const WHILE_VARIABLE: &str = "AGENTYARD_PANIC_WHILE";

    /// The variable that names the point that holds its thread.
    const HANG_VARIABLE: &str = "AGENTYARD_HANG";
    /// The variable that names the file while which exists it holds it.
    const HANG_WHILE_VARIABLE: &str = "AGENTYARD_HANG_WHILE";

    static PANICS: OnceLock<Option<String>> = OnceLock::new();
    static WHILE: OnceLock<Option<std::ffi::OsString>> = OnceLock::new();
    static HANGS: OnceLock<Option<(String, std::ffi::OsString)>> = OnceLock::new();

    fn hang(name: &str) {
        let hangs = HANGS.get_or_init(|| {
            let point = std::env::var(HANG_VARIABLE).ok()?;
            Some((point, std::env::var_os(HANG_WHILE_VARIABLE)?))
        });
        if let Some((point, file)) = hangs
            && point == name
        {
            while Path::new(file).exists() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }

    pub(super) fn may_panic(name: &str) -> bool {
        let requested = PANICS.get_or_init(|| std::env::var(PANIC_VARIABLE).ok());
        requested.as_deref() == Some(name)
    }

    // Panicking is what it is for; no release has it.
    #[allow(clippy::panic)]
    pub(super) fn panic_if_requested() {
        let file = WHILE.get_or_init(|| std::env::var_os(WHILE_VARIABLE));
        if file.as_ref().is_some_and(|file| Path::new(file).exists()) {
            panic!("a test asked for it");
        }
    }

    pub(super) fn hit(name: &str) {
        log(name);
        if may_panic(name) {
            panic_if_requested();
        }
        hang(name);
        let target = TARGET.get_or_init(|| parse(&std::env::var(VARIABLE).ok()?));
        let Some((requested, nth)) = target else {
            return;
        };
        if requested == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
            // Not exit(): nothing may be flushed or cleaned up, as when the machine loses power.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }

    /// `name` or `name:nth`; `None` when nth is not a number from 1.
    pub(super) fn parse(text: &str) -> Option<(String, u64)> {
        match text.rsplit_once(':') {
            None => Some((text.to_owned(), 1)),
            Some((name, nth)) => nth
                .parse()
                .ok()
                .filter(|&nth| nth > 0)
                .map(|nth| (name.to_owned(), nth)),
        }
    }
}

/// The same for unit tests: a crash is a panic that the test catches.
#[cfg(test)]
pub(crate) mod in_process {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    #[derive(Default)]
    struct Hook {
        crash_at: Option<usize>,
        hits: Vec<&'static str>,
    }

    struct Crash;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    pub(super) fn hit(name: &'static str) {
        let crash = HOOK.with_borrow_mut(|hook| {
            let Some(hook) = hook else { return false };
            hook.hits.push(name);
            hook.crash_at == Some(hook.hits.len())
        });
        if crash {
            // No panic message: this is not a failure.
            resume_unwind(Box::new(Crash));
        }
    }

    /// Runs `work` to its end and returns which points it passed.
    pub(crate) fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<&'static str>) {
        HOOK.set(Some(Hook::default()));
        let value = work();
        (value, HOOK.take().unwrap_or_default().hits)
    }

    /// Runs `work` and ends it at the `nth` point (from 1) it passes; `None` when it ended there.
    pub(crate) fn crash_at<T>(nth: usize, work: impl FnOnce() -> T) -> Option<T> {
        HOOK.set(Some(Hook {
            crash_at: Some(nth),
            hits: Vec::new(),
        }));
        let outcome = catch_unwind(AssertUnwindSafe(work));
        HOOK.set(None);
        match outcome {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Crash>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_can_end_its_work_at_a_point() {
        let work = || {
            point("one");
            point("two");
            7
        };
        assert_eq!(in_process::record(work), (7, vec!["one", "two"]));
        assert_eq!(in_process::crash_at(2, work), None);
        assert_eq!(in_process::crash_at(3, work), Some(7));
    }

    #[cfg(feature = "test-support")]
    #[test]
    fn the_variable_names_a_point_and_a_hit() {
        use super::by_environment::parse;
        assert_eq!(parse("a.b"), Some(("a.b".to_owned(), 1)));
        assert_eq!(parse("a.b:3"), Some(("a.b".to_owned(), 3)));
        assert_eq!(parse("a.b:0"), None);
        assert_eq!(parse("a.b:x"), None);
    }
}
