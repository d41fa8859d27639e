//! Users and groups who come from a directory.
//!
//! Both stores name new users and groups themselves, so they are compared by name. Whoever was seen since the directory
//! was asked is a matter of the real one only: nobody signs in in memory.

use std::time::Duration;

use reconcilers::directory::{DirectoryStore, Known, UserPage};
use schema::directory::{DirectoryFacts, Held, Listed, SyncScope, UserChange};
use schema::group;
use schema::ids::{PlainName, UidPart};
use schema::user::Template;
use schema::{config::AuthMode, directory};

use super::*;

/// One of them in two ways to write it.
const PEOPLE: [&str; 6] = ["ada", "Bob", "bob", "cy", "dee", "eve"];
const TEAMS: [&str; 4] = ["all", "dev", "Ops", "ops"];

/// A change of somebody, by name.
#[derive(Debug, Clone)]
enum Step {
    Add(Listed),
    Update(Listed),
    /// Of the user with the name.
    Rename(UserName, Listed),
    /// Whether an identity is recorded, or forgotten.
    Identify(UserName, bool),
    Disable(UserName),
    /// The time may be another than that of the account.
    Remove(UserName, Option<Timestamp>),
}

fn one_of<T: Clone>(rng: &mut StdRng, among: &[T]) -> T {
    among[rng.random_range(0..among.len())].clone()
}

fn some<T: Clone>(rng: &mut StdRng, among: &[T]) -> Vec<T> {
    let among = among.iter().cloned();
    among.filter(|_| rng.random_bool(0.4)).collect()
}

fn identity(name: &UserName) -> String {
    format!("entryuuid:{}", name.key())
}

/// What the directory says of somebody, or of part of it nothing.
fn listed(rng: &mut StdRng, name: UserName) -> Listed {
    let groups = some(rng, &TEAMS).into_iter();
    let groups = groups.map(|name| name.parse().unwrap()).collect();
    Listed {
        subject: format!("uid={name},ou={}", rng.random_range(0..2)),
        identity: rng.random_bool(0.5).then(|| identity(&name)),
        groups: rng.random_bool(0.8).then_some(groups),
        name,
    }
}

/// The changes, as whoever knows these users makes them.
fn changes(steps: &[Step], known: &Known) -> Vec<UserChange> {
    let user = |name: &UserName| {
        let mut users = known.users.iter();
        users.find(|user| user.name.key() == name.key())
    };
    let change = |step: &Step| match step {
        Step::Add(listed) => Some(UserChange::Add(listed.clone())),
        Step::Update(listed) => {
            let user = user(&listed.name)?;
            Some(UserChange::Update {
                uid: user.uid.clone(),
                listed: listed.clone(),
                back: user.missing_since.is_some(),
            })
        }
        Step::Rename(from, listed) => {
            let user = user(from)?;
            Some(UserChange::Rename {
                uid: user.uid.clone(),
                from: from.clone(),
                listed: listed.clone(),
                back: user.missing_since.is_some(),
            })
        }
        Step::Identify(name, known) => Some(UserChange::Identify {
            uid: user(name)?.uid.clone(),
            name: name.clone(),
            subject: "uid=known".to_owned(),
            identity: known.then(|| identity(name)),
        }),
        Step::Disable(name) => Some(UserChange::Disable {
            uid: user(name)?.uid.clone(),
            name: name.clone(),
        }),
        Step::Remove(name, since) => Some(UserChange::Remove {
            since: *since,
            uid: user(name)?.uid.clone(),
            name: name.clone(),
        }),
    };
    steps.iter().filter_map(change).collect()
}

/// Users and groups without what no two stores have in common.
fn shape(known: &Known) -> (Vec<String>, Vec<String>) {
    let users = known.users.iter().map(|user| {
        let (name, digest, missing) = (&user.name, &user.digest, user.missing_since);
        let (identity, previous) = (&user.identity, &user.previous_name);
        format!(
            "{name} {digest} {missing:?} {} {identity} {previous:?}",
            user.leaving
        )
    });
    let groups = known.groups.iter();
    let groups = groups.map(|it| format!("{} {} {}", it.name, it.in_use, it.has_members));
    let (mut users, mut groups): (Vec<_>, Vec<_>) = (users.collect(), groups.collect());
    users.sort();
    groups.sort();
    (users, groups)
}

