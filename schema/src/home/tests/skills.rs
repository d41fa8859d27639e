use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::fault::in_process;
use crate::ids::SkillName;
use crate::skill_store::{TreeDigest, TreeLimits, TreeStamp, digest_tree};

const LIMITS: TreeLimits = TreeLimits {
    files: 100,
    bytes: 1 << 20,
};
const SKILLS: &str = "alice/.agent/workspace/skills";
/// A name that a version is kept under.
const KEPT: &str = "pdf-20260511T114640Z";

type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// Paths, permission bits and contents of a tree.
fn files(top: &Path) -> Files {
    let mut found = Files::new();
    for (path, entry) in snapshot(top) {
        let content = match entry.content {
            Content::File(content) => content,
            Content::Directory => b"(a directory)".to_vec(),
            other => format!("{other:?}").into_bytes(),
        };
        found.insert(
            path.to_str().unwrap().to_owned(),
            (entry.mode & 0o7777, content),
        );
    }
    found
}

/// A version of a skill, as the store has it.
fn version(texts: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    for (path, text) in texts {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    dir
}

fn first() -> TempDir {
    version(&[
        ("SKILL.md", "the first"),
        ("scripts/run", "#!/bin/sh"),
        ("a/b/c/d", ""),
    ])
}

fn second() -> TempDir {
    version(&[("SKILL.md", "the second"), ("new/file", "new")])
}

fn open(path: &Path) -> OwnedFd {
    OwnedFd::from(fs::File::open(path).unwrap())
}

fn digest(tree: &TempDir) -> TreeDigest {
    let tree = digest_tree(open(tree.path()), TreeLimits::LARGEST);
    tree.unwrap().unwrap().digest
}

fn unchanged(stamp: TreeStamp) -> PreviousSkill {
    let kept_as = KEPT.to_owned();
    PreviousSkill::Unchanged { stamp, kept_as }
}

fn keep() -> PreviousSkill {
    PreviousSkill::Keep(KEPT.to_owned())
}

/// Alice's workspace, and a skill in it.
struct Workspace {
    yard: Yard,
    skill: SkillName,
}

impl Workspace {
    fn new() -> Self {
        let yard = Yard::new();
        yard.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
        let skill = "pdf".parse().unwrap();
        Self { yard, skill }
    }

    fn stage(&self, tree: &TempDir) -> Result<TreeStamp, HomeError> {
        let homes = &self.yard.homes;
        homes.stage_skill(&name("alice"), &uid('a'), &self.skill, open(tree.path()))
    }

    fn swap(&self, previous: &PreviousSkill) -> Result<(), HomeError> {
        let homes = &self.yard.homes;
        homes.swap_skill(&name("alice"), &uid('a'), &self.skill, previous)
    }

    fn put(&self, tree: &TempDir, previous: &PreviousSkill) -> TreeStamp {
        let stamp = self.stage(tree).unwrap();
        self.swap(previous).unwrap();
        stamp
    }

    fn remove(&self, previous: &PreviousSkill) -> Result<(), HomeError> {
        let homes = &self.yard.homes;
        homes.remove_skill(&name("alice"), &uid('a'), &self.skill, previous)
    }

    fn clear(&self) -> Result<(), HomeError> {
        let homes = &self.yard.homes;
        homes.clear_skill_leftovers(&name("alice"), &uid('a'))
    }

    fn read(&self, known: &[(TreeStamp, TreeDigest)]) -> Result<SeenSkills, HomeError> {
        let asked = AskedSkill {
            name: self.skill.clone(),
            known: known.to_vec(),
            limits: LIMITS,
        };
        let homes = &self.yard.homes;
        let seen = homes.read_skills(&name("alice"), &uid('a'), &[asked])?;
        Ok(seen.unwrap())
    }

    fn found(&self) -> FoundSkill {
        let mut seen = self.read(&[]).unwrap();
        assert!(!seen.leftovers, "{seen:?}");
        seen.skills.remove(0)
    }

    fn look(&self) -> SkillLook {
        let asked = [(self.skill.clone(), LIMITS)];
        let homes = &self.yard.homes;
        let look = homes.look_at_skills(&name("alice"), &uid('a'), &asked);
        look.unwrap().unwrap().skills.remove(0)
    }

    fn skills(&self) -> PathBuf {
        self.yard.users(SKILLS)
    }

    fn place(&self) -> PathBuf {
        self.skills().join(self.skill.as_str())
    }

    fn kept(&self) -> Vec<String> {
        self.names(".replaced")
    }

    /// Names in a directory of the skills; none if it is not there.
    fn names(&self, relative: &str) -> Vec<String> {
        let listed = fs::read_dir(self.skills().join(relative));
        let mut names: Vec<String> = listed
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Nothing is left anywhere that is neither a skill nor a version that was kept.
    fn assert_clean(&self) {
        assert!(!self.read(&[]).unwrap().leftovers);
        let agent = fs::read_dir(self.yard.users("alice/.agent")).unwrap();
        let agent: Vec<_> = agent.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(agent, ["workspace"]);
        let staging = fs::read_dir(self.yard.users(".staging"));
        assert_eq!(staging.into_iter().flatten().count(), 0);
    }
}

#[test]
fn a_skill_is_deployed_updated_and_removed() {
    let workspace = Workspace::new();
    assert_eq!(workspace.found(), FoundSkill::Nothing);
    assert_eq!(workspace.look(), SkillLook::Absent);
    let (one, two) = (first(), second());
    let stamp = workspace.put(&one, &PreviousSkill::Nothing);
    assert_eq!(files(&workspace.place()), files(one.path()));
    let deployed = FoundSkill::Tree {
        digest: digest(&one),
        stamp: stamp.clone(),
    };
    assert_eq!(workspace.found(), deployed);
    assert_eq!(workspace.look(), SkillLook::Tree(stamp.clone()));
    workspace.assert_clean();

    let next = workspace.put(&two, &unchanged(stamp.clone()));
    assert_ne!(next, stamp);
    assert_eq!(files(&workspace.place()), files(two.path()));
    assert_eq!(workspace.look(), SkillLook::Tree(next.clone()));
    workspace.assert_clean();

    workspace.remove(&unchanged(next.clone())).unwrap();
    assert_eq!(workspace.found(), FoundSkill::Nothing);
    // What is gone already is removed.
    workspace.remove(&unchanged(next)).unwrap();
    workspace.remove(&keep()).unwrap();
    workspace.remove(&PreviousSkill::Nothing).unwrap();
    workspace.assert_clean();
    assert!(workspace.names("").is_empty());
}

#[test]
fn what_looks_as_it_is_known_to_is_not_read() {
    let workspace = Workspace::new();
    let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
    let other = digest(&second());
    let seen = workspace.read(&[(stamp.clone(), other.clone())]).unwrap();
    let digest = other;
    assert_eq!(seen.skills, [FoundSkill::Tree { digest, stamp }]);
}

#[test]
fn what_a_user_has_changed_is_kept() {
    let workspace = Workspace::new();
    let (one, two) = (first(), second());
    workspace.put(&one, &PreviousSkill::Nothing);
    fs::write(workspace.place().join("SKILL.md"), "mine").unwrap();
    symlink("/etc", workspace.place().join("link")).unwrap();
    assert_eq!(workspace.found(), FoundSkill::Other);
    let theirs = snapshot(&workspace.place());
    workspace.put(&two, &keep());
    assert_eq!(files(&workspace.place()), files(two.path()));
    assert_eq!(
        snapshot(&workspace.skills().join(".replaced").join(KEPT)),
        theirs
    );

    // Again within a second, and when it is to go.
    fs::write(workspace.place().join("SKILL.md"), "mine, too").unwrap();
    workspace.remove(&keep()).unwrap();
    let kept = workspace.kept();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[1].starts_with(&format!("{KEPT}-")), "{kept:?}");
    let text = fs::read(
        workspace
            .skills()
            .join(".replaced")
            .join(&kept[1])
            .join("SKILL.md"),
    );
    assert_eq!(text.unwrap(), b"mine, too");
    workspace.assert_clean();
}

/// What a user may do to a skill after it was looked at; the path of the skill and that of its directory.
type Edit = (&'static str, fn(&Path));

const EDITS: [Edit; 8] = [
    ("written", |skill| {
        fs::write(skill.join("SKILL.md"), "mine").unwrap()
    }),
    ("the time set back", |skill| {
        let modified = fs::metadata(skill.join("SKILL.md")).unwrap().modified();
        // Times are no finer than the clock of the kernel.
        std::thread::sleep(std::time::Duration::from_millis(10));
        fs::write(skill.join("SKILL.md"), "THE FIRST").unwrap();
        let file = fs::File::options().write(true).open(skill.join("SKILL.md"));
        file.unwrap().set_modified(modified.unwrap()).unwrap();
    }),
    ("a new file", |skill| {
        fs::write(skill.join("a/b/new"), "").unwrap()
    }),
    ("a fifo", |skill| {
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, skill.join("fifo"), mode).unwrap();
    }),
    ("a huge file", |skill| {
        let file = fs::File::create(skill.join("huge")).unwrap();
        file.set_len(1 << 40).unwrap();
    }),
    ("unreadable", |skill| {
        fs::set_permissions(skill.join("a"), fs::Permissions::from_mode(0o000)).unwrap()
    }),
    ("a file in its place", |skill| {
        fs::remove_dir_all(skill).unwrap();
        fs::write(skill, "mine").unwrap();
    }),
    ("a link in its place", |skill| {
        fs::remove_dir_all(skill).unwrap();
        symlink("..", skill).unwrap();
    }),
];

#[test]
fn what_a_user_changes_before_a_swap_is_kept_all_the_same() {
    for (what, edit) in EDITS {
        for update in [true, false] {
            let workspace = Workspace::new();
            let (one, two) = (first(), second());
            let stamp = workspace.put(&one, &PreviousSkill::Nothing);
            edit(&workspace.place());
            let theirs = snapshot_unless_huge(&workspace.place());
            if update {
                workspace.put(&two, &unchanged(stamp));
                assert_eq!(files(&workspace.place()), files(two.path()), "{what}");
            } else {
                workspace.remove(&unchanged(stamp)).unwrap();
                assert_eq!(workspace.found(), FoundSkill::Nothing, "{what}");
            }
            assert_eq!(workspace.kept(), [KEPT], "{what}");
            let kept = workspace.skills().join(".replaced").join(KEPT);
            assert_eq!(snapshot_unless_huge(&kept), theirs, "{what}");
            workspace.assert_clean();
        }
    }
}

fn snapshot_unless_huge(path: &Path) -> BTreeMap<PathBuf, Entry> {
    match path.join("huge").exists() {
        true => BTreeMap::new(),
        false => snapshot(path),
    }
}

#[test]
fn what_is_in_the_way_is_left_alone() {
    let workspace = Workspace::new();
    let stage = || workspace.stage(&first()).unwrap();
    let place = workspace.place();
    let is_changed = |outcome: Result<(), HomeError>| match outcome {
        Err(HomeError::Changed { path }) => assert_eq!(path, ".agent/workspace/skills/pdf"),
        other => panic!("{other:?}"),
    };
    // Nothing was made: nothing is moved for it.
    for previous in [PreviousSkill::Nothing, keep()] {
        is_changed(workspace.swap(&previous));
    }
    fs::create_dir_all(&place).unwrap();
    stage();
    is_changed(workspace.swap(&PreviousSkill::Nothing));
    fs::write(place.join("mine"), "mine").unwrap();
    is_changed(workspace.swap(&PreviousSkill::Nothing));
    assert_eq!(fs::read(place.join("mine")).unwrap(), b"mine");
    workspace.clear().unwrap();
    is_changed(workspace.swap(&keep()));
    assert_eq!(fs::read(place.join("mine")).unwrap(), b"mine");
    fs::remove_dir_all(&place).unwrap();
    for link in [true, false] {
        match link {
            true => symlink("nowhere", &place).unwrap(),
            false => fs::write(&place, "mine").unwrap(),
        }
        stage();
        is_changed(workspace.swap(&PreviousSkill::Nothing));
        assert!(fs::symlink_metadata(&place).is_ok());
        assert_eq!(workspace.look(), SkillLook::Other);
        fs::remove_file(&place).unwrap();
        workspace.clear().unwrap();
    }
    workspace.assert_clean();
    // What is gone by then is not waited for.
    let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
    fs::remove_dir_all(&place).unwrap();
    workspace.put(&second(), &unchanged(stamp));
    fs::remove_dir_all(&place).unwrap();
    workspace.put(&second(), &keep());
    assert_eq!(files(&place), files(second().path()));
    assert!(workspace.kept().is_empty());
    workspace.assert_clean();
}

#[test]
fn l25_directories_that_are_links_or_files_are_conflicts() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir_all(outside.path().join("skills/pdf")).unwrap();
    fs::create_dir(outside.path().join("pdf")).unwrap();
    let before = snapshot(outside.path());
    for part in [".agent", ".agent/workspace", ".agent/workspace/skills"] {
        for link in [true, false] {
            let workspace = Workspace::new();
            let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
            workspace.stage(&second()).unwrap();
            let part = workspace.yard.users("alice").join(part);
            fs::rename(&part, workspace.yard.users("alice/elsewhere")).unwrap();
            match link {
                true => symlink(outside.path(), &part).unwrap(),
                false => fs::write(&part, "").unwrap(),
            }
            let homes = &workspace.yard.homes;
            let (alice, uid) = (name("alice"), uid('a'));
            let asked = [(workspace.skill.clone(), LIMITS)];
            let outcomes = [
                homes.look_at_skills(&alice, &uid, &asked).map(drop),
                workspace.read(&[]).map(drop),
                workspace.swap(&unchanged(stamp.clone())),
                workspace.swap(&keep()),
                workspace.swap(&PreviousSkill::Nothing),
                workspace.remove(&unchanged(stamp)),
                workspace.remove(&keep()),
            ];
            for outcome in outcomes {
                let text = match outcome {
                    Err(HomeError::Conflict(text)) => text,
                    other => panic!("{part:?} {other:?}"),
                };
                assert!(text.contains("is a link or a file"), "{text}");
            }
            workspace.clear().unwrap();
        }
    }
    assert_eq!(snapshot(outside.path()), before);
}

