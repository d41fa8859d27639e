//! Groups, skills and who gets which; skills in workspaces and in the store.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reconcilers::skill::{SkillState, SkillStore};
use reconcilers::skill_set::SkillSetStore;
use schema::group::{self, NewGroup};
use schema::home::{AskedSkill, FoundSkill, PreviousSkill};
use schema::ids::{PlainName, SkillName};
use schema::skill::{self, NewVersion, Origin, Subject, TreeDigest, TreeStamp};
use schema::skill_set::{Deployment, SkillSetRow};
use schema::skill_store::{SkillStore as Store, TreeLimits};

use super::*;

const GROUPS: [&str; 4] = ["all", "dev", "ops", "web"];
const SKILLS: [&str; 4] = ["docx", "pdf", "pdf-2", "zip"];

fn digest(of: char) -> TreeDigest {
    of.to_string().repeat(64).parse().unwrap()
}

fn one_of<T: Clone>(rng: &mut StdRng, among: &[T]) -> T {
    among[rng.random_range(0..among.len())].clone()
}

impl Both {
    async fn skill(&self, name: &str) -> Option<schema::skill::SkillRow> {
        let mut connection = self.db.read().await.unwrap();
        let name = name.parse().unwrap();
        skill::find(&mut connection, &name).await.unwrap()
    }

    async fn group(&self, name: &str) -> Option<Uid> {
        let mut connection = self.db.read().await.unwrap();
        let name: PlainName = name.parse().unwrap();
        let group = group::find(&mut connection, &name).await.unwrap();
        group.map(|group| group.uid)
    }

    /// Users who are not going.
    async fn living(&self) -> Vec<Uid> {
        let rows: Vec<(Uid, UserRow)> = self.real.rows().await.unwrap();
        let living = rows.into_iter().filter(|(_, row)| row.deleted_at.is_none());
        living.map(|(uid, _)| uid).collect()
    }

    async fn write_of_skills(&self, rng: &mut StdRng, uids: &mut Vec<Uid>, now: Timestamp) {
        match rng.random_range(0..40) {
            0..3 => return self.create(rng, uids).await,
            3 => self.remove_some_user(rng, uids, now).await,
            4..12 => self.write_group(rng, now).await,
            12..18 => self.write_member(rng).await,
            18..26 => self.write_skill(rng, now).await,
            26..34 => self.write_binding(rng).await,
            34..37 => self.write_defaults(rng).await,
            _ => self.deploy(rng, uids).await,
        }
    }

    /// Somebody is removed, perhaps to the last trace.
    async fn remove_some_user(&self, rng: &mut StdRng, uids: &[Uid], now: Timestamp) {
        if uids.is_empty() {
            return;
        }
        let (memory, uid) = (&self.memory, one_of(rng, uids));
        let real = write!(self, |tx| user::delete(&mut tx, &uid, now));
        same("delete", &memory.delete_user(&uid, now), &real);
        if rng.random_bool(0.7) {
            same(
                "purge container",
                &memory.purge_container(&uid).await,
                &self.real.purge_container(&uid).await,
            );
            same(
                "purge user",
                &memory.purge_user(&uid).await,
                &self.real.purge_user(&uid).await,
            );
        }
    }

    async fn write_group(&self, rng: &mut StdRng, now: Timestamp) {
        let name = one_of(rng, &GROUPS);
        let found = self.group(name).await;
        if rng.random_bool(0.2) {
            if let Some(uid) = found {
                write!(self, |tx| group::delete(&mut tx, &uid)).unwrap();
                self.memory.delete_group(name).unwrap();
            }
            return;
        }
        let parent = rng.random_bool(0.7).then(|| one_of(rng, &GROUPS));
        let parent_uid = match parent {
            Some(parent) => self.group(parent).await,
            None => None,
        };
        // Who looks a group up finds none.
        let parent = parent.filter(|_| parent_uid.is_some());
        let real = match found {
            Some(uid) => write!(self, |tx| group::set_parent(
                &mut tx,
                &uid,
                parent_uid.as_ref()
            ))
            .map(drop),
            None => {
                let new = NewGroup {
                    name: name.parse().unwrap(),
                    parent_uid,
                    source: Source::Local,
                    description: String::new(),
                };
                write!(self, |tx| group::create(&mut tx, &new, now)).map(drop)
            }
        };
        same("group", &self.memory.put_group(name, parent), &real);
    }