/// What has happened in a story.
#[derive(Debug, Default)]
struct Seen {
    missing: usize,
    back: usize,
    leaving: usize,
    renamed: usize,
    groups_gone: usize,
}

impl Both {
    async fn known(&self) -> [Known; 2] {
        let [memory, real]: [&dyn DirectoryStore; 2] = [&self.memory, &self.real];
        [memory.known().await.unwrap(), real.known().await.unwrap()]
    }

    async fn set_mode(&self, mode: AuthMode) {
        let stored = Config::from_stored(self.memory.config().await.unwrap().0);
        let document = json!({ "web.auth_mode": mode.to_string() });
        let changes = parse_patch(&document).unwrap().resolve(&stored).unwrap();
        let by = SavedBy {
            actor: "root",
            at: NOW,
        };
        let saved = write!(self, |tx| config::save(
            &mut tx, &self.key, &changes, None, by
        ));
        let saved = saved.map(|saved| saved.generation);
        same("mode", &self.memory.configure(&changes), &saved);
    }

    async fn write_of_directory(&self, rng: &mut StdRng, now: Timestamp) {
        match rng.random_range(0..24) {
            0..11 => self.write_page(rng, now).await,
            11..14 => self.write_groups(rng, now).await,
            14..16 => self.write_facts(rng, now).await,
            16..18 => self.write_request(rng).await,
            18 => self.remove_somebody(rng, now).await,
            19..22 => self.purge_somebody(rng).await,
            22 => self.end_renames(rng).await,
            _ => {
                // Changes of a directory that is no longer used come to nothing.
                self.set_mode(AuthMode::Local).await;
                self.write_page(rng, now).await;
                self.write_groups(rng, now).await;
                self.set_mode(AuthMode::Ldap).await;
            }
        }
    }

    /// Containers and directories of some renamed users follow.
    async fn end_renames(&self, rng: &mut StdRng) {
        let [memory, real] = self.known().await;
        for user in memory.users {
            let twin = real.users.iter().find(|it| it.name == user.name);
            let Some((previous, twin)) = user.previous_name.zip(twin) else {
                continue;
            };
            same(
                "released",
                &self
                    .memory
                    .release_previous_name(&user.uid, &previous)
                    .await,
                &self.real.release_previous_name(&twin.uid, &previous).await,
            );
            if rng.random_bool(0.7) {
                same(
                    "renamed",
                    &self.memory.end_rename(&user.uid, &previous).await,
                    &self.real.end_rename(&twin.uid, &previous).await,
                );
            }
        }
    }

    async fn write_page(&self, rng: &mut StdRng, now: Timestamp) {
        let known = self.known().await;
        let mut steps = Vec::new();
        for _ in 0..rng.random_range(1..5) {
            let name: UserName = one_of(rng, &PEOPLE).parse().unwrap();
            let mut users = known[1].users.iter();
            let user = users.find(|user| user.name.key() == name.key());
            // What is planned for somebody is one thing, and nothing for who is leaving.
            let planned = steps.iter().any(|step| match step {
                Step::Add(listed) | Step::Update(listed) => listed.name.key() == name.key(),
                Step::Rename(from, listed) => [from.key(), listed.name.key()].contains(&name.key()),
                Step::Disable(other) | Step::Remove(other, _) | Step::Identify(other, _) => {
                    other.key() == name.key()
                }
            });
            if planned || user.is_some_and(|user| user.leaving) {
                continue;
            }
            let missing = user.and_then(|user| user.missing_since);
            steps.push(match rng.random_range(0..13) {
                10 | 11 => {
                    let to: UserName = one_of(rng, &PEOPLE).parse().unwrap();
                    if to.key() == name.key() {
                        continue;
                    }
                    Step::Rename(name, listed(rng, to))
                }
                12 => Step::Identify(name, rng.random_bool(0.7)),
                0..4 => Step::Add(listed(rng, name)),
                4..7 => Step::Update(listed(rng, name)),
                7 | 8 => Step::Disable(name),
                _ if rng.random_bool(0.2) => Step::Remove(name, Some(NOW)),
                _ => Step::Remove(name, missing),
            });
        }
        let [memory, real] = known.each_ref().map(|known| UserPage {
            changes: changes(&steps, known),
            template: Template {
                image_ref: "echo:1".to_owned(),
                desired: Desired::Running,
            },
            asked_at: now,
            uids: UidPart::WHOLE,
        });
        same(
            &format!("{steps:?}"),
            &self.memory.apply_users(&memory, now).await,
            &self.real.apply_users(&real, now).await,
        );
    }

