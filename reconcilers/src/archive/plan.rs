//! Decides which archives have been kept long enough. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::archive::ArchiveFacts;
use schema::condition::{Condition, Reason};
use schema::home::Archive;
use schema::ids::{Generation, Timestamp};

use crate::runtime::Plan;

/// Most archives that are removed in one pass.
const AT_ONCE: usize = 20;

/// What is desired of the archive, and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Generation of the object.
    pub generation: Generation,
    /// What time it is at least: a clock that is set forward must remove nothing.
    pub today: Timestamp,
    /// How long an archive is kept; `None` = forever.
    pub retention: Option<Duration>,
    /// The archives, the oldest first.
    pub archives: Vec<Archive>,
    /// What is remembered of them.
    pub facts: ArchiveFacts,
    /// Those that could not be removed a short time ago, and why.
    pub failed: BTreeMap<String, String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Removes an archive.
    Remove {
        /// Its name in the archive.
        directory: String,
        /// Its removal was begun before.
        begun: bool,
    },
    /// Remembers what there is.
    SaveFacts(ArchiveFacts),
}

/// The plan for the archive.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    let Snapshot {
        retention,
        archives,
        ..
    } = snapshot;
    let due = |archive: &Archive| retention.map(|kept| archive.archived_at.plus(kept));
    let leaves = |archive: &&Archive| {
        let is_due = archive.removing || due(archive).is_some_and(|at| at <= snapshot.today);
        is_due && !snapshot.failed.contains_key(&archive.directory)
    };
    let removals: Vec<Action> = archives
        .iter()
        .filter(leaves)
        .take(AT_ONCE)
        .map(|archive| Action::Remove {
            directory: archive.directory.clone(),
            begun: archive.removing,
        })
        .collect();
    if !removals.is_empty() {
        let leaving = archives.iter().filter(leaves).count();
        let said = format!("removing {} of {}", leaving, count(archives.len()));
        return Plan::act(removals, Condition::not_ready(Reason::Progressing, said));
    }
    let facts = ArchiveFacts::of(archives);
    if facts != snapshot.facts {
        let condition = Condition::not_ready(Reason::Progressing, count(archives.len()));
        return Plan::act(vec![Action::SaveFacts(facts)], condition);
    }
    if let Some((directory, why)) = snapshot.failed.first_key_value() {
        let said = match snapshot.failed.len() {
            1 => format!("{directory} cannot be removed: {why}"),
            more => format!("{} cannot be removed; {directory}: {why}", count(more)),
        };
        return Plan::say(Condition::not_ready(Reason::Retrying, said)).after(super::RETRY);
    }
    let Some(oldest) = archives.first() else {
        return Plan::say(Condition::ready(Reason::Converged, "no archives"));
    };
    let mut said = format!(
        "{}; the oldest is {}",
        count(archives.len()),
        oldest.directory
    );
    let Some(next) = due(oldest) else {
        return Plan::say(Condition::ready(Reason::Converged, said));
    };
    said.push_str(&format!(", removed at {}", next.to_rfc3339()));
    Plan::say(Condition::ready(Reason::Converged, said)).after(next.since(snapshot.today))
}

fn count(archives: usize) -> String {
    match archives {
        1 => "1 archive".to_owned(),
        more => format!("{more} archives"),
    }
}

#[cfg(test)]
mod tests {
    use schema::condition::ConditionStatus;

    use super::*;
    use crate::runtime::Requeue;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Archives of these ages, in days.
    fn archives(ages: &[u32]) -> Vec<Archive> {
        let of = |age: &u32| Archive {
            archived_at: NOW.minus(DAY * *age),
            directory: format!("aged-{age}"),
            user: "ada".parse().unwrap(),
            removing: false,
        };
        ages.iter().map(of).collect()
    }

    /// The steps, as the ages that are removed; and what it says.
    fn planned(snapshot: &Snapshot) -> (Vec<String>, Condition, Requeue) {
        let plan = plan(snapshot);
        let steps = plan.actions.iter().map(|action| match action {
            Action::Remove { directory, .. } => directory.clone(),
            Action::SaveFacts(facts) => format!("save {}", facts.count),
        });
        let (steps, said) = (steps.collect(), plan.conditions[0].clone());
        (steps, said, plan.requeue)
    }

    fn snapshot(days: Option<u32>, ages: &[u32]) -> Snapshot {
        let archives = archives(ages);
        Snapshot {
            generation: Generation(1),
            today: NOW,
            retention: days.map(|days| DAY * days),
            facts: ArchiveFacts::of(&archives),
            failed: BTreeMap::new(),
            archives,
        }
    }

    #[rstest::rstest]
    #[case::nothing_is_there(Some(30), &[], &[], "no archives", None)]
    #[case::kept_forever(None, &[4000, 3], &[], "2 archives; the oldest is aged-4000", None)]
    #[case::younger(Some(30), &[29], &[], "1 archive; the oldest is aged-29, removed at 2027-01-16T08:00:00Z", Some(1))]
    #[case::just_old_enough(Some(30), &[30, 29], &["aged-30"], "removing 1 of 2 archives", None)]
    #[case::older(Some(30), &[90, 31, 1], &["aged-90", "aged-31"], "removing 2 of 3 archives", None)]
    fn what_is_older_than_the_retention_is_removed(
        #[case] days: Option<u32>,
        #[case] ages: &[u32],
        #[case] removed: &[&str],
        #[case] message: &str,
        #[case] again_in_days: Option<u32>,
    ) {
        let (steps, said, requeue) = planned(&snapshot(days, ages));
        assert_eq!(steps, removed);
        assert_eq!(said.message, message);
        assert_eq!(said.status == ConditionStatus::True, removed.is_empty());
        let expected = again_in_days.map_or(Requeue::AtResync, |days| Requeue::After(DAY * days));
        assert_eq!(requeue, expected);
    }

    #[test]
    fn a_removal_that_was_begun_is_finished_although_archives_are_kept_forever() {
        let mut begun = snapshot(None, &[9, 8]);
        begun.archives[1].removing = true;
        assert_eq!(planned(&begun).0, ["aged-8"]);
    }

    #[test]
    fn a_pass_removes_a_bounded_number_the_oldest_first() {
        let ages: Vec<u32> = (40..140).rev().collect();
        let (steps, said, _) = planned(&snapshot(Some(30), &ages));
        assert_eq!((steps.len(), steps[0].as_str()), (AT_ONCE, "aged-139"));
        assert_eq!(said.message, "removing 100 of 100 archives");
    }

    #[test]
    fn what_is_there_is_remembered_once() {
        let mut new = snapshot(Some(30), &[3, 2]);
        new.facts = ArchiveFacts::default();
        assert_eq!(planned(&new).0, ["save 2"]);
        new.facts = ArchiveFacts::of(&new.archives);
        assert!(planned(&new).0.is_empty());
    }
}
