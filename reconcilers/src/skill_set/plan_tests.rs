use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use schema::condition::{ConditionStatus, Reason};
use schema::home::{FoundSkill, HomeState, PreviousSkill};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::skill::{TreeDigest, TreeStamp};
use schema::skill_set::{Deployment, DesiredSkill, SkillSetRow};

use super::observe::{Seen, Skill, Snapshot, World};
use super::plan::{Action, plan};

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

fn digest(of: char) -> TreeDigest {
    of.to_string().repeat(64).parse().unwrap()
}

fn stamp(number: u64) -> TreeStamp {
    format!("{number:064x}").parse().unwrap()
}

fn tree(of: char) -> FoundSkill {
    FoundSkill::Tree {
        digest: digest(of),
        stamp: stamp(1),
    }
}

fn desired(of: char) -> DesiredSkill {
    DesiredSkill {
        name: "pdf".parse().unwrap(),
        digest: digest(of),
        file_count: 2,
        size: 20,
    }
}

fn record(placed: Option<char>, next: Option<char>) -> Deployment {
    Deployment {
        name: "pdf".parse().unwrap(),
        digest: placed.map(digest),
        stamp: placed.map(|_| stamp(1)),
        next: next.map(digest),
        file_count: 2,
        size: 20,
    }
}

fn row() -> Arc<SkillSetRow> {
    Arc::new(SkillSetRow {
        uid: Uid::from("u1".to_owned()),
        name: "alice".parse().unwrap(),
        generation: Generation(1),
        deleted_at: None,
        adapter_generation: 1,
    })
}

fn snapshot(world: World) -> Snapshot {
    Snapshot { row: row(), world }
}

fn seen(wanted: Option<char>, recorded: Option<Deployment>, found: FoundSkill) -> Seen {
    Seen {
        skills: vec![Skill {
            name: "pdf".parse().unwrap(),
            desired: wanted.map(desired),
            recorded,
            found,
            missing: false,
        }],
        leftovers: false,
        look: None,
    }
}

/// What is done, by name and by what becomes of what lies there, and what is said.
fn planned(world: World) -> (Vec<String>, Reason) {
    let plan = plan(&snapshot(world), NOW);
    let actions = plan.actions.iter().map(|action| match action {
        Action::Clear { .. } => "clear".to_owned(),
        Action::Stage { digest, .. } => format!("stage {}", &digest.as_str()[..1]),
        Action::Remember(records) => {
            let of = |digest: &Option<TreeDigest>| match digest {
                Some(digest) => digest.as_str()[..1].to_owned(),
                None => "-".to_owned(),
            };
            let records = records
                .iter()
                .map(|it| format!(" {}>{}", of(&it.digest), of(&it.next)));
            format!("remember{}", records.collect::<String>())
        }
        Action::Swap {
            previous, digest, ..
        } => format!("swap {} {}", &digest.as_str()[..1], way(previous)),
        Action::Remove { previous, .. } => format!("remove {}", way(previous)),
    });
    (actions.collect(), plan.conditions[0].reason)
}

fn way(previous: &PreviousSkill) -> &'static str {
    match previous {
        PreviousSkill::Nothing => "nothing",
        PreviousSkill::Unchanged { .. } => "ours",
        PreviousSkill::Keep(name) => {
            assert_eq!(name, "pdf-20260511T114640Z");
            "keep"
        }
    }
}

