//! Repositories: what is asked for is fetched once, and what became of it is remembered.

use std::fs;
use std::time::Duration;

use kit::pass::{Killed, Pass};
use reconcilers::drivers::git::GitError;
use reconcilers::runtime::{Reconciler, Requeue};
use schema::condition::Reason;
use schema::ids::Uid;
use schema::skill_repository::{self, Credential, NewRepository, Provider, RefType, RepositoryRow};
use secrecy::SecretString;

use crate::scripted::skill_yard::SkillYard;

const URL: &str = "https://git.example/tools";
const SSH: &str = "git@git.example:tools";
const MAIN: &str = "refs/heads/main";

fn new(url: &str, public: bool) -> NewRepository {
    NewRepository {
        name: "tools".parse().unwrap(),
        url: url.parse().unwrap(),
        reference: "main".parse().unwrap(),
        ref_type: RefType::Branch,
        public,
    }
}

fn credential(name: &str) -> Credential {
    Credential {
        name: name.to_owned(),
        provider: Provider::Gitlab,
        username: String::new(),
        secret: SecretString::from(name.to_owned()),
    }
}

impl SkillYard {
    fn push(&self, url: &str, text: &str) -> String {
        let manifest = format!("---\nname: pdf\ndescription: {text}\n---\n");
        let files = [("skills/pdf/SKILL.md", manifest.as_bytes())];
        self.git.push(url, MAIN, files)
    }

    async fn save(&self, new: &NewRepository, credentials: &[Credential], token: &str) -> Uid {
        let mut tx = self.yard.db.begin().await.unwrap();
        let (key, now) = (&self.yard.key, self.yard.now());
        let saved = skill_repository::save(&mut tx, key, new, credentials, token, None, now).await;
        tx.commit().await.unwrap();
        saved.unwrap().0
    }

    async fn pull(&self, uid: &Uid, token: &str) {
        let mut tx = self.yard.db.begin().await.unwrap();
        let asked = skill_repository::request_pull(&mut tx, uid, token, None).await;
        asked.unwrap();
        tx.commit().await.unwrap();
    }

    async fn repository(&self, uid: &Uid) -> RepositoryRow {
        let mut connection = self.yard.db.read().await.unwrap();
        let row = skill_repository::get_whole(&mut connection, uid).await;
        row.unwrap().unwrap()
    }