#[test]
fn l25_nothing_is_lost_when_there_is_no_place_to_keep_it() {
    for link in [true, false] {
        let workspace = Workspace::new();
        let outside = tempfile::tempdir().unwrap();
        let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
        let place = workspace.place();
        fs::write(place.join("SKILL.md"), "mine").unwrap();
        let theirs = snapshot(&place);
        let replaced = workspace.skills().join(".replaced");
        match link {
            true => symlink(outside.path(), &replaced).unwrap(),
            false => fs::write(&replaced, "").unwrap(),
        }
        let is_conflict = |outcome: Result<(), HomeError>| match outcome {
            Err(HomeError::Conflict(text)) => assert!(text.contains("skills/.replaced"), "{text}"),
            other => panic!("{other:?}"),
        };
        workspace.stage(&second()).unwrap();
        is_conflict(workspace.swap(&keep()));
        is_conflict(workspace.remove(&keep()));
        assert_eq!(snapshot(&place), theirs);
        // It was changed after it was looked at: the new one lies there already.
        is_conflict(workspace.swap(&unchanged(stamp)));
        assert!(workspace.read(&[]).unwrap().leftovers);
        is_conflict(workspace.clear());
        assert!(workspace.read(&[]).unwrap().leftovers);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        fs::remove_file(&replaced).unwrap();
        workspace.clear().unwrap();
        assert_eq!(snapshot(&replaced.join(KEPT)), theirs);
        assert_eq!(files(&place), files(second().path()));
        workspace.assert_clean();
    }
}