#[test]
fn each_state_has_its_steps() {
    use FoundSkill::{Nothing, Other};
    use Reason::{Converged, NameConflict, Progressing};
    let placed = |of| Some(record(Some(of), None));
    let table = [
        // First deployment, and its rests after a kill.
        (
            Some('a'),
            None,
            Nothing,
            &["stage a", "remember ->a", "swap a nothing"][..],
            Progressing,
        ),
        (
            Some('a'),
            Some(record(None, Some('a'))),
            Nothing,
            &["stage a", "swap a nothing"],
            Progressing,
        ),
        (
            Some('a'),
            Some(record(None, Some('a'))),
            tree('a'),
            &["remember a>-"],
            Progressing,
        ),
        (Some('a'), placed('a'), tree('a'), &[], Converged),
        // An update, and its rests.
        (
            Some('b'),
            placed('a'),
            tree('a'),
            &["stage b", "remember a>b", "swap b ours"],
            Progressing,
        ),
        (
            Some('b'),
            Some(record(Some('a'), Some('b'))),
            tree('a'),
            &["stage b", "swap b ours"],
            Progressing,
        ),
        (
            Some('b'),
            Some(record(Some('a'), Some('b'))),
            tree('b'),
            &["remember b>-"],
            Progressing,
        ),
        // Killed in an update, and the next one came: what lies there is still ours.
        (
            Some('c'),
            Some(record(Some('a'), Some('b'))),
            tree('b'),
            &["stage c", "remember b>c", "swap c ours"],
            Progressing,
        ),
        (
            Some('c'),
            Some(record(None, Some('b'))),
            tree('b'),
            &["stage c", "remember b>c", "swap c ours"],
            Progressing,
        ),
        // Who makes the change of an update by hand has done our work.
        (
            Some('b'),
            placed('a'),
            tree('b'),
            &["remember b>-"],
            Progressing,
        ),
        // A user's change is repaired and kept.
        (
            Some('a'),
            placed('a'),
            tree('e'),
            &["stage a", "remember a>a", "swap a keep"],
            Progressing,
        ),
        (
            Some('a'),
            placed('a'),
            Other,
            &["stage a", "remember a>a", "swap a keep"],
            Progressing,
        ),
        (
            Some('a'),
            placed('a'),
            Nothing,
            &["stage a", "remember a>a", "swap a nothing"],
            Progressing,
        ),
        // Somebody else's.
        (Some('a'), None, tree('e'), &[], NameConflict),
        (Some('a'), None, tree('a'), &[], NameConflict),
        (Some('a'), None, Other, &[], NameConflict),
        (
            Some('a'),
            Some(record(None, Some('a'))),
            tree('e'),
            &[],
            NameConflict,
        ),
        // Wanted no more.
        (None, placed('a'), tree('a'), &["remove ours"], Progressing),
        (None, placed('a'), tree('e'), &["remove keep"], Progressing),
        (None, placed('a'), Other, &["remove keep"], Progressing),
        (None, placed('a'), Nothing, &["remember ->-"], Progressing),
        (
            None,
            Some(record(Some('a'), Some('b'))),
            tree('b'),
            &["remove ours"],
            Progressing,
        ),
        (
            None,
            Some(record(None, Some('b'))),
            tree('b'),
            &["remove ours"],
            Progressing,
        ),
        (
            None,
            Some(record(None, Some('b'))),
            tree('e'),
            &["remember ->-"],
            Progressing,
        ),
        (
            None,
            Some(record(None, Some('b'))),
            Nothing,
            &["remember ->-"],
            Progressing,
        ),
    ];
    for (wanted, recorded, found, steps, reason) in table {
        let what = format!("{wanted:?} {recorded:?} {found:?}");
        let world = World::Seen(Box::new(seen(wanted, recorded, found)));
        let steps: Vec<String> = steps.iter().map(|&step| step.to_owned()).collect();
        assert_eq!(planned(world), (steps, reason), "{what}");
    }
}

#[test]
fn what_is_no_reading_leads_to_no_step() {
    for (world, reason, waits) in [
        (World::Going, Reason::Terminating, false),
        (World::NoHome(HomeState::Missing), Reason::HomeMissing, true),
        (
            World::NoHome(HomeState::Conflict("why".to_owned())),
            Reason::HomeConflict,
            true,
        ),
        (
            World::Blocked("why".to_owned()),
            Reason::NameConflict,
            false,
        ),
        (
            World::Unchanged {
                said: "1 skill is deployed".into(),
                conflict: false,
            },
            Reason::Converged,
            false,
        ),
        (
            World::Unchanged {
                said: "0 skills".into(),
                conflict: true,
            },
            Reason::NameConflict,
            false,
        ),
    ] {
        let plan = plan(&snapshot(world), NOW);
        assert_eq!(plan.actions, []);
        let said = &plan.conditions[0];
        assert_eq!(said.reason, reason);
        assert_eq!(
            said.status == ConditionStatus::True,
            reason == Reason::Converged
        );
        let user = (Kind::User, Uid::from("u1".to_owned()));
        assert_eq!(plan.waits_for, Vec::from_iter(waits.then_some(user)));
    }
}