    async fn write_groups(&self, rng: &mut StdRng, now: Timestamp) {
        let add: Vec<PlainName> = some(rng, &TEAMS)
            .iter()
            .map(|name| name.parse().unwrap())
            .collect();
        let gone = some(rng, &TEAMS);
        let [memory, real] = self.known().await.map(|known| -> Vec<Uid> {
            let gone = known
                .groups
                .into_iter()
                .filter(|group| gone.contains(&group.name.as_str()));
            gone.map(|group| group.uid).collect()
        });
        same(
            "groups",
            &self.memory.apply_groups(&add, &memory, now).await,
            &self.real.apply_groups(&add, &real, now).await,
        );
    }

    async fn write_facts(&self, rng: &mut StdRng, now: Timestamp) {
        let answers = rng.random_bool(0.7);
        let held = rng.random_bool(0.3).then(|| Held {
            digest: "d".to_owned(),
            what: "all".to_owned(),
        });
        let confirmed = rng.random_bool(0.3).then(|| "user ada".to_owned());
        let mut facts = DirectoryFacts {
            synced_at: Some(now),
            held,
            confirmed_names: confirmed.into_iter().collect(),
            ..DirectoryFacts::default()
        };
        facts.result.counts.users = rng.random_range(0..3);
        let [memory, real]: [&dyn DirectoryStore; 2] = [&self.memory, &self.real];
        let mut said = Vec::new();
        for store in [memory, real] {
            let row = store.directory_row().await.unwrap().unwrap();
            let answered = if answers {
                row.request.token
            } else {
                row.facts.answered
            };
            let facts = DirectoryFacts {
                answered,
                ..facts.clone()
            };
            said.push(store.save_directory_facts(&facts).await);
        }
        same("facts", &said[0], &said[1]);
    }

    async fn write_request(&self, rng: &mut StdRng) {
        let scope = one_of(rng, &[SyncScope::Users, SyncScope::Groups]);
        let confirm = one_of(rng, &["", "d1", "d2"]);
        let real = write!(self, |tx| directory::request(&mut tx, scope, confirm, None));
        same("request", &self.memory.request_sync(scope, confirm), &real);
    }

    /// What each store calls a user of this name.
    async fn uids(&self, name: &str) -> [Option<Uid>; 2] {
        self.known().await.map(|known| {
            let mut users = known.users.into_iter();
            let found = users.find(|user| user.name.as_str() == name);
            found.map(|user| user.uid)
        })
    }

    /// An administrator removes somebody.
    async fn remove_somebody(&self, rng: &mut StdRng, now: Timestamp) {
        let name = one_of(rng, &PEOPLE);
        let [one, other] = self.uids(name).await;
        let Some((one, other)) = one.zip(other) else {
            return;
        };
        let real = write!(self, |tx| user::delete(&mut tx, &other, now));
        same("delete", &self.memory.delete_user(&one, now), &real);
    }

    /// What is left of whoever is leaving goes.
    async fn purge_somebody(&self, rng: &mut StdRng) {
        let name = one_of(rng, &PEOPLE);
        let [one, other] = self.uids(name).await;
        let Some((one, other)) = one.zip(other) else {
            return;
        };
        same(
            "purge container",
            &self.memory.purge_container(&one).await,
            &self.real.purge_container(&other).await,
        );
        same(
            "purge user",
            &self.memory.purge_user(&one).await,
            &self.real.purge_user(&other).await,
        );
    }