#[test]
fn without_a_workspace_nothing_is_made() {
    let workspace = Workspace::new();
    let (homes, skill) = (&workspace.yard.homes, &workspace.skill);
    fs::remove_dir(workspace.yard.users("alice/.agent/workspace")).unwrap();
    assert_eq!(workspace.found(), FoundSkill::Nothing);
    let outcome = workspace.stage(&first());
    assert!(
        matches!(outcome, Err(HomeError::Changed { .. })),
        "{outcome:?}"
    );
    workspace.remove(&keep()).unwrap();
    // No directory, or that of another account.
    let bob = name("bob");
    let asked = [(skill.clone(), LIMITS)];
    let look = homes.look_at_skills(&bob, &uid('b'), &asked);
    assert_eq!(look.unwrap(), None);
    assert_eq!(homes.read_skills(&bob, &uid('b'), &[]).unwrap(), None);
    homes.clear_skill_leftovers(&bob, &uid('b')).unwrap();
    for uid in [uid('b'), uid('a')] {
        let staged = homes.stage_skill(&bob, &uid, skill, open(first().path()));
        assert!(
            matches!(staged, Err(HomeError::Changed { .. })),
            "{staged:?}"
        );
    }
    let other = homes.look_at_skills(&name("alice"), &uid('b'), &asked);
    assert!(matches!(other, Err(HomeError::Conflict(_))), "{other:?}");
    assert!(!workspace.yard.users("bob").exists());
}