#[test]
fn a_version_that_nobody_has_holds_up_no_other_and_what_lies_there_stays() {
    let mut both = seen(Some('b'), Some(record(Some('a'), None)), tree('a'));
    both.skills[0].missing = true;
    let (steps, reason) = planned(World::Seen(Box::new(both.clone())));
    assert_eq!((steps, reason), (vec![], Reason::SkillMissing));
    let mut other = both.skills[0].clone();
    other.name = "zip".parse().unwrap();
    other.desired.as_mut().unwrap().name = other.name.clone();
    (other.recorded, other.found, other.missing) = (None, FoundSkill::Nothing, false);
    both.skills.push(other);
    let (steps, _) = planned(World::Seen(Box::new(both)));
    assert_eq!(steps, ["stage b", "remember ->b", "swap b nothing"]);
}

#[test]
fn leftovers_go_first() {
    let mut seen = seen(Some('a'), None, FoundSkill::Nothing);
    seen.leftovers = true;
    let (steps, _) = planned(World::Seen(Box::new(seen)));
    assert_eq!(steps[..2], ["clear", "stage a"]);
}

/// What lies under a name, and who put it there.
#[derive(Debug, Clone, PartialEq)]
struct Lying {
    digest: Option<char>,
    number: u64,
    by_user: bool,
}

/// A user's workspace as far as plans concern it.
#[derive(Debug, Default)]
struct Model {
    wanted: BTreeMap<String, char>,
    lying: BTreeMap<String, Lying>,
    kept: Vec<Lying>,
    records: BTreeMap<String, Deployment>,
    staged: BTreeMap<String, Lying>,
    numbers: u64,
}

/// What happens between two passes.
#[derive(Debug, Clone)]
enum Event {
    Want(usize, Option<char>),
    Hand(usize, Option<char>),
    Other(usize),
    /// A pass that is killed after so many steps.
    Pass(usize),
}

const NAMES: [&str; 3] = ["docx", "pdf", "pdf-2"];

fn letter(digest: &TreeDigest) -> char {
    digest.as_str().chars().next().unwrap()
}

impl Model {
    fn made(&mut self, digest: Option<char>, by_user: bool) -> Lying {
        self.numbers += 1;
        Lying {
            digest,
            number: self.numbers,
            by_user,
        }
    }

    fn look(&self) -> Snapshot {
        let mut skills = Vec::new();
        for name in NAMES {
            let wanted = self.wanted.get(name).map(|&of| DesiredSkill {
                name: name.parse().unwrap(),
                ..desired(of)
            });
            let recorded = self.records.get(name).cloned();
            if wanted.is_none() && recorded.is_none() {
                continue;
            }
            let found = match self.lying.get(name) {
                None => FoundSkill::Nothing,
                Some(Lying { digest: None, .. }) => FoundSkill::Other,
                Some(Lying {
                    digest: Some(of),
                    number,
                    ..
                }) => FoundSkill::Tree {
                    digest: digest(*of),
                    stamp: stamp(*number),
                },
            };
            skills.push(Skill {
                name: name.parse().unwrap(),
                desired: wanted,
                recorded,
                found,
                missing: false,
            });
        }
        snapshot(World::Seen(Box::new(Seen {
            skills,
            leftovers: !self.staged.is_empty(),
            look: None,
        })))
    }

