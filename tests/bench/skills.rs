//! A skill of a thousand files for many users, against `cp -a` of the same files: deployed for the first time, and looked
//! at when nothing has changed. `AGENTYARD_BENCH_SKILL_USERS` changes the number of users (50);
//! each takes 24 MB of the disk.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use schema::home::{AskedSkill, Homes, PreviousSkill};
use schema::ids::{SkillName, Uid, UserName};
use schema::skill_store::{SkillStore, TreeLimits};

use crate::seconds;

const FILES: usize = 1_000;
const ROUNDS: usize = 3;

pub fn run() {
    let users: usize = std::env::var("AGENTYARD_BENCH_SKILL_USERS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    let data = tempfile::tempdir().unwrap();
    let (name, package): (SkillName, _) = ("bench".parse().unwrap(), data.path().join("package"));
    for number in 0..FILES {
        let dir = package.join(format!("part-{}", number % 20));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("file-{number}")), vec![b'x'; 4_000]).unwrap();
    }
    let store = SkillStore::open(data.path()).unwrap();
    let package = File::open(package).unwrap();
    let imported = store.import_dir(package, &name).unwrap();
    let stored = data
        .path()
        .join("skills/bench")
        .join(imported.digest.as_str());
    println!("skills: one of {FILES} files for {users} users");

    // In turns, so that both meet the same machine; the best of each. Nothing is removed between them: ext4 makes files
    // slowly where others were removed just before.
    let mut benches = Vec::new();
    let (mut copied, mut deployed) = (Duration::MAX, Duration::MAX);
    let (mut looked, mut read) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        rustix::fs::sync();
        let target = data.path().join(format!("copies-{round}"));
        copied = copied.min(copies(&target, &stored, users));
        rustix::fs::sync();
        let bench = Bench::new(&store, &imported, users);
        deployed = deployed.min(bench.deploy());
        looked = looked.min(bench.look());
        read = read.min(bench.read());
        benches.push(bench);
    }
    let ratio = |took: Duration, of: Duration| took.as_secs_f64() / of.as_secs_f64();
    println!("  cp -a                        {}", seconds(copied));
    println!(
        "  first deployment             {}   rate of cp -a × {:.2}",
        seconds(deployed),
        1.0 / ratio(deployed, copied)
    );
    println!(
        "  unchanged, looked at         {}   of the first {:.1} %",
        seconds(looked),
        100.0 * ratio(looked, deployed)
    );
    println!(
        "  unchanged, every byte read   {}   of the first {:.1} %",
        seconds(read),
        100.0 * ratio(read, deployed)
    );
}

fn copies(target: &Path, stored: &Path, users: usize) -> Duration {
    fs::create_dir(target).unwrap();
    let begin = Instant::now();
    for number in 0..users {
        let copied = Command::new("cp")
            .arg("-a")
            .arg(stored)
            .arg(target.join(number.to_string()))
            .status();
        assert!(copied.unwrap().success());
    }
    begin.elapsed()
}

struct Bench<'a> {
    store: &'a SkillStore,
    imported: &'a schema::skill_store::Imported,
    homes: Homes,
    users: Vec<(UserName, Uid)>,
    // Dropped, and so removed, last.
    _data: tempfile::TempDir,
}

impl<'a> Bench<'a> {
    fn new(
        store: &'a SkillStore,
        imported: &'a schema::skill_store::Imported,
        users: usize,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open(data.path(), "bench").unwrap();
        let users: Vec<(UserName, Uid)> = (0..users)
            .map(|number| {
                let name = format!("user-{number}").parse().unwrap();
                (name, Uid::from(format!("{number:032x}")))
            })
            .collect();
        for (name, uid) in &users {
            homes.ensure(name, uid, None).unwrap();
        }
        Self {
            store,
            imported,
            homes,
            users,
            _data: data,
        }
    }

    fn deploy(&self) -> Duration {
        let skill = &self.imported.name;
        let begin = Instant::now();
        for (name, uid) in &self.users {
            let tree = self.store.open_tree(skill, &self.imported.digest);
            let tree = tree.unwrap().unwrap();
            self.homes.stage_skill(name, uid, skill, tree).unwrap();
            let previous = PreviousSkill::Nothing;
            self.homes.swap_skill(name, uid, skill, &previous).unwrap();
        }
        begin.elapsed()
    }

    fn look(&self) -> Duration {
        let asked = [(self.imported.name.clone(), TreeLimits::LARGEST)];
        let begin = Instant::now();
        for (name, uid) in &self.users {
            let look = self.homes.look_at_skills(name, uid, &asked);
            assert_eq!(look.unwrap().unwrap().skills.len(), 1);
        }
        begin.elapsed()
    }

    fn read(&self) -> Duration {
        let asked = [AskedSkill {
            name: self.imported.name.clone(),
            known: Vec::new(),
            limits: TreeLimits::LARGEST,
        }];
        let begin = Instant::now();
        for (name, uid) in &self.users {
            let seen = self.homes.read_skills(name, uid, &asked);
            assert_eq!(seen.unwrap().unwrap().skills.len(), 1);
        }
        begin.elapsed()
    }
}
