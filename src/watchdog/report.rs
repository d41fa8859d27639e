//! The report of a stall: what is under way, and the states of the threads.

use std::thread;
use std::time::Duration;

use schema::under_way::{self, Listed, Work};

use super::threads::{ThreadState, list_threads};
use super::{EXIT_CODE, Stall};

/// Most entries of each kind of work that are listed, oldest first.
const MOST: usize = 100;
/// Most threads that are listed.
const MOST_THREADS: usize = 200;
/// Time over which the processor time of threads is compared.
const INTERVAL: Duration = Duration::from_secs(1);

/// Writes the report to the log, which is not buffered.
pub(super) fn write(stall: &Stall) {
    let Stall {
        ticks,
        runtime,
        workers,
    } = stall;
    tracing::error!(
        seconds = ticks,
        no_probe_answered = runtime,
        ?workers,
        "the runtime does not answer: the process ends with exit code {EXIT_CODE} and is to be started again; this is a defect"
    );
    let before = list_threads(MOST_THREADS);
    let (all, unnamed) = under_way::list();
    for work in [Work::Request, Work::Reconciliation, Work::Call] {
        let (shown, rest) = choose(&all, work);
        for listed in shown {
            let age_ms = u64::try_from(listed.age.as_millis()).unwrap_or(u64::MAX);
            tracing::error!(age_ms, "under way: {listed}");
        }
        if rest > 0 {
            tracing::error!(rest, ?work, "more is under way");
        }
    }
    if unnamed > 0 {
        tracing::error!(unnamed, "more is under way that is not registered");
    }
    thread::sleep(INTERVAL);
    let after = list_threads(MOST_THREADS);
    for thread in &after {
        let earlier = before.iter().find(|earlier| earlier.id == thread.id);
        let recent = earlier.map_or(0, |earlier| thread.ticks.saturating_sub(earlier.ticks));
        let ThreadState {
            id,
            name,
            state,
            wait,
            ticks,
        } = thread;
        tracing::error!(id, name, %state, wait, cpu_ticks = ticks, cpu_ticks_of_last_second = recent, "thread");
    }
}

/// Chooses the entries of one kind that are listed, and counts the rest.
fn choose(all: &[Listed], work: Work) -> (Vec<&Listed>, usize) {
    let of_kind = || all.iter().filter(|listed| listed.work == work);
    let shown: Vec<&Listed> = of_kind().take(MOST).collect();
    let rest = of_kind().count() - shown.len();
    (shown, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_the_oldest_of_each_kind() {
        let listed = |work, age| Listed {
            work,
            name: "GET",
            route: "",
            state: "-",
            key: Box::default(),
            step: Box::default(),
            age: Duration::from_secs(age),
        };
        let mut all = vec![listed(Work::Call, 900)];
        all.extend((0..150).map(|n| listed(Work::Request, 500 - n)));
        let (shown, rest) = choose(&all, Work::Request);
        assert_eq!((shown.len(), rest), (MOST, 50));
        assert_eq!(shown[0].age, Duration::from_secs(500));
        assert_eq!(choose(&all, Work::Call).0.len(), 1);
    }
}
