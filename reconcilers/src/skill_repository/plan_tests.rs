use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use schema::condition::Reason;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::skill_repository::{Offer, RefType, RepositoryFacts, RepositoryRow};

use super::plan::{self, Action, Repository, Snapshot};
use crate::runtime::{Plan, Requeue};
use crate::shared::clones::{CloneReport, Fetched};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn snapshot() -> Repository {
    Repository {
        row: Arc::new(RepositoryRow {
            uid: Uid::from("r1".to_owned()),
            name: "tools".parse().unwrap(),
            generation: Generation(1),
            deleted_at: None,
            url: "https://git.example/tools".parse().unwrap(),
            reference: "main".parse().unwrap(),
            ref_type: RefType::Branch,
            public: true,
            pull_token: "t1".to_owned(),
            cancelled: false,
            host_key_token: String::new(),
            facts: RepositoryFacts::default(),
        }),
        report: CloneReport::Idle,
        here: false,
    }
}

impl Repository {
    fn row(&mut self) -> &mut RepositoryRow {
        Arc::make_mut(&mut self.row)
    }

    fn answered(mut self, token: &str) -> Self {
        let facts = &mut self.row().facts;
        facts.pull_token = Some(token.to_owned());
        facts.commit_id = Some("c1".to_owned());
        self
    }

    fn here(mut self) -> Self {
        self.here = true;
        self
    }

    fn refused(mut self, token: &str) -> Self {
        let facts = &mut self.row().facts;
        facts.failed_token = Some(token.to_owned());
        facts.failed_reason = Some(Reason::HostKeyChanged);
        facts.failure = Some("another key".to_owned());
        self
    }

    fn cancelled(mut self) -> Self {
        self.row().cancelled = true;
        self
    }

    fn going(mut self) -> Self {
        self.row().deleted_at = Some(NOW);
        self
    }

    fn running(mut self, token: &str) -> Self {
        self.report = CloneReport::Running {
            token: token.to_owned(),
            progress: None,
        };
        self
    }

    fn done(mut self, token: &str, commit: &str) -> Self {
        self.report = CloneReport::Done {
            token: token.to_owned(),
            fetched: fetched(commit),
        };
        self
    }

    fn failed(mut self, token: &str, terminal: bool, ago: u64) -> Self {
        self.report = CloneReport::Failed {
            token: token.to_owned(),
            reason: Reason::CloneFailed,
            message: "no route".to_owned(),
            terminal,
            failures: 1,
            at: NOW.minus(Duration::from_secs(ago)),
        };
        self
    }
}

fn fetched(commit: &str) -> Fetched {
    Fetched {
        commit: commit.to_owned(),
        skills: Some(Offer::default()),
        known_hosts: None,
        at: NOW,
    }
}

fn plan(repository: &Repository, now: Timestamp) -> Plan<Action> {
    plan::plan(&Snapshot::Repository(Box::new(repository.clone())), now)
}

fn planned(snapshot: &Repository) -> (Vec<&'static str>, Reason) {
    let plan = plan(snapshot, NOW);
    let actions = plan.actions.iter().map(|action| match action {
        Action::Start { .. } => "start",
        Action::Cancel => "cancel",
        Action::SaveFacts(facts) if facts.failed_token.is_some() => "remember the failure",
        Action::SaveFacts(_) => "remember",
        Action::RemoveFiles => "remove",
        Action::Purge => "purge",
    });
    (actions.collect(), plan.conditions[0].reason)
}