    async fn fetch_pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        let pass = Self::pass(&self.service.repository, uid, &self.yard, &mut self.budget).await?;
        // What was started does its work.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let running = matches!(
                self.service.shared.clones.report(uid),
                reconcilers::shared::clones::CloneReport::Running { .. }
            );
            if !running {
                break;
            }
        }
        Ok(pass)
    }

    /// Passes until nothing is left to do but to wait; the last one.
    async fn fetch(&mut self, uid: &Uid) -> Result<Pass, Killed> {
        for _ in 0..500 {
            let pass = self.fetch_pass(uid).await?.unwrap();
            let reason = pass.condition.as_ref().unwrap().reason;
            if pass.acted == 0 && pass.error.is_none() && reason != Reason::Cloning {
                return Ok(pass);
            }
        }
        panic!("it never comes to an end");
    }

    async fn fetched(&mut self, uid: &Uid) -> Reason {
        self.fetch(uid).await.unwrap().condition.unwrap().reason
    }

    fn calls(&self, call: &str) -> usize {
        let asked = self.git.asked();
        asked.iter().filter(|asked| asked.call == call).count()
    }

    /// Names of what lies there of a repository.
    fn checkouts(&self, uid: &Uid) -> Vec<String> {
        let place = self.yard.dir.path().join("skill-repositories");
        let Ok(entries) = fs::read_dir(place.join(uid.as_str())) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_pull_fetches_what_is_new_and_asks_only_for_what_is_not() {
    let mut yard = SkillYard::new().await;
    let first = yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let row = yard.repository(&uid).await;
    assert_eq!(row.facts.commit_id.as_ref(), Some(&first));
    assert_eq!(row.facts.skills.as_ref().unwrap()[0].path, "skills/pdf");
    assert_eq!(row.facts.skill_count, 1);
    assert_eq!(yard.checkouts(&uid), [first.as_str()]);
    assert_eq!((yard.calls("resolve"), yard.calls("export")), (1, 1));
    // Nobody asked.
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    assert_eq!(yard.calls("resolve"), 1);
    yard.pull(&uid, "t2").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    assert_eq!((yard.calls("resolve"), yard.calls("export")), (2, 1));
    let unchanged = yard.repository(&uid).await;
    assert_eq!(unchanged.facts.skills, row.facts.skills);
    assert_eq!(unchanged.facts.skill_count, 1);
    let second = yard.push(URL, "two");
    yard.pull(&uid, "t3").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    // The one before is there until the next fetch: it was installed from until this one was recorded.
    let mut both = [first, second.clone()];
    both.sort();
    assert_eq!(yard.checkouts(&uid), both);
    assert_eq!(
        yard.repository(&uid).await.facts.commit_id.as_ref(),
        Some(&second)
    );
    let third = yard.push(URL, "three");
    yard.pull(&uid, "t4").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let mut both = [second, third];
    both.sort();
    assert_eq!(yard.checkouts(&uid), both);
}

#[tokio::test]
async fn skills_listed_by_an_earlier_release_are_listed_anew() {
    let mut yard = SkillYard::new().await;
    let commit = yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    yard.fetched(&uid).await;
    let mut facts = yard.repository(&uid).await.facts;
    (facts.listing, facts.skills) = (0, Some(Vec::new()));
    let mut tx = yard.yard.db.begin().await.unwrap();
    let saved = skill_repository::save_facts(&mut tx, &uid, &facts).await;
    saved.unwrap();
    tx.commit().await.unwrap();
    yard.pull(&uid, "t2").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let facts = yard.repository(&uid).await.facts;
    assert_eq!((facts.skill_count, yard.calls("export")), (1, 2));
    assert_eq!(yard.checkouts(&uid), [commit]);
    yard.pull(&uid, "t3").await;
    yard.fetched(&uid).await;
    assert_eq!(yard.calls("export"), 2);
}

#[tokio::test]
async fn what_was_fetched_and_is_gone_is_fetched_again_also_as_another_commit() {
    let mut yard = SkillYard::new().await;
    yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    yard.fetched(&uid).await;
    for text in ["one", "two"] {
        let commit = yard.push(URL, text);
        let place = yard.yard.dir.path().join("skill-repositories");
        fs::remove_dir_all(place.join(uid.as_str())).unwrap();
        assert_eq!(yard.fetched(&uid).await, Reason::Converged);
        assert_eq!(yard.checkouts(&uid), [commit.as_str()]);
        let facts = yard.repository(&uid).await.facts;
        assert_eq!(facts.commit_id, Some(commit));
    }
    assert_eq!(yard.calls("export"), 3);
}

#[tokio::test]
async fn a_refusal_ends_the_request_and_keeps_what_was_fetched() {
    let mut yard = SkillYard::new().await;
    let commit = yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    yard.fetched(&uid).await;
    yard.git.remove(URL);
    yard.pull(&uid, "t2").await;
    assert_eq!(yard.fetched(&uid).await, Reason::CloneFailed);
    yard.reboot();
    assert_eq!(yard.fetched(&uid).await, Reason::CloneFailed);
    assert_eq!(yard.calls("resolve"), 2, "it is not tried again");
    let facts = yard.repository(&uid).await.facts;
    assert_eq!(facts.commit_id.as_ref(), Some(&commit));
    assert_eq!(yard.checkouts(&uid), [commit.as_str()]);
    yard.push(URL, "one");
    yard.pull(&uid, "t3").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
}

#[tokio::test]
async fn what_may_be_better_soon_is_tried_again_after_a_while() {
    let mut yard = SkillYard::new().await;
    yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    let mut pauses = Vec::new();
    for _ in 0..3 {
        yard.git.fail(GitError::Status(503));
        let pass = yard.fetch(&uid).await.unwrap();
        let said = pass.condition.unwrap();
        assert_eq!(said.reason, Reason::CloneFailed);
        assert!(said.message.contains("503"), "{}", said.message);
        let Requeue::After(pause) = pass.requeue else {
            panic!("{:?}", pass.requeue);
        };
        pauses.push(pause);
        yard.yard.clock.advance(pause);
    }
    assert!(pauses.is_sorted() && pauses[0] < pauses[2], "{pauses:?}");
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
}

#[tokio::test]
async fn slow_hosts_do_not_hold_up_a_third_one() {
    let mut yard = SkillYard::new().await;
    yard.push(URL, "one");
    yard.git.on_call(|| kit::Pace {
        before: Duration::from_secs(3600),
        ..kit::Pace::default()
    });
    for n in 0..8 {
        let url = format!("https://slow{}.example/{n}", n % 2);
        let slow = NewRepository {
            name: format!("slow{n}").parse().unwrap(),
            ..new(&url, true)
        };
        let uid = yard.save(&slow, &[], "t1").await;
        let started = yard.fetch_pass(&uid).await.unwrap().unwrap();
        assert_eq!(started.condition.unwrap().reason, Reason::Cloning);
    }
    yard.git.on_call(kit::Pace::default);
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
}

#[tokio::test]
async fn a_request_that_is_taken_back_ends() {
    let mut yard = SkillYard::new().await;
    yard.push(URL, "one");
    yard.git.on_call(|| kit::Pace {
        before: Duration::from_secs(3600),
        ..kit::Pace::default()
    });
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    let started = yard.fetch_pass(&uid).await.unwrap().unwrap();
    assert_eq!(started.condition.unwrap().reason, Reason::Cloning);
    let running = yard.fetch_pass(&uid).await.unwrap().unwrap();
    assert_eq!((running.acted, running.waits_for.len()), (0, 1));
    let mut tx = yard.yard.db.begin().await.unwrap();
    skill_repository::cancel_pull(&mut tx, &uid, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let said = yard.fetch(&uid).await.unwrap().condition.unwrap();
    assert_eq!(
        (said.reason, &*said.message),
        (Reason::CloneFailed, "the pull was cancelled")
    );
    yard.git.on_call(kit::Pace::default);
    yard.pull(&uid, "t2").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
}

#[tokio::test]
async fn l28_another_key_of_the_host_is_told_until_somebody_says_to_forget_it() {
    let mut yard = SkillYard::new().await;
    yard.push(SSH, "one");
    let uid = yard.save(&new(SSH, true), &[], "t1").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let known = yard.repository(&uid).await.facts.known_hosts;
    assert_eq!(known.as_deref(), Some("git.example key\n"));
    yard.git.host_key("git.example", "other");
    yard.push(SSH, "two");
    yard.pull(&uid, "t2").await;
    for _ in 0..2 {
        assert_eq!(yard.fetched(&uid).await, Reason::HostKeyChanged);
        yard.reboot();
    }
    assert_eq!(yard.repository(&uid).await.facts.known_hosts, known);
    let mut tx = yard.yard.db.begin().await.unwrap();
    skill_repository::forget_host_key(&mut tx, &uid, "t3")
        .await
        .unwrap();
    skill_repository::request_pull(&mut tx, &uid, "t3", None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let known = yard.repository(&uid).await.facts.known_hosts;
    assert_eq!(known.as_deref(), Some("git.example other\n"));
}

#[tokio::test]
async fn credentials_are_tried_in_their_order() {
    let mut yard = SkillYard::new().await;
    yard.push(URL, "one");
    yard.git.close(URL, "second");
    let credentials = ["first", "second", "third"].map(credential);
    let uid = yard.save(&new(URL, false), &credentials, "t1").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let asked: Vec<_> = yard
        .git
        .asked()
        .into_iter()
        .map(|asked| (asked.call, asked.credentials.unwrap()))
        .collect();
    let oauth = |secret: &str| ("oauth2".to_owned(), secret.to_owned());
    assert_eq!(
        asked,
        [
            ("resolve", oauth("first")),
            ("resolve", oauth("second")),
            ("export", oauth("second"))
        ]
    );
    // None fits, or there is none.
    yard.git.close(URL, "fourth");
    yard.pull(&uid, "t2").await;
    assert_eq!(yard.fetched(&uid).await, Reason::CloneFailed);
    yard.save(&new(URL, false), &[], "t3").await;
    let said = yard.fetch(&uid).await.unwrap().condition.unwrap();
    assert!(said.message.contains("no credentials"), "{}", said.message);
}

#[tokio::test]
async fn killed_before_every_step_it_is_fetched_and_removed_all_the_same() {
    for steps in 0..6 {
        let mut yard = SkillYard::new().await;
        let commit = yard.push(URL, "one");
        let uid = yard.save(&new(URL, true), &[], "t1").await;
        yard.budget = Some(steps);
        let _ = yard.fetch(&uid).await;
        yard.reboot();
        assert_eq!(yard.fetched(&uid).await, Reason::Converged);
        assert_eq!(yard.checkouts(&uid), [commit.as_str()]);
        let mut tx = yard.yard.db.begin().await.unwrap();
        let now = yard.yard.now();
        skill_repository::delete(&mut tx, &uid, now).await.unwrap();
        tx.commit().await.unwrap();
        yard.budget = Some(steps);
        let _ = yard.fetch_pass(&uid).await;
        yard.reboot();
        for _ in 0..3 {
            let _ = yard.fetch_pass(&uid).await.unwrap();
        }
        assert_eq!(yard.checkouts(&uid), Vec::<String>::new());
        assert_eq!(yard.service.repository.keys().await.unwrap(), []);
    }
}

#[tokio::test]
async fn what_a_fetch_left_of_a_repository_that_is_gone_is_removed() {
    let mut yard = SkillYard::new().await;
    let kept = yard.push(URL, "one");
    let uid = yard.save(&new(URL, true), &[], "t1").await;
    assert_eq!(yard.fetched(&uid).await, Reason::Converged);
    let gone = Uid::from("f".repeat(32));
    let left = yard.yard.dir.path().join("skill-repositories");
    fs::create_dir_all(left.join(gone.as_str()).join(&kept)).unwrap();
    let keys = yard.service.repository.keys().await.unwrap();
    assert_eq!(keys.len(), 2);
    for key in keys {
        yard.fetch_pass(&key).await.unwrap();
    }
    assert!(!left.join(gone.as_str()).exists());
    assert_eq!(yard.checkouts(&uid), [kept.as_str()]);
    assert_eq!(yard.service.repository.keys().await.unwrap(), [uid]);
}