    async fn write_member(&self, rng: &mut StdRng) {
        let name = one_of(rng, &GROUPS);
        let living = self.living().await;
        let Some(group) = self.group(name).await.filter(|_| !living.is_empty()) else {
            return;
        };
        let user = one_of(rng, &living);
        let member = rng.random_bool(0.7);
        match member {
            true => {
                let users = vec![user.clone()];
                write!(self, |tx| group::add_members(&mut tx, &group, users)).unwrap();
            }
            false => {
                write!(self, |tx| group::remove_member(&mut tx, &group, &user)).unwrap();
            }
        }
        self.memory.set_member(name, &user, member).unwrap();
    }

    async fn write_skill(&self, rng: &mut StdRng, now: Timestamp) {
        let name = one_of(rng, &SKILLS);
        let found = self.skill(name).await;
        let choice = rng.random_range(0..10);
        match (choice, found) {
            (0, Some(row)) => {
                let uid = row.uid;
                let real = write!(self, |tx| async {
                    skill::unbind_everywhere(&mut tx, &uid).await?;
                    skill::delete(&mut tx, &uid, now).await
                });
                same("delete", &self.memory.delete_skill(&uid, now), &real);
            }
            (1, Some(row)) if row.deleted_at.is_some() => same(
                "purge skill",
                &self.memory.purge_skill(&row.uid).await,
                &self.real.purge_skill(&row.uid).await,
            ),
            (2 | 3, Some(row)) if row.deleted_at.is_none() => {
                let number = rng.random_range(1..row.version.number + 2);
                let real = write!(self, |tx| skill::roll_back(&mut tx, &row.uid, number, None));
                let real = real.map(|(generation, _)| generation);
                same(
                    "roll back",
                    &self.memory.roll_back_skill(&row.uid, number),
                    &real,
                );
            }
            _ => {
                let digest = digest(one_of(rng, &['a', 'b', 'c', 'd']));
                let new = NewVersion {
                    digest: digest.clone(),
                    description: String::new(),
                    version: String::new(),
                    license: String::new(),
                    has_manifest: true,
                    file_count: 1,
                    size: 1,
                    origin: Origin::default(),
                    warnings: Vec::new(),
                };
                // Now and then in other letters.
                let name = match rng.random_bool(0.1) {
                    true => name.to_uppercase(),
                    false => name.to_owned(),
                };
                let name: SkillName = name.parse().unwrap();
                let saved = write!(self, |tx| skill::save_version(
                    &mut tx, &name, &new, None, now
                ));
                let uid = match &saved {
                    Ok((saved, _)) => saved.uid.clone(),
                    Err(_) => Uid::random(),
                };
                let real = saved.map(|(saved, _)| saved.generation);
                same(
                    "version",
                    &self.memory.put_skill(&uid, &name, &digest, now),
                    &real,
                );
            }
        }
    }

    async fn write_binding(&self, rng: &mut StdRng) {
        let Some(row) = self.skill(one_of(rng, &SKILLS)).await else {
            return;
        };
        let (skill, bound) = (row.uid, rng.random_bool(0.7));
        if bound && row.deleted_at.is_some() {
            return;
        }
        let (name, living) = (one_of(rng, &GROUPS), self.living().await);
        let group = self.group(name).await.filter(|_| rng.random_bool(0.6));
        let user = (!living.is_empty()).then(|| one_of(rng, &living));
        let subject = match (&group, &user) {
            (Some(group), _) => Subject::Group(group),
            (None, Some(user)) => Subject::User(user),
            (None, None) => return,
        };
        match bound {
            true => write!(self, |tx| skill::bind(&mut tx, &skill, subject)).unwrap(),
            false => write!(self, |tx| skill::unbind(&mut tx, &skill, subject)).unwrap(),
        };
        let name = group.is_some().then_some(name);
        let bind = self.memory.set_bound(&skill, name, user.as_ref(), bound);
        bind.unwrap();
    }

