//! What people with their hands on the engine do, and the engine itself, as the seed decides.

use engine::{ContainerSettings, LABEL_OWNER, LABEL_UID, NETWORK};

use schema::ids::UserName;
use serde_json::{Value, json};

use crate::chaos::BREAKS_AGENTS_MB;
use crate::checks::{OWNER, uid_of};
use crate::driver::NAMES;
use crate::world::World;

/// The agent's configuration, in its home.
pub const CONFIG_FILE: &str = ".agent/config.json";

impl World {
    /// Somebody has their hands on the engine, or on a home.
    pub fn by_hand(&self) {
        let containers = self.fake.containers();
        let ours: Vec<String> = containers
            .iter()
            .filter(|details| uid_of(&details.container).is_some())
            .map(|details| details.container.name.clone())
            .collect();
        let Some(name) = self.chance.pick(&ours) else {
            return self.make_orphan();
        };
        let fake = &self.fake;
        let mut monitor = self.monitor();
        monitor.trace.count("by hand");
        monitor.hand();
        drop(monitor);
        let (what, result) = match self.chance.below(20) {
            0 | 1 => ("rm -f", fake.hand_remove(name)),
            2 | 3 => ("stop", fake.hand_stop(name)),
            4 => ("exit", fake.hand_exit(name, 1)),
            5 => ("oom", fake.hand_oom_kill(name)),
            6 => ("pause", fake.hand_pause(name)),
            7 => {
                let to = format!("moved-{:x}", self.chance.below(1 << 32));
                ("rename", fake.hand_rename(name, &to))
            }
            8 => ("disconnect", fake.hand_disconnect(name, NETWORK)),
            9 => (
                "update",
                fake.hand_update(name, |settings| settings.memory_bytes = 7 << 20),
            ),
            10 => ("restart policy", fake.hand_set_restart_policy(name)),
            11 => return self.make_orphan(),
            12 => return self.write_in_home(),
            13 | 14 => return self.write_in_config(),
            15 | 16 => ("evict", fake.hand_evict(name)),
            17 => ("lose the machine", fake.hand_lose_node(name)),
            18 => ("remove lost machines", fake.hand_remove_lost_nodes()),
            _ => return self.make_foreign(),
        };
        self.line(&format!("by hand: {what} {name}: {result:?}"));
    }

    fn bare(labels: &[(&str, &str)]) -> ContainerSettings {
        ContainerSettings {
            image: "echo:1".to_owned(),
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..ContainerSettings::default()
        }
    }

    /// Somebody's container takes a name of ours: without labels, or with another instance's.
    fn make_foreign(&self) {
        let Some(name) = self.chance.pick(&NAMES) else {
            return;
        };
        let ending = *self
            .chance
            .pick(&["", "", ".next-", ".prev-"])
            .unwrap_or(&"");
        let name = format!("agentyard-{name}{ending}").replace('@', "_");
        let settings = if self.chance.per_mille(500) {
            Self::bare(&[])
        } else {
            Self::bare(&[(LABEL_OWNER, "another-instance"), (LABEL_UID, "somebody")])
        };
        if self.fake.container(&name).is_some() {
            return;
        }
        self.monitor().expect_foreign();
        let result = self.fake.hand_create(&name, &settings);
        let mut monitor = self.monitor();
        monitor.trace.count("foreign");
        monitor.line(&format!("by hand: foreign {name}: {}", result.is_ok()));
    }

    /// A container of ours whose user nobody knows.
    fn make_orphan(&self) {
        let name = format!("orphan-{:x}", self.chance.below(1 << 32));
        let settings = Self::bare(&[(LABEL_OWNER, OWNER), (LABEL_UID, &name)]);
        let result = self.fake.hand_create(&name, &settings);
        let mut monitor = self.monitor();
        monitor.trace.count("orphan");
        monitor.line(&format!("by hand: orphan {name}: {}", result.is_ok()));
    }