    fn aside(&mut self, name: &str, previous: &PreviousSkill) {
        let Some(old) = self.lying.remove(name) else {
            return;
        };
        let goes = match previous {
            PreviousSkill::Nothing => panic!("{name} is overwritten"),
            PreviousSkill::Unchanged { stamp: known, .. } => *known == stamp(old.number),
            PreviousSkill::Keep(_) => false,
        };
        if !goes {
            self.kept.push(old);
        }
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Clear { .. } => self.staged.clear(),
            Action::Stage { skill, digest, .. } => {
                let made = self.made(Some(letter(digest)), false);
                self.staged.insert(skill.to_string(), made);
            }
            Action::Remember(records) => {
                for record in records {
                    let name = record.name.to_string();
                    match record.digest.is_none() && record.next.is_none() {
                        true => self.records.remove(&name),
                        false => self.records.insert(name, record.clone()),
                    };
                }
            }
            Action::Swap {
                skill,
                previous,
                digest,
                ..
            } => {
                let name = skill.to_string();
                assert_eq!(self.wanted.get(&name), Some(&letter(digest)));
                let made = self.staged.remove(&name).expect("it was made");
                self.aside(&name, previous);
                self.lying.insert(name, made);
            }
            Action::Remove {
                skill, previous, ..
            } => {
                let name = skill.to_string();
                assert!(!self.wanted.contains_key(&name), "{name} is wanted");
                self.aside(&name, previous);
            }
        }
    }

    /// A pass; whether something was done.
    fn pass(&mut self, budget: usize) -> bool {
        let snapshot = self.look();
        let plan = plan(&snapshot, NOW);
        assert_eq!(plan, super::plan::plan(&snapshot, NOW));
        let ready = plan.conditions[0].status == ConditionStatus::True;
        assert!(plan.actions.is_empty() || !ready);
        for action in plan.actions.iter().take(budget) {
            self.apply(action);
        }
        !plan.actions.is_empty()
    }
}

fn events() -> impl Strategy<Value = Event> {
    let name = || 0..NAMES.len();
    // What users write are other letters than what is deployed, but for 'a'.
    let version = || proptest::option::of(proptest::char::range('a', 'c'));
    let by_hand = || proptest::option::of(prop_oneof![Just('a'), Just('e'), Just('f')]);
    prop_oneof![
        2 => (name(), version()).prop_map(|(name, of)| Event::Want(name, of)),
        2 => (name(), by_hand()).prop_map(|(name, of)| Event::Hand(name, of)),
        1 => name().prop_map(Event::Other),
        5 => (0..8_usize).prop_map(Event::Pass),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_it_comes_to_rest_and_no_work_of_a_user_is_lost(
        events in proptest::collection::vec(events(), 0..40),
    ) {
        let mut model = Model::default();
        // What users have made and not removed themselves.
        let mut theirs: Vec<Lying> = Vec::new();
        for event in events {
            match event {
                Event::Want(name, Some(of)) => {
                    model.wanted.insert(NAMES[name].to_owned(), of);
                }
                Event::Want(name, None) => {
                    model.wanted.remove(NAMES[name]);
                }
                Event::Hand(name, of) => {
                    if let Some(old) = model.lying.remove(NAMES[name]) {
                        theirs.retain(|it| *it != old);
                    }
                    if of.is_some() {
                        let made = model.made(of, true);
                        theirs.push(made.clone());
                        model.lying.insert(NAMES[name].to_owned(), made);
                    }
                }
                Event::Other(name) => {
                    if let Some(old) = model.lying.remove(NAMES[name]) {
                        theirs.retain(|it| *it != old);
                    }
                    let made = model.made(None, true);
                    theirs.push(made.clone());
                    model.lying.insert(NAMES[name].to_owned(), made);
                }
                Event::Pass(budget) => {
                    model.pass(budget);
                }
            }
        }
        let mut passes = 0;
        while model.pass(usize::MAX) {
            passes += 1;
            prop_assert!(passes <= 4, "it never comes to rest: {model:?}");
        }
        prop_assert!(model.staged.is_empty());
        for name in NAMES {
            let lying = model.lying.get(name);
            match model.wanted.get(name) {
                Some(of) => {
                    let foreign = lying.is_some_and(|it| it.by_user);
                    prop_assert!(foreign || lying.and_then(|it| it.digest) == Some(*of));
                }
                None => prop_assert!(lying.is_none_or(|it| it.by_user), "{name}: {model:?}"),
            }
        }
        // Nothing of ours is kept as if a user had changed it.
        prop_assert!(model.kept.iter().all(|it| it.by_user), "{model:?}");
        for made in theirs {
            // What is just what we deploy is no work of the user's.
            let ours = made.digest.is_some_and(|of| of < 'd');
            let there = model.lying.values().chain(&model.kept).any(|it| *it == made);
            prop_assert!(there || ours, "{made:?} is lost: {model:?}");
        }
    }
}
