//! What users and operators ask for, as the seed decides.

use schema::config::{Changes, Config, parse_patch};
use schema::container::Desired;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid, UserName};
use schema::rollout::{DesiredRollout, NewRollout, RolloutKind};
use schema::user::{NewUser, Source};
use serde_json::{Value, json};

use crate::chaos::BREAKS_AGENTS_MB;
use crate::model::{Account, Wanted};
use crate::world::{World, echo};

/// Few names, so that they are taken again; two of them would meet if temporary names were careless.
pub const NAMES: [&str; 6] = ["ada", "bob", "bob.next", "eve@work", "eve+work", "zoe"];
const IMAGES: [&str; 3] = ["echo:1", "echo:2", "late:1"];
const LIMITS: [Option<i64>; 4] = [None, Some(128), Some(256), Some(512)];

impl World {
    /// What is there before the first step.
    pub fn prepare(&mut self) {
        self.fake.add_image("echo:1");
        self.fake.publish_image("echo:1");
        self.fake.publish_image("echo:2");
        self.ground.store.create_singles();
        self.configure(
            "agent",
            &json!({ "channel_list": { "chat": { "enabled": true } } }),
        );
        self.configure(
            "adapter.source_url",
            &json!("https://packages.example/echo.zip"),
        );
        self.configure("adapter.auto_activate", &json!(true));
        self.configure("container.probe_interval", &json!("3s"));
        for _ in 0..self.chance.between(1, 4) {
            self.create();
        }
    }

    /// Whoever was to publish this image has done so.
    pub fn publish_late_image(&self) {
        self.fake.publish_image("late:1");
    }

    pub fn some_uid(&self) -> Option<Uid> {
        let living = self.monitor().model.living();
        self.chance.pick(&living).cloned()
    }

    /// One accepted write to the container of a user, told to the model.
    pub fn wrote(
        &self,
        uid: &Uid,
        what: &'static str,
        result: Result<schema::ids::Generation, DbError>,
        change: impl FnOnce(&mut Wanted),
    ) {
        let now = self.now();
        let mut monitor = self.monitor();
        monitor.trace.count(what);
        let text = format!("{what} {uid}: {result:?}");
        monitor.line(&text);
        let Ok(generation) = result else {
            return monitor.broken(format!("I2: {text}"));
        };
        let common = monitor.model.common();
        let Some(account) = monitor.model.accounts.get_mut(uid) else {
            return;
        };
        account.push(now, common, change);
        if account.container_generation() != generation.0 {
            monitor.broken(format!("I2: {text} is not one write more"));
        }
    }

    fn create(&self) {
        let Some(name) = self.chance.pick(&NAMES) else {
            return;
        };
        let Ok(name) = name.parse::<UserName>() else {
            return;
        };
        let uid = self.uid();
        let image = *self.chance.pick(&IMAGES).unwrap_or(&"echo:1");
        let running = !self.chance.per_mille(150);
        let new = NewUser {
            uid: uid.clone(),
            name: name.clone(),
            source: Source::Local,
            password_hash: None,
            image_ref: image.to_owned(),
            desired: if running {
                Desired::Running
            } else {
                Desired::Stopped
            },
        };
        let result = self.ground.store.create_user(&new);
        let now = self.now();
        let mut monitor = self.monitor();
        monitor.line(&format!("create {name} {uid} {image}: {result:?}"));
        match result {
            Ok(_) => {
                monitor.trace.count("create");
                let reused = monitor
                    .model
                    .accounts
                    .values()
                    .any(|account| account.name == name);
                if reused {
                    monitor.trace.count("name reused");
                }
                let wanted = Wanted {
                    running,
                    disabled: false,
                    debug: false,
                    token: String::new(),
                    own_memory_mb: None,
                    memory_mb: monitor.model.memory_mb(),
                    adapter: monitor.model.adapter,
                    files: String::new(),
                    at: now,
                };
                let account = Account {
                    name,
                    wanted: vec![wanted],
                    user_generation: 1,
                    deleted: false,
                    paused: [false; 2],
                    files: Vec::new(),
                    saved: None,
                    own: None,
                };
                monitor.model.accounts.insert(uid, account);
            }
            Err(DbError::NameTaken) => {
                if monitor.model.bearer(&name).is_none() {
                    monitor.broken(format!("I2: {name} is taken, but by nobody"));
                }
            }
            Err(DbError::NameBeingRemoved) => monitor.trace.count("name being removed"),
            Err(error) => monitor.broken(format!("I2: {name} cannot be created: {error}")),
        }
    }