#[test]
fn a_skill_belongs_to_whom_the_workspace_belongs_to() {
    let workspace = Workspace::new();
    let owner = match rustix::process::geteuid().is_root() {
        true => (12_345, 12_346),
        false => (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
    };
    let place = workspace.yard.users("alice/.agent/workspace");
    std::os::unix::fs::chown(&place, Some(owner.0), Some(owner.1)).unwrap();
    let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
    fs::write(workspace.place().join("SKILL.md"), "mine").unwrap();
    workspace.put(&second(), &unchanged(stamp));
    for (path, entry) in snapshot(&workspace.skills()) {
        assert_eq!(entry.owner, owner, "{path:?}");
    }
    let mode = |path: &str| {
        let metadata = fs::metadata(workspace.skills().join(path)).unwrap();
        metadata.mode() & 0o7777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode(".replaced"), 0o700);
    assert_eq!(mode("pdf"), 0o755);
    assert_eq!(mode("pdf/new"), 0o755);
    assert_eq!(mode("pdf/SKILL.md"), 0o644);
    assert_eq!(mode(&format!(".replaced/{KEPT}/scripts/run")), 0o755);
    let staging = fs::metadata(workspace.yard.users(".staging")).unwrap();
    assert_eq!(staging.mode() & 0o7777, 0o700);
}

#[test]
fn every_name_of_a_skill_is_that_of_a_directory() {
    let emoji = "\u{1f600}".repeat(50);
    let names = [
        "with a space",
        "Ünï-\u{1f600} \"quoted\" $(x)",
        "-rf",
        &"a".repeat(128),
        &emoji,
    ];
    for name in names {
        let mut workspace = Workspace::new();
        workspace.skill = name.parse().unwrap();
        let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
        let kept_as = format!("{name}-{STAMP}");
        for _ in 0..2 {
            fs::write(workspace.place().join("SKILL.md"), "mine").unwrap();
            workspace.put(&second(), &PreviousSkill::Keep(kept_as.clone()));
        }
        fs::write(workspace.place().join("SKILL.md"), "mine").unwrap();
        // The record of a move holds it, too.
        let points = in_process::crash_at(3, || {
            workspace.stage(&second()).unwrap();
            workspace
                .swap(&PreviousSkill::Unchanged {
                    stamp: stamp.clone(),
                    kept_as: kept_as.clone(),
                })
                .unwrap();
        });
        assert!(points.is_none());
        workspace.clear().unwrap();
        assert_eq!(workspace.names("").len(), 2, "{name}");
        assert_eq!(workspace.kept().len(), 2, "{name}");
        workspace.remove(&PreviousSkill::Keep(kept_as)).unwrap();
        assert_eq!(workspace.kept().len(), 3, "{name}");
        workspace.assert_clean();
    }
}

#[test]
fn the_newest_ten_versions_of_each_skill_are_kept() {
    let workspace = Workspace::new();
    let replaced = workspace.skills().join(".replaced");
    let others = [
        "pdf-2-20200101T000000Z",
        "pdf-20200101",
        "pdf-20200101T000000Z-20200101T000000Z",
        "pdf-mine",
        "pdf",
    ];
    for other in others {
        fs::create_dir_all(replaced.join(other)).unwrap();
    }
    let version_of = |day: usize| format!("pdf-202605{day:02}T000000Z");
    for day in 1..=15 {
        workspace.put(&first(), &PreviousSkill::Nothing);
        fs::write(workspace.place().join("day"), day.to_string()).unwrap();
        workspace
            .remove(&PreviousSkill::Keep(version_of(day)))
            .unwrap();
        let kept: Vec<String> = workspace
            .kept()
            .into_iter()
            .filter(|name| !others.contains(&name.as_str()))
            .collect();
        let oldest = day.saturating_sub(9).max(1);
        let expected: Vec<String> = (oldest..=day).map(version_of).collect();
        assert_eq!(kept, expected);
    }
    // A clock that was set back, and versions from the future: what was changed now is kept.
    workspace.put(&first(), &PreviousSkill::Nothing);
    let old = "pdf-20200101T000000Z".to_owned();
    workspace.remove(&PreviousSkill::Keep(old.clone())).unwrap();
    let kept = workspace.kept();
    assert!(kept.contains(&old), "{kept:?}");
    assert_eq!(kept.len(), 10 + others.len());
    for other in others {
        assert!(replaced.join(other).is_dir(), "{other}");
    }
}

#[test]
fn very_many_planted_versions_go_little_by_little() {
    let workspace = Workspace::new();
    let replaced = workspace.skills().join(".replaced");
    fs::create_dir_all(&replaced).unwrap();
    for second in 0..300 {
        let path = replaced.join(format!("pdf-20260101T{second:06}Z"));
        match second % 2 {
            0 => fs::write(path, "").unwrap(),
            _ => symlink("/etc/passwd", path).unwrap(),
        }
    }
    for left in [201, 102, 10, 10] {
        workspace.put(&first(), &PreviousSkill::Nothing);
        workspace.remove(&keep()).unwrap();
        assert_eq!(workspace.kept().len(), left);
    }
}

#[test]
fn trees_of_any_shape_are_deployed() {
    let deep = vec!["d"; 31].join("/") + "/file";
    let empty = version(&[]);
    let nested = version(&[(&deep, "deep")]);
    let wide: Vec<String> = (0..100).map(|n| format!("{n:0250}")).collect();
    let wide: Vec<(&str, &str)> = wide.iter().map(|name| (name.as_str(), "")).collect();
    let wide = version(&wide);
    for tree in [empty, nested, wide] {
        let workspace = Workspace::new();
        let stamp = workspace.put(&tree, &PreviousSkill::Nothing);
        let digest = digest(&tree);
        assert_eq!(
            workspace.found(),
            FoundSkill::Tree {
                digest,
                stamp: stamp.clone()
            }
        );
        let exact = TreeLimits {
            files: u64::from(tree.path().read_dir().unwrap().next().is_some()) * 100,
            bytes: 4,
        };
        let asked = [(workspace.skill.clone(), exact)];
        let homes = &workspace.yard.homes;
        let look = homes.look_at_skills(&name("alice"), &uid('a'), &asked);
        assert_eq!(
            look.unwrap().unwrap().skills,
            [SkillLook::Tree(stamp.clone())]
        );
        assert_eq!(files(&workspace.place()), files(tree.path()));
        workspace.remove(&unchanged(stamp)).unwrap();
        assert!(workspace.kept().is_empty());
        workspace.assert_clean();
    }
}

#[test]
fn with_the_limits_of_one_file_in_many_directories_it_is_a_tree() {
    let deep = vec!["d"; 31].join("/") + "/file";
    let workspace = Workspace::new();
    let stamp = workspace.put(&version(&[(&deep, "deep")]), &PreviousSkill::Nothing);
    for (files, bytes, fits) in [(1, 4, true), (1, 3, false), (0, 4, false)] {
        let asked = [(workspace.skill.clone(), TreeLimits { files, bytes })];
        let homes = &workspace.yard.homes;
        let look = homes.look_at_skills(&name("alice"), &uid('a'), &asked);
        let expected = match fits {
            true => SkillLook::Tree(stamp.clone()),
            false => SkillLook::Other,
        };
        assert_eq!(look.unwrap().unwrap().skills, [expected]);
    }
}

/// What is done to a skill that looks like this.
type Work<'a> = &'a dyn Fn(&Workspace, &TreeStamp);

#[test]
fn leftovers_of_every_kind_are_found_and_cleared() {
    // What each step leaves when it is ended there: an update of what nobody, or somebody, has changed.
    let prepare = |edited: bool| {
        let workspace = Workspace::new();
        let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
        if edited {
            fs::write(workspace.place().join("SKILL.md"), "mine").unwrap();
        }
        (workspace, stamp)
    };
    let update = |workspace: &Workspace, stamp: &TreeStamp| {
        workspace.stage(&second()).unwrap();
        workspace.swap(&unchanged(stamp.clone())).unwrap();
    };
    let remove = |workspace: &Workspace, stamp: &TreeStamp| {
        workspace.remove(&unchanged(stamp.clone())).unwrap();
    };
    let works: [Work<'_>; 2] = [&update, &remove];
    for (work, edited) in [(0, false), (0, true), (1, false), (1, true)] {
        let (whole, stamp) = prepare(edited);
        let (_, points) = in_process::record(|| works[work](&whole, &stamp));
        assert!(points.len() >= [7, 3][work], "{points:?}");
        for (nth, point) in (1..).zip(&points) {
            let (workspace, stamp) = prepare(edited);
            let theirs = snapshot(&workspace.place());
            let ended = in_process::crash_at(nth, || works[work](&workspace, &stamp));
            assert!(ended.is_none());
            let is_left = workspace.read(&[]).unwrap().leftovers;
            assert_eq!(is_left, *point != "home.skill.placed", "{point}");
            // Ended again at each step of that.
            for again in 1..4 {
                in_process::crash_at(again, || workspace.clear().unwrap());
            }
            workspace.clear().unwrap();
            workspace.assert_clean();
            let kept = workspace.skills().join(".replaced").join(KEPT);
            let there = match edited {
                true if kept.exists() => snapshot(&kept),
                _ => BTreeMap::new(),
            };
            let untouched = workspace.place().exists() && snapshot(&workspace.place()) == theirs;
            assert!(!edited || untouched || there == theirs, "{point}");
            assert_eq!(kept.exists(), edited && !untouched, "{point}");
        }
    }
    // What an agent calls like ours is its own.
    let workspace = Workspace::new();
    let planted = workspace.yard.users("alice/.agent/.agentyard-skill-mine");
    fs::write(&planted, "mine").unwrap();
    assert!(!workspace.read(&[]).unwrap().leftovers);
    workspace.clear().unwrap();
    assert!(planted.exists());
}

#[test]
fn an_agent_that_puts_something_else_in_the_way_of_a_move_harms_nobody() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    let before = snapshot(outside.path());
    // Between the record, the move, the exchange and the disposal.
    for nth in 3..=6 {
        for kind in 0..4 {
            let workspace = Workspace::new();
            let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
            let ended = in_process::crash_at(nth, || {
                workspace.stage(&second()).unwrap();
                workspace.swap(&unchanged(stamp)).unwrap();
            });
            assert!(ended.is_none());
            let agent = workspace.yard.users("alice/.agent");
            let listed = fs::read_dir(&agent).unwrap();
            for entry in listed.map(|entry| entry.unwrap()) {
                if !entry.file_name().as_bytes().starts_with(b".agentyard") {
                    continue;
                }
                fs::remove_dir_all(entry.path()).unwrap();
                match kind {
                    0 => symlink(outside.path(), entry.path()).unwrap(),
                    1 => fs::write(entry.path(), "mine").unwrap(),
                    2 => fs::create_dir_all(entry.path().join("mine")).unwrap(),
                    _ => fs::rename(workspace.skills(), entry.path()).unwrap(),
                }
            }
            workspace.clear().unwrap();
            workspace.assert_clean();
            assert_eq!(snapshot(outside.path()), before);
        }
    }
}

#[test]
fn an_archive_has_no_staging_of_its_user() {
    let workspace = Workspace::new();
    let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
    let ended = in_process::crash_at(5, || {
        workspace.stage(&second()).unwrap();
        workspace.swap(&unchanged(stamp)).unwrap();
    });
    assert!(ended.is_none());
    workspace.stage(&second()).unwrap();
    let homes = &workspace.yard.homes;
    homes
        .archive(&name("alice"), &uid('a'), deleted_at(), None, None)
        .unwrap();
    assert_eq!(
        fs::read_dir(workspace.yard.users(".staging"))
            .unwrap()
            .count(),
        0
    );
    let archived = workspace.yard.archive(&format!("alice-{STAMP}"));
    assert!(
        archived
            .join(".agent/workspace/skills/pdf/SKILL.md")
            .exists()
    );
    workspace.clear().unwrap();
}

#[test]
fn a_home_in_which_only_skills_lie_still_needs_its_seed() {
    let workspace = Workspace::new();
    let needs = || {
        let homes = &workspace.yard.homes;
        homes.needs_seed(&name("alice"), &uid('a'), &[]).unwrap()
    };
    assert!(needs());
    let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
    assert!(needs());
    let ended = in_process::crash_at(4, || {
        workspace.stage(&second()).unwrap();
        workspace.swap(&unchanged(stamp)).unwrap();
    });
    assert!(ended.is_none());
    assert!(
        needs(),
        "what was on its way when the service ended is not the user's"
    );
    workspace.clear().unwrap();
    fs::write(workspace.yard.users("alice/.agent/workspace/mine"), "").unwrap();
    assert!(!needs());
}

/// The service as another user than root, for whom an agent's permissions count: a thread of its own has that user.
#[test]
fn what_an_agent_has_locked_does_not_stop_a_service_that_is_not_root() {
    let nobody = rustix::fs::Uid::from_raw(65_534);
    let work = move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let workspace = Workspace::new();
        let lock = |path: &str, mode| {
            let path = workspace.skills().join(path);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let stamp = workspace.put(&first(), &PreviousSkill::Nothing);
        for mode in [0o000, 0o500, 0o300] {
            lock("pdf", mode);
            lock("", mode);
            assert_eq!(workspace.look(), SkillLook::Tree(stamp.clone()), "{mode:o}");
        }
        // A file that may not be read is another than ours; so is a directory.
        for (path, mode) in [("pdf/SKILL.md", 0o200), ("pdf/scripts", 0o000)] {
            lock(path, mode);
            assert_eq!(workspace.found(), FoundSkill::Other, "{path}");
            lock("pdf", 0o500);
            workspace.found();
            workspace.put(&first(), &keep());
            lock(".replaced", 0o000);
            assert!(matches!(workspace.found(), FoundSkill::Tree { .. }));
        }
        // The oldest are removed whatever is in them.
        for second in 0..12 {
            workspace.put(&second_or_first(second), &keep_at(second));
            lock("pdf/SKILL.md", 0o000);
            lock("pdf", 0o500);
            workspace.found();
        }
        lock(".replaced", 0o700);
        assert_eq!(workspace.kept().len(), 10);
        for kept in workspace.kept() {
            lock(&format!(".replaced/{kept}"), 0o700);
            let _ = fs::set_permissions(
                workspace
                    .skills()
                    .join(".replaced")
                    .join(&kept)
                    .join("scripts"),
                fs::Permissions::from_mode(0o700),
            );
        }
        workspace.assert_clean();
    };
    std::thread::spawn(work).join().unwrap();
}

fn second_or_first(number: usize) -> TempDir {
    match number % 2 {
        0 => first(),
        _ => second(),
    }
}

fn keep_at(number: usize) -> PreviousSkill {
    PreviousSkill::Keep(format!("pdf-20270101T0000{number:02}Z"))
}

#[test]
fn ten_thousand_files_are_looked_at_and_read_in_little_memory() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..10_000)
        .map(|n| format!("{}/{n:0200}", n % 10))
        .collect();
    let texts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let tree = version(&texts);
    let limits = TreeLimits::LARGEST;
    let (alice, uid) = (name("alice"), uid('a'));
    let homes = &workspace.yard.homes;
    let asked = [(workspace.skill.clone(), limits)];
    let read = [AskedSkill {
        name: workspace.skill.clone(),
        known: Vec::new(),
        limits,
    }];
    // The program's own pages are memory too, once they were used.
    drop(Workspace::new().put(&version(&[("a", "x")]), &PreviousSkill::Nothing));
    let staged = large::growth(|| drop(workspace.put(&tree, &PreviousSkill::Nothing)));
    let looked = large::growth(|| drop(homes.look_at_skills(&alice, &uid, &asked).unwrap()));
    let read = large::growth(|| drop(homes.read_skills(&alice, &uid, &read).unwrap()));
    println!("staged {staged}, looked at {looked}, read {read} bytes");
    assert!(staged < 2 << 20, "{staged}");
    assert!(looked < 2 << 20, "{looked}");
    assert!(read < 8 << 20, "{read}");
}
