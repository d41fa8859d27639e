//! A directory that lies: it says nothing, half, or something else, and is slow, cut off or away; meanwhile the service crashes
//! and leaderships change. Nobody whom the directory has in truth ever loses an account by it, and in the end users and groups
//! are those of the directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::Pace;
use reconcilers::drivers::ldap::{DirectoryError, Listing, Person};
use schema::config::{Config, parse_patch};
use schema::directory::SyncScope;
use schema::ids::Timestamp;
use serde_json::json;

use crate::chance::Chance;
use crate::world::World;

/// How long somebody is missing before the account goes: longer than any lie.
const GRACE: Duration = Duration::from_secs(30 * 60);
const STEPS: u64 = 30;

/// Who is there in truth: the entry's number, and groups.
type Truth = BTreeMap<String, (u64, BTreeSet<String>)>;

/// What the directory makes of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Honest,
    Empty,
    Half,
    WithoutGroups,
    HidesGroups,
    CutOff,
    Away,
    Slow,
}

const MOODS: [Mood; 8] = [
    Mood::Honest,
    Mood::Empty,
    Mood::Half,
    Mood::WithoutGroups,
    Mood::HidesGroups,
    Mood::CutOff,
    Mood::Away,
    Mood::Slow,
];

fn says(truth: &Truth, mood: Mood) -> Result<Listing, DirectoryError> {
    let people = truth.iter().enumerate().filter(|(at, _)| match mood {
        Mood::Empty => false,
        Mood::Half => at % 2 == 0,
        _ => true,
    });
    let people = people.map(|(_, (name, (number, groups)))| Person {
        dn: format!("uid={name}"),
        name: name.clone(),
        identity: Some(format!("entryuuid:{number}")),
        groups: match mood {
            Mood::WithoutGroups => Some(BTreeSet::new()),
            Mood::HidesGroups => None,
            _ => Some(groups.clone()),
        },
    });
    let people: Vec<Person> = people.collect();
    let all = people
        .iter()
        .flat_map(|person| person.groups.clone().unwrap_or_default());
    let groups = (mood != Mood::HidesGroups).then(|| all.collect());
    match mood {
        Mood::CutOff => Err(DirectoryError::Incomplete("cut off".to_owned())),
        Mood::Away => Err(DirectoryError::Unreachable("away".to_owned())),
        _ => Ok(Listing {
            people,
            groups,
            with_identities: true,
            ..Listing::default()
        }),
    }
}

/// What has happened in all runs.
type Tally = BTreeMap<&'static str, u64>;

async fn run(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut world = World::new(seed, false);
    // The monitor judges users whom the driver has created; here it is the truth that judges.
    world.ground.store.on_change(|_| {});
    world.fake.on_change(|_| {});
    let chance = Chance::new(seed, "directory");
    let config = json!({
        "web.auth_mode": "ldap", "ldap.host": "dc", "ldap.base_dn": "dc=x", "ldap.sync_interval": "1m",
        "ldap.removal_grace": "30m", "container.autostart": false, "image.name": "echo",
    });
    let changes = parse_patch(&config)
        .unwrap()
        .resolve(&Config::default())
        .unwrap();
    world.ground.store.configure(&changes).unwrap();
    let mood = Arc::new(Mutex::new(Mood::Honest));
    let truth: Arc<Mutex<Truth>> = Arc::default();
    let (asked, people) = (Arc::clone(&mood), Arc::clone(&truth));
    let directory = world.ground.directory.clone();
    directory.says(move || says(&people.lock().unwrap(), *asked.lock().unwrap()));
    let slow = Arc::clone(&mood);
    directory.on_call(move || match *slow.lock().unwrap() {
        Mood::Slow => Pace {
            before: Duration::from_secs(40),
            ..Pace::default()
        },
        _ => Pace::default(),
    });
    // Since when somebody is not there in truth.
    let mut left = Left::default();
    let mut ever_left: BTreeSet<String> = BTreeSet::new();
    let mut confirmed = false;
    // Removals that are held because of a lie.
    let mut lies: BTreeSet<String> = BTreeSet::new();
    world.prepare();
    world.begin(false);
    for _ in 0..STEPS {
        change(&chance, &mut truth.lock().unwrap(), &mut left, world.now());
        *mood.lock().unwrap() = match chance.per_mille(500) {
            true => Mood::Honest,
            false => *chance.pick(&MOODS).unwrap(),
        };
        if chance.per_mille(200) {
            *tally.entry("request").or_default() += 1;
            world
                .ground
                .store
                .request_sync(SyncScope::Users, "")
                .unwrap();
        }
        if chance.per_mille(300) {
            world.chaos.crash_after(chance.between(1, 200));
        }
        world.wait(chance.some_time(5 * 60_000)).await;
        let facts = world.ground.store.directory_facts();
        if let Some(held) = &facts.held {
            *tally.entry("held").or_default() += 1;
            // Somebody confirms what is true, and never a lie: also not one that was reported earlier and may be reported again.
            if *mood.lock().unwrap() != Mood::Honest {
                lies.insert(held.digest.clone());
            } else if !lies.contains(&held.digest) && chance.per_mille(500) {
                *tally.entry("confirmed").or_default() += 1;
                confirmed = true;
                world
                    .ground
                    .store
                    .request_sync(SyncScope::Users, &held.digest)
                    .unwrap();
            }
        }
        let now = world.now();
        let users = world.ground.store.synchronised();
        // Those who were there in truth all the time: a few may be disabled by a lie, and never all.
        ever_left.extend(left.since.keys().chain(&left.names).cloned());
        let loyal = users.iter().filter(|(name, _)| !ever_left.contains(*name));
        let missing: Vec<bool> = loyal.map(|(_, (missing, _))| *missing).collect();
        if missing.len() > 5 && missing.iter().all(|missing| *missing) {
            return Err(format!("seed {seed}: everybody is disabled by a lie"));
        }
        *tally.entry("users").or_default() += users.len() as u64;
        for name in left
            .since
            .iter()
            .filter(|(_, since)| now.since(**since) < GRACE)
            .map(|(name, _)| name)
        {
            // Who was there, and was seen, is disabled at most.
            if !users.contains_key(name)
                && world.ground.store.was_known(name)
                && !left.names.contains(name)
            {
                return Err(format!(
                    "seed {seed}: {name} was removed before the time of grace was over"
                ));
            }
        }
        for name in truth.lock().unwrap().keys() {
            if !users.contains_key(name)
                && world.ground.store.was_known(name)
                && !left.since.contains_key(name)
                && !left.names.contains(name)
            {
                return Err(format!(
                    "seed {seed}: {name} is there in truth, and was removed"
                ));
            }
        }
        if world.is_broken() {
            break;
        }
    }
    // The truth, and nothing else.
    *mood.lock().unwrap() = Mood::Honest;
    world.chaos.end();
    world.settle_leadership().await;
    for _ in 0..3 {
        world.wait(GRACE + Duration::from_secs(600)).await;
        if let Some(held) = world.ground.store.directory_facts().held {
            confirmed = true;
            world
                .ground
                .store
                .request_sync(SyncScope::Users, &held.digest)
                .unwrap();
        }
    }
    let found: BTreeMap<String, BTreeSet<String>> = world
        .ground
        .store
        .synchronised()
        .into_iter()
        .map(|(name, (missing, groups))| {
            *tally
                .entry(if missing { "still missing" } else { "present" })
                .or_default() += 1;
            (name, groups)
        })
        .collect();
    let truth = truth.lock().unwrap().clone();
    let truth: BTreeMap<_, _> = truth
        .into_iter()
        .map(|(name, (_, it))| (name, it))
        .collect();
    *tally.entry("renamed").or_default() += left.names.len() as u64;
    if confirmed {
        *tally.entry("runs with a confirmation").or_default() += 1;
    }
    let (_, broken) = world.finish();
    if let Some(broken) = broken {
        return Err(format!("seed {seed}: {broken}"));
    }
    if found != truth {
        return Err(format!("seed {seed}: {found:?}, and not {truth:?}"));
    }
    Ok(())
}