#[test]
fn each_state_has_its_steps() {
    use Reason::{CloneFailed, Cloning, Converged, HostKeyChanged, Progressing, Terminating};
    for (snapshot, steps, reason) in [
        (snapshot(), &["start"][..], Cloning),
        (snapshot().running("t1"), &[], Cloning),
        (snapshot().running("t0"), &["start"], Cloning),
        (snapshot().done("t1", "c1"), &["remember"], Progressing),
        (snapshot().done("t0", "c1"), &["start"], Cloning),
        (snapshot().failed("t1", false, 1), &[], CloneFailed),
        (snapshot().failed("t1", false, 3600), &["start"], Cloning),
        (snapshot().failed("t0", true, 1), &["start"], Cloning),
        (
            snapshot().failed("t1", true, 1),
            &["remember the failure"],
            CloneFailed,
        ),
        (snapshot().refused("t1"), &[], HostKeyChanged),
        (snapshot().refused("t0"), &["start"], Cloning),
        (snapshot().answered("t1").here(), &[], Converged),
        (snapshot().answered("t0").here(), &["start"], Cloning),
        // A newer request failed: what was fetched before stays.
        (
            snapshot().answered("t0").here().refused("t1"),
            &[],
            HostKeyChanged,
        ),
        // What was fetched is gone, and is fetched again; by now it is another commit.
        (snapshot().answered("t1"), &["start"], Cloning),
        (
            snapshot().answered("t1").done("t1", "c2"),
            &["remember"],
            Progressing,
        ),
        (
            snapshot().answered("t1").done("t1", "c1"),
            &["start"],
            Cloning,
        ),
        (
            snapshot().cancelled(),
            &["cancel", "remember the failure"],
            Progressing,
        ),
        (
            snapshot().cancelled().running("t1"),
            &["cancel", "remember the failure"],
            Progressing,
        ),
        // Too late: its files have taken the place of those of before.
        (
            snapshot().cancelled().done("t1", "c2"),
            &["remember"],
            Progressing,
        ),
        (snapshot().cancelled().answered("t1").here(), &[], Converged),
        (
            snapshot().going().running("t1"),
            &["remove", "purge"],
            Terminating,
        ),
    ] {
        assert_eq!(planned(&snapshot), (steps.to_vec(), reason), "{snapshot:?}");
    }
}

#[test]
fn files_of_nobody_are_removed() {
    let plan = plan::plan(&Snapshot::Orphan, NOW);
    assert_eq!(plan.actions, [Action::RemoveFiles]);
}

#[test]
fn what_was_left_out_is_in_the_condition() {
    for (count, warnings, says) in [
        (1, &[][..], "branch main at c1: 1 skill"),
        (3000, &[], "branch main at c1: 3000 skills"),
        (
            2,
            &["a was left out", "so was b"],
            "branch main at c1: 2 skills; a was left out; so was b",
        ),
    ] {
        let mut repository = snapshot().answered("t1").here();
        let facts = &mut repository.row().facts;
        facts.skill_count = count;
        facts.warnings = warnings.iter().map(|&it| it.to_owned()).collect();
        assert_eq!(plan(&repository, NOW).conditions[0].message, says);
    }
}

#[test]
fn whoever_fetches_is_waited_for_and_failures_by_time() {
    let running = plan(&snapshot().running("t1"), NOW);
    assert_eq!(running.requeue, Requeue::After(Duration::from_secs(1)));
    let fetch = (Kind::SkillRepository, Uid::from("clone-r1".to_owned()));
    assert_eq!(running.waits_for, [fetch]);
    let failed = plan(&snapshot().failed("t1", false, 1), NOW);
    let Requeue::After(left) = failed.requeue else {
        panic!("{failed:?}")
    };
    assert!(left < Duration::from_secs(300) && !left.is_zero());
}

/// How fetches end in the model.
#[derive(Debug, Clone)]
enum End {
    Commit(u8),
    Transient,
    Terminal,
}

#[derive(Debug, Clone)]
enum Event {
    Request,
    Cancel,
    FilesLost,
    Restart,
    End(End),
    Pass,
}