    /// Everything that the reconciler asks is answered the same, and the same has become of everybody's objects.
    async fn compare_directories(&self, what: &str) -> Known {
        let [one, other] = self.known().await;
        assert_eq!(
            shape(&one),
            shape(&other),
            "{what}: memory, then the real one"
        );
        assert_eq!(one.superadmins, other.superadmins, "{what}");
        let [memory, real]: [&dyn DirectoryStore; 2] = [&self.memory, &self.real];
        let rows = [memory, real].map(|store| async {
            let row = store.directory_row().await.unwrap().unwrap();
            let unanswered = row.is_unanswered();
            // Tokens are each store's own.
            let facts = DirectoryFacts {
                answered: String::new(),
                ..row.facts
            };
            let request = (row.request.scope, row.request.confirm);
            (row.generation, request, unanswered, facts)
        });
        let [row, real_row] = rows;
        assert_eq!(row.await, real_row.await, "{what}");
        let mut connection = self.db.read().await.unwrap();
        let names = group::names_of_users(&mut connection).await.unwrap();
        let said = self.memory.synchronised();
        let mut present = 0;
        for user in &one.users {
            let twin = other.users.iter().find(|it| it.name == user.name).unwrap();
            for kind in [
                Kind::User,
                Kind::Container,
                Kind::AgentConfig,
                Kind::SkillSet,
            ] {
                let object = object::get(&mut connection, kind, &twin.uid).await.unwrap();
                let generation = self.memory.peek(kind, &user.uid).map(|found| found.0);
                let real = object.map(|object| object.generation);
                assert_eq!(generation, real, "{what}: {kind} of {}", user.name);
            }
            let container = container::get(&mut connection, &twin.uid).await.unwrap();
            let disabled = container.map(|row| row.disabled);
            let row = self.memory.peek_container(&user.uid);
            assert_eq!(
                row.map(|row| row.disabled),
                disabled,
                "{what}: {}",
                user.name
            );
            let groups = names.get(&twin.uid).into_iter().flatten();
            let groups: BTreeSet<String> = groups.map(ToString::to_string).collect();
            if user.leaving {
                assert_eq!(groups, BTreeSet::new(), "{what}: {}", user.name);
            } else {
                present += 1;
                let missing = user.missing_since.is_some();
                assert_eq!(said[user.name.as_str()], (missing, groups), "{what}");
            }
        }
        assert_eq!(said.len(), present, "{what}");
        other
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_from_a_directory_is_the_same_in_memory() {
    let mut seen = Seen::default();
    for story in 1..=stories() {
        let both = Both::new().await;
        both.set_mode(AuthMode::Ldap).await;
        let hash = SecretString::from("hash");
        let root: UserName = "root".parse().unwrap();
        write!(both, |tx| user::create_superadmin(
            &mut tx, &root, &hash, NOW
        ))
        .unwrap();
        let mut rng = StdRng::seed_from_u64(3000 + story);
        let mut before = Known::default();
        for step in 0..STEPS {
            let now = NOW.plus(Duration::from_secs(step as u64 + 1));
            both.write_of_directory(&mut rng, now).await;
            let what = format!("story {story}, step {step}");
            let known = both.compare_directories(&what).await;
            for user in &known.users {
                let was = before.users.iter().find(|was| was.uid == user.uid);
                let was_missing = was.is_some_and(|was| was.missing_since.is_some());
                seen.missing += usize::from(user.missing_since.is_some());
                seen.back += usize::from(was_missing && user.missing_since.is_none());
                seen.leaving += usize::from(user.leaving);
                seen.renamed += usize::from(was.is_some_and(|was| was.name != user.name));
            }
            let there = |group: &&schema::directory::KnownGroup| {
                known.groups.iter().any(|it| it.uid == group.uid)
            };
            seen.groups_gone += before.groups.iter().filter(|it| !there(it)).count();
            before = known;
        }
    }
    let Seen {
        missing,
        back,
        leaving,
        renamed,
        groups_gone,
    } = seen;
    // Most names that are asked for are taken.
    assert!(
        [missing, back, leaving, groups_gone]
            .iter()
            .all(|n| *n > 20)
            && renamed > 3,
        "{seen:?}"
    );
}