/// Who is not there any more.
#[derive(Default)]
struct Left {
    /// Since when people are gone.
    since: BTreeMap<String, Timestamp>,
    /// Numbers of their entries, with which they come back.
    numbers: BTreeMap<String, u64>,
    /// How many entries there were.
    entries: u64,
    /// Names that people had before they were renamed, and got: somebody else may have one by now.
    names: BTreeSet<String>,
}

/// Few come and go, and some get other names; now and then many.
fn change(chance: &Chance, truth: &mut Truth, left: &mut Left, now: Timestamp) {
    if truth.is_empty() || chance.per_mille(400) {
        for _ in 0..chance.between(1, 6) {
            let name = format!("p{}", chance.below(40));
            let groups = (0..chance.below(3)).map(|_| format!("g{}", chance.below(4)));
            left.since.remove(&name);
            let present = truth.get(&name).map(|(number, _)| *number);
            let number = present.or(left.numbers.remove(&name));
            left.entries += 1;
            truth.insert(name, (number.unwrap_or(left.entries), groups.collect()));
        }
    }
    let gone = match chance.below(10) {
        0 => truth.len() as u64,
        1..4 => chance.below(3),
        _ => 0,
    };
    for _ in 0..gone {
        let names: Vec<String> = truth.keys().cloned().collect();
        let Some(name) = chance.pick(&names) else {
            break;
        };
        let gone = truth.remove(name);
        left.numbers
            .extend(gone.map(|(number, _)| (name.clone(), number)));
        left.since.insert(name.clone(), now);
    }
    for _ in 0..chance.below(3) {
        let names: Vec<String> = truth.keys().cloned().collect();
        let to = format!("p{}", chance.below(40));
        let free = !truth.contains_key(&to) && !left.numbers.contains_key(&to);
        if let Some(name) = chance.pick(&names).filter(|_| free)
            && let Some(person) = truth.remove(name)
        {
            left.names.extend([name.clone(), to.clone()]);
            truth.insert(to, person);
        }
    }
}

#[test]
fn l1_no_lie_of_a_directory_costs_anybody_an_account() {
    let seeds = if crate::long() { 400 } else { 6 };
    let tally = Mutex::new(Tally::new());
    let broken = Mutex::new(Vec::new());
    crate::on_all_cores(1..=seeds, |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let mut happened = Tally::new();
        let outcome = runtime.block_on(run(seed, &mut happened));
        for (what, times) in happened {
            *tally.lock().unwrap().entry(what).or_default() += times;
        }
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                broken.lock().unwrap().push(why);
                ControlFlow::Break(())
            }
        }
    });
    let (tally, broken) = (tally.into_inner().unwrap(), broken.into_inner().unwrap());
    assert!(broken.is_empty(), "{broken:?}");
    eprintln!("{tally:?}");
    for what in [
        "held",
        "confirmed",
        "request",
        "present",
        "runs with a confirmation",
    ] {
        assert!(tally.contains_key(what), "never happened: {what}");
    }
}