    async fn write_defaults(&self, rng: &mut StdRng) {
        let rows: Vec<(Uid, SkillState)> = self.real.rows().await.unwrap();
        let mut chosen = Vec::new();
        for (uid, state) in rows {
            if state.row.deleted_at.is_none() && rng.random_bool(0.3) {
                chosen.push((uid, state.row.name.to_string()));
            }
        }
        let (uids, names): (Vec<Uid>, Vec<String>) = chosen.into_iter().unzip();
        let stored = Config::from_stored(self.memory.config().await.unwrap().0);
        let document = json!({ "skills.defaults": names });
        let changes = parse_patch(&document).unwrap().resolve(&stored).unwrap();
        let by = SavedBy {
            actor: "root",
            at: NOW,
        };
        let saved = write!(self, |tx| config::save(
            &mut tx, &self.key, &changes, None, by
        ));
        same(
            "configure",
            &self.memory.configure(&changes),
            &saved.map(|saved| saved.generation),
        );
        // What is saved as it is changes nothing: a skill that was removed since is not bound again.
        if !changes.0.is_empty() {
            self.memory.set_default_skills(&uids).unwrap();
        }
    }

    /// The reconciler remembers something.
    async fn deploy(&self, rng: &mut StdRng, uids: &[Uid]) {
        let user = match uids.is_empty() {
            true => Uid::random(),
            false => one_of(rng, uids),
        };
        let stamp: TreeStamp = "1".repeat(64).parse().unwrap();
        let deployments: Vec<Deployment> = SKILLS
            .iter()
            .filter(|_| rng.random_bool(0.5))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|name| Deployment {
                name: name.parse().unwrap(),
                digest: rng.random_bool(0.5).then(|| digest('a')),
                stamp: rng.random_bool(0.5).then(|| stamp.clone()),
                next: rng.random_bool(0.5).then(|| digest('b')),
                file_count: rng.random_range(0..3),
                size: 7,
            })
            .collect();
        same(
            "deployments",
            &self.memory.save_deployments(&user, &deployments).await,
            &self.real.save_deployments(&user, &deployments).await,
        );
    }

    async fn compare_skills(&self, uids: &[Uid]) {
        let (memory, real) = (&self.memory, &self.real);
        self.compare_rows::<SkillSetRow>("skill set").await;
        self.compare_rows::<SkillState>("skill").await;
        for uid in uids {
            same(
                "skills of a user",
                &memory.skills(uid).await,
                &real.skills(uid).await,
            );
        }
        for name in SKILLS {
            let name = name.parse().unwrap();
            let mut deployed = real.deployed(&name).await.unwrap();
            deployed.sort();
            assert_eq!(memory.deployed(&name).await.unwrap(), deployed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gets_which_skills_is_the_same_in_memory() {
    let mut most = 0;
    for story in 1..=stories() {
        let both = Both::new().await;
        let mut rng = StdRng::seed_from_u64(1000 + story);
        let mut uids = Vec::new();
        for step in 0..STEPS {
            let now = NOW.plus(Duration::from_secs(step as u64));
            both.write_of_skills(&mut rng, &mut uids, now).await;
            both.compare_skills(&uids).await;
            for (kind, memory, real) in &both.statuses {
                if matches!(kind, Kind::Skill | Kind::SkillSet) {
                    both.compare_dirty(*kind, memory, real).await;
                }
            }
            for uid in &uids {
                let held = both.real.skills(uid).await.unwrap().0;
                most = most.max(held.len());
                // Nobody gets anything by an account that is gone (L6).
                if !both.living().await.contains(uid) {
                    let mut connection = both.db.read().await.unwrap();
                    let all = skill::defaults(&mut connection).await.unwrap();
                    assert!(held.len() <= all.len());
                }
            }
        }
        both.compare(&uids).await;
        assert!(uids.len() > 2, "names are used again: {uids:?}");
    }
    assert_eq!(most, SKILLS.len());
}

/// The trees that there are, by a letter.
const TREES: [&str; 5] = ["a", "b", "c", "e", "f"];

fn plant(at: &Path, tree: &str) {
    fs::create_dir_all(at.join("deep")).unwrap();
    fs::write(at.join("SKILL.md"), format!("# {tree}")).unwrap();
    fs::write(at.join("deep/file"), tree).unwrap();
}

fn wipe(at: &Path) {
    match fs::symlink_metadata(at) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(at).unwrap(),
        Ok(_) => fs::remove_file(at).unwrap(),
        Err(_) => {}
    }
}

/// What was found, without what no two copies have in common.
fn shape(found: &[FoundSkill], leftovers: bool) -> String {
    let found = found.iter().map(|found| match found {
        FoundSkill::Tree { digest, .. } => digest.to_string(),
        other => format!("{other:?}"),
    });
    format!("{:?} {leftovers}", found.collect::<Vec<_>>())
}

fn previous(found: &FoundSkill, choice: u32, at: Timestamp, skill: &SkillName) -> PreviousSkill {
    let kept_as = format!("{skill}-{}", at.to_basic());
    match (found, choice) {
        (_, 0) => PreviousSkill::Nothing,
        (FoundSkill::Tree { stamp, .. }, 1..4) => PreviousSkill::Unchanged {
            stamp: stamp.clone(),
            kept_as,
        },
        (_, 4) => PreviousSkill::Unchanged {
            stamp: "0".repeat(64).parse().unwrap(),
            kept_as,
        },
        _ => PreviousSkill::Keep(kept_as),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_in_workspaces_and_in_the_store_are_the_same_in_memory() {
    for story in 1..=stories() {
        let dir = tempfile::tempdir().unwrap();
        let real = LocalDataDir::open(dir.path(), "instance").unwrap();
        let store = Store::open(dir.path()).unwrap();
        let memory = MemoryDataDir::default();
        let mut rng = StdRng::seed_from_u64(2000 + story);
        let sources = tempfile::tempdir().unwrap();
        let scratch = Store::open(sources.path()).unwrap();
        let digests: Vec<TreeDigest> = TREES
            .iter()
            .map(|tree| {
                let source = sources.path().join(tree);
                plant(&source, tree);
                let opened = fs::File::open(source).unwrap();
                let name = "scratch".parse().unwrap();
                scratch.import_dir(&opened, &name).unwrap().digest
            })
            .collect();
        let uids: Vec<Uid> = (0..2_u8)
            .map(|n| Uid::from(format!("{n:x}").repeat(32)))
            .collect();
        let names: [SkillName; 3] = ["docx", "pdf", "pdf-2"].map(|name| name.parse().unwrap());
        for step in 0..STEPS {
            let what = format!("story {story}, step {step}");
            let at = NOW.plus(Duration::from_secs(step as u64 / 4));
            let uid = &one_of(&mut rng, &uids);
            let user: UserName = "ada".parse().unwrap();
            let skill = &one_of(&mut rng, &names);
            let number = rng.random_range(0..TREES.len());
            let place = dir.path().join("users/ada/.agent/workspace/skills");
            let choice = rng.random_range(0..30);
            let asked = || -> Vec<AskedSkill> {
                let asked = names.iter().map(|name| AskedSkill {
                    name: name.clone(),
                    known: Vec::new(),
                    limits: TreeLimits::LARGEST,
                });
                asked.collect()
            };
            let found = [
                memory.read_skills(&user, uid, asked()).await,
                real.read_skills(&user, uid, asked()).await,
            ];
            let index = names.iter().position(|name| name == skill).unwrap();
            let way = rng.random_range(0..7);
            let previous = found.each_ref().map(|found| match found {
                Ok(Some(seen)) => previous(&seen.skills[index], way, at, skill),
                _ => previous(&FoundSkill::Nothing, way, at, skill),
            });
            let answers = match choice {
                0..3 => [
                    kind_of(memory.ensure(&user, uid, None).await),
                    kind_of(real.ensure(&user, uid, None).await),
                ],
                3 if rng.random_bool(0.3) => [
                    kind_of(memory.archive(&user, uid, at, None, None).await),
                    kind_of(real.archive(&user, uid, at, None, None).await),
                ],
                3..8 => {
                    let source = fs::File::open(sources.path().join(TREES[number])).unwrap();
                    store.import_dir(&source, skill).unwrap();
                    let stored = store.digests(skill).unwrap();
                    let new = stored.iter().find(|(of, _)| *of == digests[number]);
                    memory.import_skill(skill, &digests[number], new.unwrap().1);
                    [String::new(), String::new()]
                }
                8 => {
                    let stored = store.digests(skill).unwrap();
                    let Some((of, imported)) = stored.first() else {
                        continue;
                    };
                    let limit = match rng.random_bool(0.5) {
                        true => *imported,
                        false => imported.minus(Duration::from_secs(1)),
                    };
                    let answers = [
                        memory.remove_version(skill, of, limit).await.is_ok(),
                        real.remove_version(skill, of, limit).await.is_ok(),
                    ];
                    answers.map(|answer| answer.to_string())
                }
                9..15 => [
                    staged(
                        memory
                            .stage_skill(&user, uid, skill, &digests[number])
                            .await,
                    ),
                    staged(real.stage_skill(&user, uid, skill, &digests[number]).await),
                ],
                15..22 => [
                    kind_of(memory.swap_skill(&user, uid, skill, &previous[0]).await),
                    kind_of(real.swap_skill(&user, uid, skill, &previous[1]).await),
                ],
                22..24 => [
                    kind_of(memory.remove_skill(&user, uid, skill, &previous[0]).await),
                    kind_of(real.remove_skill(&user, uid, skill, &previous[1]).await),
                ],
                24 => [
                    kind_of(memory.clear_skill_leftovers(&user, uid).await),
                    kind_of(real.clear_skill_leftovers(&user, uid).await),
                ],
                hand => {
                    let at = place.join(skill.as_str());
                    if memory.owner_of(&user).is_some() {
                        fs::create_dir_all(&place).unwrap();
                        wipe(&at);
                    }
                    let is_there = match hand {
                        25 => memory.hand_skill(&user, skill, None),
                        26 => memory.hand_other(&user, skill),
                        _ => memory.hand_skill(&user, skill, Some(&digests[number])),
                    };
                    match hand {
                        26 if is_there => fs::write(&at, b"a file").unwrap(),
                        27.. if is_there => plant(&at, TREES[number]),
                        _ => {}
                    }
                    [String::new(), String::new()]
                }
            };
            assert_eq!(answers[0], answers[1], "{what}: {choice} {previous:?}");
            for uid in &uids {
                let [one, other] = [
                    memory.read_skills(&user, uid, asked()).await,
                    real.read_skills(&user, uid, asked()).await,
                ]
                .map(|seen| {
                    let seen = seen.map(|seen| seen.map(|it| shape(&it.skills, it.leftovers)));
                    kind_of(seen)
                });
                assert_eq!(one, other, "{what}: {choice}");
                let asked = || {
                    names
                        .iter()
                        .cloned()
                        .map(|name| (name, TreeLimits::LARGEST))
                };
                let looks = [
                    memory.look_at_skills(&user, uid, asked().collect()).await,
                    real.look_at_skills(&user, uid, asked().collect()).await,
                ];
                let [one, other] = looks.map(|look| match look {
                    Ok(look) => {
                        let skills = look.map(|look| look.skills);
                        let kinds = skills.iter().flatten().map(std::mem::discriminant);
                        format!("{:?}", kinds.collect::<Vec<_>>())
                    }
                    Err(error) => kind_of::<()>(Err(error)),
                });
                assert_eq!(one, other, "{what}: {choice}");
            }
            assert_eq!(
                memory.stored_names().await.unwrap(),
                real.stored_names().await.unwrap()
            );
            for name in &names {
                assert_eq!(
                    memory.stored_versions(name).await.unwrap(),
                    real.stored_versions(name).await.unwrap(),
                    "{what}: {choice}"
                );
            }
            let replaced = place.join(".replaced");
            let kept: Vec<String> = memory.kept_skills(&user).into_keys().collect();
            let listed = match replaced.exists() {
                true => listing(&replaced),
                false => Vec::new(),
            };
            assert_eq!(kept, listed, "{what}: {choice}");
        }
    }
}

/// Where a skill was made no two have the same stamp.
fn staged(made: Result<TreeStamp, HomeError>) -> String {
    match made {
        Err(HomeError::NoSkill { .. }) => "no such skill".to_owned(),
        made => kind_of(made.map(drop)),
    }
}
