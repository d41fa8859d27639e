//! Files at which processes die are set aside.

use super::*;
use crate::home::conversations::Verdict;
use crate::home::reading::{Note, READING_DIR, Readings, SetAside};

const CONFIG: &str = ".agent/config.json";

fn yard() -> Yard {
    let yard = Yard::new();
    yard.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    fs::create_dir_all(yard.users("alice/.agent")).unwrap();
    fs::write(yard.users("alice/.agent/config.json"), "{}").unwrap();
    yard
}

/// A start of the service, and what it sets aside.
fn start(yard: &Yard) -> (Readings, Homes, Vec<SetAside>) {
    let readings = Readings::open(yard.data.path()).unwrap();
    let homes = Homes::open_with(yard.data.path(), INSTANCE, None).unwrap();
    let set_aside = readings.set_suspects_aside(&homes, deleted_at()).unwrap();
    homes.note_readings(&readings);
    (readings, homes, set_aside)
}

fn note(homes: &Homes, path: &str) -> Note {
    let home = homes.open_existing(&name("alice"), &uid('a')).unwrap();
    home.unwrap().note_reading(path)
}

/// A process that dies while it reads the file: nothing is dropped, but the kernel drops the lock.
fn die_while_reading(yard: &Yard, path: &str) -> Vec<SetAside> {
    let (readings, homes, set_aside) = start(yard);
    let note = note(&homes, path);
    let dead = newest_process(yard);
    let suspects = fs::read_dir(yard.data.path().join(READING_DIR).join("suspects")).unwrap();
    let suspects = suspects.map(|entry| entry.unwrap().path());
    let left: Vec<_> = suspects
        .chain([dead.join("0")])
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    drop((note, homes, readings));
    for (content, path) in left {
        fs::write(path, content).unwrap();
    }
    set_aside
}

fn newest_process(yard: &Yard) -> PathBuf {
    let all = fs::read_dir(yard.data.path().join(READING_DIR)).unwrap();
    let mut all = all.map(|entry| entry.unwrap().path());
    all.find(|path| !path.ends_with("suspects") && path.join("0").exists())
        .unwrap()
}

fn entries(yard: &Yard) -> Vec<String> {
    let all = fs::read_dir(yard.users("alice/.agent")).unwrap();
    let mut all: Vec<_> = all
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("config"))
        .collect();
    all.sort();
    all
}

#[test]
fn file_read_at_two_deaths_is_set_aside() {
    let yard = yard();
    assert_eq!(die_while_reading(&yard, CONFIG), []);
    assert_eq!(die_while_reading(&yard, CONFIG), []);
    let (_readings, _homes, set_aside) = start(&yard);
    let name = format!("config.json.set-aside-{STAMP}");
    let expected = SetAside {
        uid: uid('a'),
        user: super::name("alice"),
        path: CONFIG.to_owned(),
        name: name.clone(),
    };
    assert_eq!(set_aside, [expected]);
    assert_eq!(entries(&yard), [name]);
    let place = yard.data.path().join(READING_DIR);
    assert_eq!(
        fs::metadata(&place).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(fs::read_dir(place.join("suspects")).unwrap().count(), 0);
    // Only the place of this process and that of suspects.
    assert_eq!(fs::read_dir(place).unwrap().count(), 2);
}

#[test]
fn complete_reading_clears_the_count() {
    let yard = yard();
    die_while_reading(&yard, CONFIG);
    let (readings, homes, _) = start(&yard);
    note(&homes, CONFIG).finish();
    drop((readings, homes));
    die_while_reading(&yard, CONFIG);
    assert_eq!(start(&yard).2, []);
    assert_eq!(entries(&yard), ["config.json"]);
}

#[test]
fn file_that_was_not_parsed_stays_suspected() {
    let yard = yard();
    die_while_reading(&yard, CONFIG);
    let (readings, homes, _) = start(&yard);
    drop(note(&homes, CONFIG));
    drop((readings, homes));
    die_while_reading(&yard, CONFIG);
    assert_eq!(start(&yard).2.len(), 1);
}

#[test]
fn only_a_whole_reading_clears_a_conversation() {
    let yard = yard();
    let folder = format!(".agent/workspace/conversations/{}", "a".repeat(32));
    let path = format!("{folder}/entries.jsonl");
    fs::create_dir_all(yard.users("alice").join(folder)).unwrap();
    fs::write(yard.users("alice").join(&path), "{}\n".repeat(30_000)).unwrap();
    die_while_reading(&yard, &path);
    let (_readings, homes, _) = start(&yard);
    let work = homes.workspace(&name("alice"), &uid('a'));
    let work = work.unwrap().unwrap();
    let read = |most, verdict| {
        let folder = work.open_conversation(&"a".repeat(32).parse().unwrap());
        let entries = folder.unwrap().unwrap().entries().unwrap().unwrap();
        entries.read_newest(most, |_, _| verdict).unwrap();
        let suspects = yard.data.path().join(READING_DIR).join("suspects");
        fs::read_dir(suspects).unwrap().count()
    };
    assert_eq!(read(100, Verdict::Readable), 1);
    assert_eq!(read(u64::MAX, Verdict::Enough), 1);
    assert_eq!(read(u64::MAX, Verdict::Unreadable), 1);
    assert_eq!(read(u64::MAX, Verdict::Readable), 0);
}

#[test]
fn clean_stop_counts_no_reading() {
    let yard = yard();
    for _ in 0..3 {
        let (readings, homes, set_aside) = start(&yard);
        assert_eq!(set_aside, []);
        let note = note(&homes, CONFIG);
        readings.close();
        std::mem::forget(note);
    }
    assert_eq!(entries(&yard), ["config.json"]);
}

#[test]
fn readings_of_a_living_process_are_left_alone() {
    let yard = yard();
    let (_other, homes, _) = start(&yard);
    let _note = note(&homes, CONFIG);
    for _ in 0..3 {
        assert_eq!(start(&yard).2, []);
    }
    let process = newest_process(&yard);
    assert!(process.join("0").exists());
    // NFS passes locks of regular files on, and none of directories.
    let lock = fs::File::options()
        .write(true)
        .open(process.join("lock"))
        .unwrap();
    assert!(lock.metadata().unwrap().is_file());
    assert!(lock.try_lock().is_err());
}

#[test]
fn links_are_neither_followed_nor_renamed() {
    let yard = yard();
    let outside = yard.data.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("config.json"), "precious").unwrap();
    for planted in ["alice/.agent/linked", "alice/.agent/link.json"] {
        symlink(&outside, yard.users(planted)).unwrap();
    }
    for path in [
        ".agent/linked/config.json",
        ".agent/link.json",
        "../../outside/config.json",
    ] {
        die_while_reading(&yard, path);
        die_while_reading(&yard, path);
        assert_eq!(start(&yard).2, [], "{path}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(yard.users("alice/.agent/link.json").is_symlink());
}

#[test]
fn notes_are_bounded() {
    let yard = yard();
    let (_readings, homes, _) = start(&yard);
    let notes: Vec<_> = (0..400)
        .map(|path: usize| note(&homes, &path.to_string()))
        .collect();
    let count = || fs::read_dir(newest_process(&yard)).unwrap().count();
    assert_eq!(count(), 257, "with the lock");
    drop(notes);
    let _one = note(&homes, CONFIG);
    let all = fs::read_dir(yard.data.path().join(READING_DIR)).unwrap();
    let all = all.map(|entry| fs::read_dir(entry.unwrap().path()).unwrap().count());
    assert_eq!(all.sum::<usize>(), 2);
}