    fn delete(&self, uid: &Uid) {
        let result = self.ground.store.delete_user(uid, self.now());
        let now = self.now();
        let mut monitor = self.monitor();
        monitor.trace.count("delete");
        monitor.line(&format!("delete {uid}: {result:?}"));
        if result.is_err() {
            return monitor.broken(format!("I2: {uid} cannot be deleted"));
        }
        let common = monitor.model.common();
        if let Some(account) = monitor.model.accounts.get_mut(uid) {
            account.deleted = true;
            account.user_generation += 1;
            account.push(now, common, |wanted| wanted.running = false);
        }
    }

    fn pause(&self, uid: &Uid, kind: Kind, paused: bool) {
        let result = self.ground.store.set_paused(kind, uid, paused);
        let now = self.now();
        let mut monitor = self.monitor();
        monitor.trace.count(if paused { "pause" } else { "resume" });
        monitor.line(&format!("pause {kind}/{uid} {paused}: {result:?}"));
        if result.is_err() {
            return monitor.broken(format!("I2: {kind}/{uid} cannot be paused"));
        }
        let common = monitor.model.common();
        if let Some(account) = monitor.model.accounts.get_mut(uid) {
            account.paused[usize::from(kind == Kind::Container)] = paused;
            if kind == Kind::Container {
                account.push(now, common, |_| {});
            } else {
                account.user_generation += 1;
            }
        }
    }

    /// Configures one key, as the API does.
    pub fn configure(&self, key: &str, value: &Value) {
        let stored = Config::from_stored(self.ground.store.peek_config());
        let document = json!({ key: value });
        let Ok(patch) = parse_patch(&document) else {
            return self.monitor().broken(format!("{document} is no patch"));
        };
        let changes: Changes = match patch.resolve(&stored) {
            Ok(changes) => changes,
            Err(problems) => return self.monitor().broken(format!("{problems:?}")),
        };
        if changes.0.contains_key("container.memory_limit_mb") {
            let now = self.now();
            let mut monitor = self.monitor();
            monitor.model.memory_mb = value.as_i64();
            monitor.model.note_common(now);
        }
        // The containers that get it at once are told of before it returns.
        let result = self.ground.store.configure(&changes);
        let mut monitor = self.monitor();
        monitor.trace.count("configure");
        monitor.line(&format!("configure {document}: {result:?}"));
    }

    fn pause_reconciler(&self) {
        let Some(name) = self.chance.pick(&[
            "*",
            "user",
            "container",
            "engine",
            "agent-config",
            "image",
            "rollout",
            "adapter",
            "archive",
            "skill",
            "skill-set",
            "usage",
        ]) else {
            return;
        };
        let mut monitor = self.monitor();
        let paused = &mut monitor.model.paused_reconcilers;
        let pause = !paused.contains(name);
        if pause {
            paused.push(name);
        } else {
            paused.retain(|other| other != name);
        }
        monitor.trace.count("pause reconciler");
        monitor.line(&format!("pause reconciler {name} {pause}"));
        drop(monitor);
        self.ground.store.set_reconciler_paused(name, pause);
    }

    /// What is asked of images, rollouts and the adapter.
    fn ask_of_all(&self) {
        match self.chance.below(10) {
            0..=3 => self.ask_of_images(),
            4..=7 => self.ask_of_rollouts(),
            _ => self.publish_adapter(),
        }
    }

    fn uid(&self) -> Uid {
        Uid::from(format!(
            "{:016x}{:016x}",
            self.chance.next(),
            self.chance.next()
        ))
    }

