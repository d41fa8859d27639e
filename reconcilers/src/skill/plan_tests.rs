use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use schema::condition::{ConditionStatus, Reason};
use schema::ids::{Generation, Timestamp, Uid};
use schema::skill::{Origin, SkillRow, SkillVersion, TreeDigest};

use super::plan::{Action, GRACE, Snapshot, UPLOAD, plan};
use super::store::SkillState;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn digest(of: char) -> TreeDigest {
    of.to_string().repeat(64).parse().unwrap()
}

fn state(current: char, kept: &str) -> SkillState {
    SkillState {
        row: SkillRow {
            uid: Uid::from("s1".to_owned()),
            name: "pdf".parse().unwrap(),
            generation: Generation(1),
            deleted_at: None,
            version: SkillVersion {
                number: 1,
                digest: digest(current),
                description: String::new(),
                version: String::new(),
                license: String::new(),
                has_manifest: true,
                file_count: 1,
                size: 1,
                origin: Origin::default(),
                warnings: Vec::new(),
                created_at: NOW,
            },
        },
        kept: kept.chars().map(digest).collect(),
    }
}

fn snapshot(state: Option<SkillState>, old: &str, new: &str, deployed: &str) -> Snapshot {
    let long_ago = NOW.minus(GRACE);
    let lately = NOW.minus(GRACE - Duration::from_secs(1));
    let old = old.chars().map(|of| (digest(of), long_ago));
    let new = new.chars().map(|of| (digest(of), lately));
    Snapshot {
        name: "pdf".parse().unwrap(),
        state: state.map(Arc::new),
        stored: old.chain(new).collect(),
        deployed: deployed.chars().map(digest).collect(),
    }
}

/// Deleted just when the new ones may have been imported.
fn going(mut state: SkillState) -> Option<SkillState> {
    state.row.deleted_at = Some(NOW.minus(GRACE - UPLOAD));
    Some(state)
}

/// Letters of what is removed, `!` for the last trace, and what is said.
fn planned(snapshot: &Snapshot) -> (String, Reason) {
    let plan = plan(snapshot, NOW);
    let actions = plan.actions.iter().map(|action| match action {
        Action::RemoveVersion { digest, .. } => digest.as_str().chars().next().unwrap(),
        Action::Purge => '!',
    });
    (actions.collect(), plan.conditions[0].reason)
}

#[test]
fn each_state_has_its_steps() {
    use Reason::{Converged, Progressing, SkillMissing, Terminating};
    let some = |current, kept| Some(state(current, kept));
    for (snapshot, steps, reason) in [
        (snapshot(some('a', "ab"), "ab", "", ""), "", Converged),
        (snapshot(some('a', "ab"), "abc", "d", ""), "c", Progressing),
        (snapshot(some('a', "a"), "abc", "", "b"), "c", Progressing),
        (snapshot(some('a', "a"), "abc", "", "bc"), "", Converged),
        // What is in effect and not there is told, whatever else is.
        (snapshot(some('a', "a"), "bc", "", ""), "", SkillMissing),
        (
            snapshot(going(state('a', "a")), "ab", "c", "b"),
            "ab",
            Terminating,
        ),
        // What came later may be of the next one of that name.
        (
            snapshot(going(state('a', "a")), "", "c", "b"),
            "!",
            Terminating,
        ),
        (
            snapshot(going(state('a', "a")), "", "", ""),
            "!",
            Terminating,
        ),
        (snapshot(None, "ab", "c", ""), "ab", Terminating),
    ] {
        assert_eq!(
            planned(&snapshot),
            (steps.to_owned(), reason),
            "{snapshot:?}"
        );
    }
}

#[test]
fn a_package_without_a_manifest_is_ready_and_says_so() {
    let mut state = state('a', "a");
    state.row.version.has_manifest = false;
    let plan = plan(&snapshot(Some(state), "a", "", ""), NOW);
    let said = &plan.conditions[0];
    assert_eq!(
        (said.status, said.reason),
        (ConditionStatus::True, Reason::NoManifest)
    );
}

#[test]
fn what_was_left_out_of_a_version_is_in_the_condition() {
    let mut state = state('a', "a");
    state.row.version.warnings = vec!["a link was left out".to_owned()];
    let plan = plan(&snapshot(Some(state), "a", "", ""), NOW);
    let said = &plan.conditions[0];
    assert_eq!(said.reason, Reason::Converged);
    assert!(said.message.ends_with("; a link was left out"), "{said:?}");
}

proptest! {
    /// Also when the clock was set back since something was imported (L73).
    #[test]
    fn it_comes_to_rest_and_nothing_needed_goes(
        kept in "[a-f]{1,4}",
        stored in proptest::collection::btree_map("[a-f]", -8000_i64..8000, 0..6),
        deployed in "[a-f]{0,3}",
        exists: bool,
        deleted: bool,
    ) {
        let current = kept.chars().next().unwrap();
        let mut wanted = state(current, &kept);
        wanted.row.deleted_at = deleted.then_some(NOW);
        let mut store: BTreeMap<TreeDigest, Timestamp> = stored
            .iter()
            .map(|(of, at)| {
                let at = Timestamp::from_millis(NOW.as_millis() + at * 1000);
                (digest(of.chars().next().unwrap()), at)
            })
            .collect();
        let before = store.clone();
        for pass in 0.. {
            prop_assert!(pass < 3, "it never comes to rest");
            let mut now = snapshot(exists.then(|| wanted.clone()), "", "", &deployed);
            now.stored = store.clone().into_iter().collect();
            let plan = plan(&now, NOW);
            prop_assert_eq!(&plan, &super::plan::plan(&now, NOW));
            if plan.actions.is_empty() {
                break;
            }
            let mut purged = false;
            for action in plan.actions {
                match action {
                    Action::RemoveVersion { digest, not_newer_than, .. } => {
                        if store.get(&digest).is_some_and(|at| *at <= not_newer_than) {
                            store.remove(&digest);
                        }
                    }
                    Action::Purge => purged = true,
                }
            }
            if purged {
                prop_assert!(exists && deleted);
                prop_assert!(store.values().all(|at| *at > NOW.minus(UPLOAD)));
                break;
            }
        }
        for (digest, at) in before {
            let mut letters = kept.chars().filter(|_| exists).chain(deployed.chars());
            let needed = letters.any(|of| digest == self::digest(of));
            let is_new = at > NOW.minus(GRACE);
            let stays = match exists && deleted {
                true => at > NOW.minus(UPLOAD),
                false => needed || is_new,
            };
            prop_assert!(!stays || store.contains_key(&digest), "{digest} is gone");
        }
    }
}
