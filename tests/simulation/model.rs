//! What was asked for, as whoever asked remembers it: every accepted write, and nothing else.

use std::collections::BTreeMap;

use crate::skills::SkillsModel;
use schema::ids::{Generation, Kind, Timestamp, Uid, UserName};

/// The memory limit of everybody who has none of their own, until somebody configures another one.
pub const DEFAULT_MEMORY_MB: i64 = 1024;

/// What a container should be at one generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    pub running: bool,
    pub disabled: bool,
    pub debug: bool,
    pub token: String,
    pub own_memory_mb: Option<i64>,
    /// What everybody has at that moment.
    pub memory_mb: i64,
    /// The version of the adapter at that moment.
    pub adapter: u32,
    /// What the agent's files said when this was the newest generation, as far as it matters.
    pub files: String,
    pub at: Timestamp,
}

impl Wanted {
    pub fn desired_running(&self) -> bool {
        self.running && !self.disabled
    }

    pub fn memory_bytes(&self) -> i64 {
        self.own_memory_mb.unwrap_or(self.memory_mb) * 1024 * 1024
    }
}

/// Values that all agents are made from that have none of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Common {
    pub memory_mb: i64,
    pub adapter: u32,
}

/// One user.
#[derive(Debug, Clone)]
pub struct Account {
    pub name: UserName,
    /// The container at each generation, from 1.
    pub wanted: Vec<Wanted>,
    /// The user object's generation.
    pub user_generation: i64,
    pub deleted: bool,
    pub paused: [bool; 2],
    /// Files that the agent wrote into its home.
    pub files: Vec<String>,
    /// What the user saved last, and what the agent wrote into its configuration last.
    pub saved: Option<String>,
    pub own: Option<String>,
}

impl Account {
    pub fn now(&self) -> Option<&Wanted> {
        self.wanted.last()
    }

    /// What the container should have been at a generation.
    pub fn at(&self, generation: Generation) -> Option<&Wanted> {
        let index = usize::try_from(generation.0).ok()?.checked_sub(1)?;
        self.wanted.get(index)
    }

    /// What the container should have been at a generation and at all later ones.
    pub fn since(&self, generation: Generation) -> &[Wanted] {
        let index = usize::try_from(generation.0 - 1).unwrap_or(0);
        self.wanted.get(index..).unwrap_or_default()
    }

    /// When the container was asked not to run, before a generation.
    pub fn stops_before(&self, generation: Generation) -> impl Iterator<Item = Timestamp> {
        let index = usize::try_from(generation.0 - 1).unwrap_or(0);
        let before = self.wanted.get(..index).unwrap_or_default();
        before
            .iter()
            .filter(|wanted| !wanted.desired_running())
            .map(|wanted| wanted.at)
    }

    /// One more accepted write to the container, which gets by it what all have by now.
    pub fn push(&mut self, at: Timestamp, common: Common, change: impl FnOnce(&mut Wanted)) {
        if let Some(mut wanted) = self.wanted.last().cloned() {
            wanted.at = at;
            wanted.memory_mb = common.memory_mb;
            wanted.adapter = common.adapter;
            change(&mut wanted);
            self.wanted.push(wanted);
        }
    }

    pub fn container_generation(&self) -> i64 {
        i64::try_from(self.wanted.len()).unwrap_or(0)
    }

    pub fn is_paused(&self, kind: Kind) -> bool {
        self.paused[usize::from(kind == Kind::Container)]
    }
}

/// Everything that was asked for.
#[derive(Debug, Default)]
pub struct Model {
    pub accounts: BTreeMap<Uid, Account>,
    pub memory_mb: Option<i64>,
    /// Values that all agents were made from, from these moments on: one that waits for its turn may have been made anew meanwhile.
    pub commons: Vec<(Timestamp, Common)>,
    pub paused_reconcilers: Vec<&'static str>,
    /// The version of the adapter in effect, and of the newest that the source has had.
    pub adapter: u32,
    pub published: u32,
    pub skills: SkillsModel,
}

impl Model {
    pub fn memory_mb(&self) -> i64 {
        self.memory_mb.unwrap_or(DEFAULT_MEMORY_MB)
    }

    pub fn common(&self) -> Common {
        Common {
            memory_mb: self.memory_mb(),
            adapter: self.adapter,
        }
    }

    /// Notes what all agents are made from by now.
    pub fn note_common(&mut self, at: Timestamp) {
        let common = self.common();
        self.commons.push((at, common));
    }

    /// Lists the values that all agents were made from at a moment or later.
    pub fn commons_since(&self, at: Timestamp) -> impl Iterator<Item = Common> {
        let later = self.commons.iter().filter(move |(since, _)| *since >= at);
        later.map(|(_, common)| *common)
    }

    /// Users who have not been deleted.
    pub fn living(&self) -> Vec<Uid> {
        let accounts = self.accounts.iter();
        accounts
            .filter(|(_, account)| !account.deleted)
            .map(|(uid, _)| uid.clone())
            .collect()
    }

    /// Users who have not been deleted, by name.
    pub fn bearer(&self, name: &UserName) -> Option<&Uid> {
        let accounts = self.accounts.iter();
        accounts
            .filter(|(_, account)| !account.deleted && account.name == *name)
            .map(|(uid, _)| uid)
            .next()
    }
}