    fn ask_of_images(&self) {
        let images = IMAGES.map(|image| format!("docker.io/library/{image}"));
        let Some(image) = self.chance.pick(&images) else {
            return;
        };
        let (store, now) = (&self.ground.store, self.now());
        let (what, result) = match self.chance.below(10) {
            0..=4 => {
                let token = format!("{:x}", self.chance.next());
                ("pull", store.request_pull(&self.uid(), image, &token))
            }
            5..=7 => (
                "remove image",
                store.request_absent(&self.uid(), image, now),
            ),
            _ => ("cancel pull", store.request_cancel(&self.uid(), image, now)),
        };
        self.monitor().trace.count(what);
        self.line(&format!("{what} {image}: {result:?}"));
    }

    fn ask_of_rollouts(&self) {
        let store = &self.ground.store;
        let all = store.peek_rollouts();
        let some = self
            .chance
            .pick(&all)
            .filter(|_| self.chance.per_mille(600));
        let (what, result) = match some {
            Some(row) => match self.chance.below(4) {
                0 => ("pause rollout", store.pause_rollout(&row.uid)),
                1 => ("resume rollout", store.resume_rollout(&row.uid)),
                2 => ("roll back", store.roll_back_rollout(&row.uid)),
                _ => ("cancel rollout", store.cancel_rollout(&row.uid)),
            },
            None => {
                let image = *self.chance.pick(&["echo:1", "echo:2"]).unwrap_or(&"echo:2");
                let new = NewRollout {
                    kind: RolloutKind::Upgrade,
                    reference: format!("docker.io/library/{image}"),
                    source: None,
                    max_unavailable: u32::try_from(self.chance.between(1, 3)).unwrap_or(1),
                    pause_on_failure: self.chance.per_mille(500),
                    health_timeout: self.chance.millis(30_000, 120_000),
                    min_ready: self.chance.millis(0, 20_000),
                };
                let living = self.monitor().model.living();
                let users: Vec<Uid> = living
                    .into_iter()
                    .filter(|_| self.chance.per_mille(700))
                    .collect();
                if users.is_empty() {
                    return;
                }
                let created = store.create_rollout(&self.uid(), &new, &users, "admin", self.now());
                ("roll out", created.map(|()| Generation(1)))
            }
        };
        // What is under way decides what may be asked.
        if result.is_ok() {
            self.monitor().trace.count(what);
        }
        self.line(&format!("{what}: {result:?}"));
    }

    /// The source has a newer package; often somebody asks for it at once.
    fn publish_adapter(&self) {
        let number = {
            let mut monitor = self.monitor();
            monitor.model.published += 1;
            monitor.model.published
        };
        self.line(&format!("publish adapter 2.{number}"));
        let readiness = self.chaos.profile.readiness;
        self.ground.packages.publish(echo(readiness, number));
        if self.chance.per_mille(800) {
            self.refresh_adapter();
        }
    }

    /// Somebody asks for the newest package.
    pub fn refresh_adapter(&self) {
        let token = format!("{:x}", self.chance.next());
        let result = self.ground.store.refresh_adapter(&token);
        self.monitor().trace.count("refresh adapter");
        self.line(&format!("refresh adapter: {result:?}"));
    }

    /// Nobody insists on the removal of an image that something foreign uses.
    pub fn cancel_removals(&self) {
        for row in self.ground.store.peek_images() {
            if row.deleted_at.is_some() {
                let store = &self.ground.store;
                let result = store.request_cancel(&row.uid, &row.reference, self.now());
                self.line(&format!("cancel removal of {}: {result:?}", row.reference));
            }
        }
    }

    /// Whoever cares for rollouts lets those go on that have paused, or cancels them once it has lost patience: a
    /// foreign container that stays in the way lets no attempt succeed.
    pub fn resume_rollouts(&self, patient: bool) {
        for row in self.ground.store.peek_rollouts() {
            let paused = row.desired == DesiredRollout::Pause || row.paused_itself();
            if paused && row.facts.finished_at.is_none() {
                let store = &self.ground.store;
                let (what, result) = match patient || !row.kind.changes_image() {
                    true => ("resume rollout", store.resume_rollout(&row.uid)),
                    false => ("cancel rollout", store.cancel_rollout(&row.uid)),
                };
                self.monitor().trace.count(what);
                self.line(&format!("{what} {}: {result:?}", row.uid));
            }
        }
    }