fn events() -> impl Strategy<Value = Event> {
    let end = prop_oneof![
        (0..3_u8).prop_map(End::Commit),
        Just(End::Transient),
        Just(End::Terminal)
    ];
    prop_oneof![
        1 => Just(Event::Request),
        1 => Just(Event::Cancel),
        1 => Just(Event::FilesLost),
        1 => Just(Event::Restart),
        3 => end.prop_map(Event::End),
        5 => Just(Event::Pass),
    ]
}

struct Model {
    snapshot: Repository,
    files: Option<String>,
    now: Timestamp,
    starts: usize,
}

impl Model {
    fn end(&mut self, end: &End) {
        let CloneReport::Running { token, .. } = &self.snapshot.report else {
            return;
        };
        let token = token.clone();
        self.snapshot.report = match end {
            End::Commit(number) => {
                let commit = format!("c{number}");
                let known = self.files.as_ref() == Some(&commit);
                self.files = Some(commit.clone());
                let mut fetched = fetched(&commit);
                fetched.skills = fetched.skills.filter(|_| !known);
                CloneReport::Done { token, fetched }
            }
            End::Transient | End::Terminal => CloneReport::Failed {
                token,
                reason: Reason::CloneFailed,
                message: "no".to_owned(),
                terminal: matches!(end, End::Terminal),
                failures: 1,
                at: self.now,
            },
        };
    }

    fn pass(&mut self) -> bool {
        let known = self.snapshot.row.facts.commit_id.clone();
        self.snapshot.here = known.is_some() && known == self.files;
        let plan = plan(&self.snapshot, self.now);
        for action in &plan.actions {
            match action {
                Action::Start { row } => {
                    self.starts += 1;
                    self.snapshot.report = CloneReport::Running {
                        token: row.pull_token.clone(),
                        progress: None,
                    };
                }
                Action::Cancel => self.snapshot.report = CloneReport::Idle,
                Action::SaveFacts(facts) => self.snapshot.row().facts = (**facts).clone(),
                Action::RemoveFiles | Action::Purge => panic!("nobody deleted it"),
            }
        }
        !plan.actions.is_empty()
    }
}

proptest! {
    #[test]
    fn each_request_comes_to_an_end_and_then_nothing_is_fetched(
        events in proptest::collection::vec(events(), 0..30),
    ) {
        let mut model = Model { snapshot: snapshot(), files: None, now: NOW, starts: 0 };
        let mut requests = 1;
        for event in events {
            match event {
                Event::Request => {
                    requests += 1;
                    let row = model.snapshot.row();
                    row.pull_token = format!("t{requests}");
                    row.cancelled = false;
                }
                Event::Cancel => model.snapshot.row().cancelled = true,
                Event::FilesLost => model.files = None,
                Event::Restart => model.snapshot.report = CloneReport::Idle,
                Event::End(end) => model.end(&end),
                Event::Pass => {
                    model.pass();
                }
            }
        }
        let mut passes = 0;
        loop {
            let acted = model.pass();
            if !acted && !matches!(model.snapshot.report, CloneReport::Running { .. }) {
                let report = &model.snapshot.report;
                if !matches!(report, CloneReport::Failed { terminal: false, .. }) {
                    break;
                }
                model.now = model.now.plus(Duration::from_secs(600));
                let row = &model.snapshot.row;
                if row.facts.failed_token.as_ref() == Some(&row.pull_token)
                    || model.snapshot.here && row.facts.pull_token.as_ref() == Some(&row.pull_token)
                {
                    break;
                }
            }
            model.end(&End::Commit(7));
            passes += 1;
            prop_assert!(passes <= 8, "no end: {:?}", model.snapshot);
        }
        let row = &model.snapshot.row;
        let answered = row.facts.pull_token.as_ref() == Some(&row.pull_token);
        let failed = row.facts.failed_token.as_ref() == Some(&row.pull_token);
        prop_assert!(failed || (answered && model.snapshot.here));
        let starts = model.starts;
        prop_assert!(!model.pass());
        prop_assert_eq!(model.starts, starts);
    }
}