    fn write_in_home(&self) {
        let Some(uid) = self.some_uid() else { return };
        let now = self.now();
        let mut monitor = self.monitor();
        let Some(account) = monitor.model.accounts.get_mut(&uid) else {
            return;
        };
        if self.ground.dir.owner_of(&account.name) != Some(uid.clone()) {
            return;
        }
        let file = format!("note-{}", account.files.len());
        if self.ground.dir.hand_write(&account.name, &file, now) {
            account.files.push(file.clone());
            monitor.trace.count("file written");
            monitor.line(&format!("by hand: {uid} writes {file}"));
        }
    }

    /// The agent writes into its configuration: a setting of its own, over what is the service's, or
    /// something that nobody can read.
    fn write_in_config(&self) {
        let Some(uid) = self.some_uid() else { return };
        let own = format!("{:x}", self.chance.next());
        let choice = self.chance.below(4);
        let mut monitor = self.monitor();
        let Some(account) = monitor.model.accounts.get_mut(&uid) else {
            return;
        };
        if self.ground.dir.owner_of(&account.name) != Some(uid.clone()) {
            return;
        }
        let found = self.ground.dir.peek_file(&account.name, CONFIG_FILE);
        let found = found.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let mut document = match (choice, found) {
            (0, _) => Value::Null,
            (1, _) | (_, None) => json!({}),
            (_, Some(found)) => found,
        };
        if let Some(members) = document.as_object_mut() {
            members.insert("own".to_owned(), Value::from(own.as_str()));
        }
        account.own = document.is_object().then_some(own);
        self.write_config(&account.name, &document);
        monitor.trace.count("configuration written");
        monitor.line(&format!(
            "by hand: {uid} writes its configuration ({choice})"
        ));
    }

    fn write_config(&self, name: &UserName, document: &Value) {
        let bytes = document.to_string();
        let dir = &self.ground.dir;
        dir.hand_write_bytes(name, CONFIG_FILE, bytes.as_bytes(), self.now());
    }

    /// Whoever made a configuration unreadable mends it.
    pub fn mend_configurations(&self) {
        if self.monitor().model.memory_mb() == BREAKS_AGENTS_MB {
            self.configure("container.memory_limit_mb", &Value::Null);
        }
        let accounts = self.monitor().model.accounts.clone();
        for (uid, account) in accounts {
            let is_there = self.ground.dir.owner_of(&account.name) == Some(uid);
            let found = self.ground.dir.peek_file(&account.name, CONFIG_FILE);
            if is_there && found.is_some_and(|bytes| bytes == b"null") {
                self.write_config(&account.name, &json!({}));
            }
        }
    }

    /// Machines that do not answer are removed from the engine.
    pub fn remove_lost_machines(&self) {
        let result = self.fake.hand_remove_lost_nodes();
        self.line(&format!("by hand: removes lost machines: {result:?}"));
    }

    /// Foreign containers go away again.
    pub fn remove_foreign(&self) {
        let ids = self.monitor().foreign_ids();
        for id in ids {
            self.monitor().forget_foreign(&id);
            let result = self.fake.hand_remove(&id);
            self.line(&format!("by hand: removes foreign {id}: {result:?}"));
        }
    }

    /// What the engine itself does wrong.
    pub fn trouble(&self) -> Trouble {
        let trouble = match self.chance.below(4) {
            0 => Trouble::Away,
            1 => Trouble::Restart,
            _ => Trouble::Cut,
        };
        let mut monitor = self.monitor();
        monitor.trace.count("engine trouble");
        monitor.hand();
        drop(monitor);
        self.line(&format!("ENGINE {trouble:?}"));
        match trouble {
            Trouble::Away => self.fake.set_unavailable(true),
            Trouble::Restart => self.fake.restart_engine(),
            Trouble::Cut => self.fake.cut_events(),
        }
        trouble
    }
}

/// What the engine itself does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody can reach it.
    Away,
    /// It ends everything that runs.
    Restart,
    /// Its event streams break.
    Cut,
}