    /// A user saves a channel.
    pub fn save(&self, uid: &Uid) {
        let token = format!("{:x}", self.chance.next());
        let value = format!("{:x}", self.chance.next());
        let values = [
            ("enabled".to_owned(), json!(true)),
            ("client_id".to_owned(), json!(value)),
        ];
        let values = values.into();
        let store = &self.ground.store;
        let result = store.save_channel(uid, "chat", &values, &token);
        self.wrote(uid, "save", result, |wanted| {
            wanted.token = token;
        });
        if let Some(account) = self.monitor().model.accounts.get_mut(uid) {
            account.saved = Some(value);
        }
    }

    /// Somebody writes desired state.
    pub fn write(&self) {
        let choice = self.chance.below(100);
        if choice < 13 {
            return self.create();
        }
        if choice < 15 {
            return self.pause_reconciler();
        }
        if choice < 18 {
            let value = match self.chance.below(5) {
                0 => Value::Null,
                1 => json!(BREAKS_AGENTS_MB),
                _ => json!(self.chance.between(1, 3) * 200),
            };
            return self.configure("container.memory_limit_mb", &value);
        }
        if choice < 22 {
            return self.ask_of_all();
        }
        if choice < 23 {
            let policy = *self
                .chance
                .pick(&["missing", "always"])
                .unwrap_or(&"missing");
            return self.configure("image.pull_policy", &json!(policy));
        }
        let Some(uid) = self.some_uid() else {
            return self.create();
        };
        let store = &self.ground.store;
        match choice {
            23..=40 => {
                let debug = self.chance.per_mille(100);
                let result = store.set_desired(&uid, Desired::Running, debug);
                self.wrote(&uid, "start", result, |wanted| {
                    wanted.running = true;
                    wanted.debug = debug;
                });
            }
            41..=48 => {
                let result = store.set_desired(&uid, Desired::Stopped, false);
                self.wrote(&uid, "stop", result, |wanted| {
                    wanted.running = false;
                    wanted.debug = false;
                });
            }
            49..=62 => {
                let token = format!("{:x}", self.chance.next());
                let debug = self.chance.per_mille(100);
                let result = store.request_restart(&uid, &token, debug);
                self.wrote(&uid, "restart", result, |wanted| {
                    wanted.running = true;
                    wanted.debug = debug;
                    wanted.token = token;
                });
            }
            63..=79 => {
                let limit = self.chance.pick(&LIMITS).copied().flatten();
                let result = store.set_limits(&uid, None, limit);
                self.wrote(&uid, "limits", result, |wanted| {
                    wanted.own_memory_mb = limit;
                });
            }
            80..=83 => self.save(&uid),
            84..=86 => {
                let disabled = self.chance.per_mille(400);
                let result = store.set_disabled(&uid, disabled);
                self.wrote(&uid, "disable", result, |wanted| {
                    wanted.disabled = disabled;
                });
            }
            87..=90 => {
                let kind = *self
                    .chance
                    .pick(&[Kind::User, Kind::Container])
                    .unwrap_or(&Kind::User);
                let paused = self
                    .monitor()
                    .model
                    .accounts
                    .get(&uid)
                    .is_some_and(|account| account.is_paused(kind));
                self.pause(&uid, kind, !paused);
            }
            _ => self.delete(&uid),
        }
    }

    /// Everything that was paused is resumed.
    pub fn resume_everything(&self) {
        let (objects, reconcilers) = {
            let mut monitor = self.monitor();
            let reconcilers = std::mem::take(&mut monitor.model.paused_reconcilers);
            let accounts = monitor.model.accounts.iter();
            let objects: Vec<(Uid, Kind)> = accounts
                .flat_map(|(uid, account)| {
                    [Kind::User, Kind::Container]
                        .into_iter()
                        .filter(|kind| account.is_paused(*kind))
                        .map(|kind| (uid.clone(), kind))
                })
                .collect();
            (objects, reconcilers)
        };
        for name in reconcilers {
            self.line(&format!("resume reconciler {name}"));
            self.ground.store.set_reconciler_paused(name, false);
        }
        for (uid, kind) in objects {
            if self.ground.store.peek(kind, &uid).is_some() {
                self.pause(&uid, kind, false);
            }
        }
    }
}
