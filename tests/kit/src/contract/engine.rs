//! The contract of a container engine, as one suite for every implementation.

mod containers;
mod files;
mod homes;
mod images;
mod networks;
mod reports;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub use containers::*;
use engine::{
    Bind, Container, ContainerDetails, ContainerSettings, ContainerState, Containers, LABEL_OWNER,
    LABEL_UID,
};
pub use files::*;
pub use homes::*;
pub use images::*;
pub use networks::*;
pub use reports::*;

/// What somebody does behind the service's back.
#[derive(Debug, Clone, Copy)]
pub enum Hand<'a> {
    Stop(&'a str),
    Remove(&'a str),
    Pause(&'a str),
    LimitMemory(&'a str, i64),
    AlwaysRestart(&'a str),
    Disconnect(&'a str, &'a str),
    /// Makes an image of a few bytes, which no other is equal to.
    Import(&'a str),
    Tag(&'a str, &'a str),
}

/// An engine with an image, a network and a directory, and nothing of another run in sight. Functions of the suite ask of the
/// engine no more than they need.
pub trait Stage {
    type Engine: Containers;

    fn engine(&self) -> &Self::Engine;
    /// The owner label of this run.
    fn owner(&self) -> &str;
    /// A name that only this run has.
    fn name(&self, name: &str) -> String;
    /// The network that containers of this run join; a /24.
    fn network(&self) -> &str;
    /// A subnet of four addresses that nobody uses.
    fn tiny_subnet(&self) -> String;
    /// A directory to bind, which engine and test see alike.
    fn home(&self) -> &Path;
    /// Acts by hand.
    async fn hand(&self, hand: Hand<'_>);
    /// Lets the process write the line `config: none`, unless it has.
    async fn let_speak(&self, name: &str);

    /// The directory as the source of a mount.
    fn home_source(&self) -> String {
        self.home().display().to_string()
    }

    /// The user of containers, who may write into the directory.
    fn user(&self) -> &str {
        "0:0"
    }

    /// Settings of a container of this run.
    fn settings(&self, uid: &str) -> ContainerSettings {
        ContainerSettings {
            image: "echo:1".to_owned(),
            labels: BTreeMap::from([
                (LABEL_OWNER.to_owned(), self.owner().to_owned()),
                (LABEL_UID.to_owned(), uid.to_owned()),
            ]),
            environment: BTreeMap::from([("HOME".to_owned(), "/home/agent".to_owned())]),
            user: Some(self.user().to_owned()),
            binds: vec![Bind {
                source: self.home_source(),
                target: "/home/agent".to_owned(),
                read_only: false,
            }],
            network: self.network().to_owned(),
            memory_bytes: 64 << 20,
            pids_limit: 50,
            ..Default::default()
        }
    }

    /// Creates a container and returns its id.
    async fn create(&self, name: &str, uid: &str) -> String {
        let settings = self.settings(uid);
        self.engine()
            .create(&self.name(name), &settings)
            .await
            .unwrap()
    }

    /// Starts a container and waits until the engine does not wait for anything.
    async fn start(&self, id: &str) {
        self.engine().start(id).await.unwrap();
        self.until(id, |seen| seen.container.state != ContainerState::Starting)
            .await;
    }

    /// Creates and starts a container and returns its id.
    async fn run(&self, name: &str, uid: &str) -> String {
        let id = self.create(name, uid).await;
        self.start(&id).await;
        id
    }

    /// Waits until the listing of all containers shows these: an engine may hear late of changes by another program.
    async fn expect_listed(&self, expected: &[Container]) {
        let mut listed = Vec::new();
        for _ in 0..100 {
            listed = self.engine().list(self.owner(), None).await.unwrap();
            if listed == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(listed, expected);
    }

    /// Reads a container that is there.
    async fn see(&self, id: &str) -> ContainerDetails {
        self.engine()
            .inspect(id)
            .await
            .unwrap()
            .expect("the container is there")
    }

    /// Waits until a container looks as it should.
    async fn until(&self, id: &str, holds: impl Fn(&ContainerDetails) -> bool) -> ContainerDetails {
        for _ in 0..300 {
            let details = self.see(id).await;
            if holds(&details) {
                return details;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it never came true; last seen: {:#?}", self.see(id).await);
    }
}

/// A test per function that is named, on the stage that `$stage` makes; `$attribute` is what makes
/// it a test.
#[macro_export]
macro_rules! contract {
    ($stage:expr, $attribute:meta, [$($name:ident),* $(,)?]) => {
        $(
            #[$attribute]
            async fn $name() {
                let stage = $stage.await;
                $crate::contract::engine::$name(&stage).await;
                stage.strike().await;
            }
        )*
    };
}

/// A test per function of the suite of a container engine, on the stage that `$stage` makes; `$attribute` is what makes
/// it a test.
#[macro_export]
macro_rules! engine_contract {
    ($stage:expr, $attribute:meta) => {
        $crate::contract!(
            $stage,
            $attribute,
            [
                the_engine_tells_its_version_and_size,
                a_container_lives_from_creation_to_removal,
                l58_settings_are_read_back_as_they_were_given,
                l58_optional_settings_left_out_are_read_back_as_none,
                a_listing_shows_only_the_owners_containers_stopped_ones_included,
                l30_a_taken_name_is_reported_and_its_bearer_left_alone,
                of_many_creations_under_one_name_one_wins,
                renaming_swaps_names_and_may_be_repeated,
                a_refused_creation_leaves_nothing,
                a_start_that_fails_says_why_and_may_be_repeated,
                a_missing_program_is_an_exit_with_code_127,
                an_exit_code_is_seen,
                a_process_that_ignores_the_request_is_killed,
                a_paused_container_is_seen_and_can_be_stopped,
                two_removals_at_once_both_succeed,
                what_is_done_by_hand_is_seen,
                verbs_on_what_is_gone_are_done_or_not_found,
                a_file_in_a_bound_directory_is_read_before_the_first_start,
                what_is_no_plain_file_is_no_file,
                a_long_file_is_read_up_to_the_limit,
                data_directory_is_proven_by_what_the_engine_reads,
                image_is_read_through_what_bears_its_users_uid,
                a_network_is_made_once_and_read_back,
                a_network_in_use_is_not_removed,
                a_bad_or_overlapping_subnet_is_refused,
                l29_an_address_is_given_at_start_and_free_again_after_the_end,
                a_container_without_its_network_does_not_start,
                an_image_is_found_by_reference_and_id,
                all_images_are_listed_as_they_are_read_one_by_one,
                a_reference_is_taken_off_and_the_last_one_takes_the_image_along,
                an_image_that_a_container_is_made_from_is_not_removed,
                l37_a_pull_that_fails_says_so,
                events_tell_the_life_of_owned_containers,
                l58_looking_at_a_container_makes_no_event,
                a_log_is_read_whole_in_part_and_followed,
                a_running_container_has_stats,
            ]
        );
    };
}
