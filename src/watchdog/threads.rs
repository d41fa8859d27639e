//! States of the threads of this process, from `/proc`.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// State of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadState {
    /// Its id.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// R: on the processor; S: waits; D: waits for a device.
    pub(super) state: char,
    /// Function of the kernel in which it waits; empty where the kernel does not say.
    pub(super) wait: String,
    /// Processor time since its start, in ticks of the system.
    pub(super) ticks: u64,
}

/// Lists at most so many threads.
pub(super) fn list_threads(most: usize) -> Vec<ThreadState> {
    let Ok(entries) = read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let threads = entries.flatten().take(most);
    threads
        .filter_map(|entry| read_thread(&entry.path()))
        .collect()
}

/// Reads one; `None` once it has ended.
fn read_thread(path: &Path) -> Option<ThreadState> {
    let stat = read_to_string(path.join("stat")).ok()?;
    let (name, state, ticks) = parse_stat(&stat)?;
    let wait = read_to_string(path.join("wchan")).unwrap_or_default();
    let wait = wait.trim();
    Some(ThreadState {
        id: path.file_name()?.to_string_lossy().into_owned(),
        name: name.to_owned(),
        state,
        wait: if wait == "0" { "" } else { wait }.to_owned(),
        ticks,
    })
}

/// Name, state and processor time of a line of `stat` (proc_pid_stat(5)). A name may contain brackets and blanks.
fn parse_stat(stat: &str) -> Option<(&str, char, u64)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().take(13).collect();
    let state = fields.first()?.chars().next()?;
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    // Fields 14 and 15 of the line.
    Some((name, state, number(11)?.saturating_add(number(12)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_brackets_in_the_name_is_parsed() {
        let line = "17 (a) R (b) S 1 2 3 0 -1 4 5 0 6 0 70 8 0 0 20 0 4 0 99";
        assert_eq!(parse_stat(line), Some(("a) R (b", 'S', 78)));
        for bad in ["", "17 (a", "17 (a) S", "17 (a) S 1 2 3 0 -1 4 5 0 6 0 x 8"] {
            assert_eq!(parse_stat(bad), None, "{bad}");
        }
    }

    #[test]
    fn threads_of_this_process_are_listed() {
        let threads = list_threads(10_000);
        assert!(threads.iter().any(|thread| thread.state == 'R'));
        assert!(list_threads(1).len() <= 1);
    }
}
