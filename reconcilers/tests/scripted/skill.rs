//! The store keeps what is kept or deployed, and nothing else for long.

use std::time::{Duration, UNIX_EPOCH};

use kit::pass::Pass;
use reconcilers::runtime::Reconciler;
use schema::condition::{ConditionStatus, Reason};
use schema::ids::Uid;
use schema::skill::{self, TreeDigest};

use crate::scripted::skill_yard::{SkillYard, name};

const HOUR: Duration = Duration::from_secs(3600);

impl SkillYard {
    /// One pass over all skills; what it did.
    async fn skills_pass(&mut self) -> Vec<Pass> {
        let mut passes = Vec::new();
        for key in self.service.skill.keys().await.unwrap() {
            let pass = Self::pass(&self.service.skill, &key, &self.yard, &mut None).await;
            passes.extend(pass.unwrap());
        }
        passes
    }

    async fn tidy(&mut self) -> Vec<Pass> {
        for _ in 0..10 {
            let passes = self.skills_pass().await;
            if passes.iter().all(|pass| pass.acted == 0) {
                return passes;
            }
        }
        panic!("it never comes to an end");
    }

    fn stored(&self, skill: &str) -> Vec<TreeDigest> {
        let stored = self.store.digests(&name(skill)).unwrap();
        stored.into_iter().map(|(digest, _)| digest).collect()
    }

    /// A version was taken in so long ago.
    fn age(&self, skill: &str, digest: &TreeDigest, age: Duration) {
        let now = u64::try_from(self.yard.now().as_millis()).unwrap();
        let at = UNIX_EPOCH + Duration::from_millis(now) - age;
        let place = self.yard.dir.path().join("skills").join(skill);
        let dir = std::fs::File::open(place.join(digest.as_str())).unwrap();
        dir.set_modified(at).unwrap();
    }

    async fn delete_skill(&self, uid: &Uid) {
        let mut tx = self.yard.db.begin().await.unwrap();
        skill::unbind_everywhere(&mut tx, uid).await.unwrap();
        skill::delete(&mut tx, uid, self.yard.now()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

fn sorted<const N: usize>(digests: [&TreeDigest; N]) -> Vec<TreeDigest> {
    let mut digests: Vec<TreeDigest> = digests.into_iter().cloned().collect();
    digests.sort();
    digests
}

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_go_after_their_hour_and_what_is_kept_or_deployed_stays() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    let mut digests = Vec::new();
    for n in 0..12 {
        let digest = yard.import("pdf", &format!("{n}"));
        let uid = yard.record("pdf", &digest).await;
        if n == 0 {
            yard.bind(&uid, &alice, true).await;
            yard.settled(&alice).await;
        }
        digests.push(digest);
    }
    let nobodys = yard.import("pdf", "never recorded");
    for digest in digests.iter().chain([&nobodys]) {
        yard.age("pdf", digest, HOUR - Duration::from_secs(2));
    }
    yard.tidy().await;
    assert_eq!(yard.stored("pdf").len(), 13);
    yard.yard.clock.advance(Duration::from_secs(3));
    let said = yard.tidy().await.remove(0).condition.unwrap();
    assert_eq!(
        (said.status, said.reason),
        (ConditionStatus::True, Reason::Converged)
    );
    // Ten are kept; the first one lies in a workspace, the second one nowhere.
    let stored = yard.stored("pdf");
    assert_eq!(stored.len(), 11);
    assert!(stored.contains(&digests[0]) && !stored.contains(&digests[1]));
    assert!(!stored.contains(&nobodys));
    yard.settled(&alice).await;
    yard.tidy().await;
    assert_eq!(yard.stored("pdf").len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_skill_is_recorded_for_goes_after_its_hour() {
    let mut yard = SkillYard::new().await;
    let pdf = yard.import("pdf", "kept");
    yard.record("pdf", &pdf).await;
    let tried = yard.import("tried", "dry run");
    let young = yard.import("tried", "just now");
    yard.age("pdf", &pdf, HOUR * 2);
    yard.age("tried", &tried, HOUR);
    yard.age("tried", &young, Duration::ZERO);
    assert_eq!(yard.service.skill.keys().await.unwrap().len(), 2);
    let passes = yard.tidy().await;
    assert_eq!(passes.len(), 1, "no status is kept of what is no object");
    assert_eq!(yard.stored("tried"), sorted([&young]));
    assert_eq!(yard.stored("pdf"), sorted([&pdf]));
    // It is recorded in time.
    yard.record("tried", &young).await;
    yard.yard.clock.advance(HOUR * 2);
    yard.tidy().await;
    assert_eq!(yard.stored("tried"), sorted([&young]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_between_listing_and_looking_loses_nothing() {
    let mut yard = SkillYard::new().await;
    let digest = yard.import("pdf", "old");
    yard.age("pdf", &digest, HOUR * 2);
    let keys = yard.service.skill.keys().await.unwrap();
    yard.record("pdf", &digest).await;
    for key in keys {
        let pass = SkillYard::pass(&yard.service.skill, &key, &yard.yard, &mut None).await;
        assert!(pass.unwrap().is_none());
    }
    yard.tidy().await;
    assert_eq!(yard.stored("pdf"), sorted([&digest]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_skill_goes_at_once_wherever_the_service_is_killed() {
    for steps in 0..4 {
        let mut yard = SkillYard::new().await;
        let uid = yard.upload("pdf", "one").await;
        let digest = yard.import("pdf", "two");
        yard.record("pdf", &digest).await;
        yard.delete_skill(&uid).await;
        // Somebody uploads the next one of that name.
        let next = yard.import("pdf", "next");
        yard.age("pdf", &next, Duration::ZERO);
        let mut budget = Some(steps);
        let _ = SkillYard::pass(&yard.service.skill, &uid, &yard.yard, &mut budget).await;
        yard.reboot();
        yard.tidy().await;
        assert_eq!(yard.stored("pdf"), sorted([&next]));
        // The name is free again, and whoever still looks at the old one takes nothing of it.
        let again = yard.record("pdf", &next).await;
        assert_ne!(again, uid);
        let pass = SkillYard::pass(&yard.service.skill, &uid, &yard.yard, &mut None).await;
        assert!(pass.unwrap().is_none());
        yard.tidy().await;
        assert_eq!(yard.stored("pdf"), sorted([&next]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_in_effect_that_is_not_there_is_told() {
    let mut yard = SkillYard::new().await;
    yard.upload("pdf", "one").await;
    std::fs::remove_dir_all(yard.yard.dir.path().join("skills/pdf")).unwrap();
    let said = yard.tidy().await.remove(0).condition.unwrap();
    assert_eq!(
        (said.status, said.reason),
        (ConditionStatus::False, Reason::SkillMissing)
    );
}
