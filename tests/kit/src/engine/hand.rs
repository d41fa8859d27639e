//! What tests do to the fake: scripting it, and acting on it behind the service's back.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use bytes::Bytes;
use engine::{
    ContainerDetails, ContainerSettings, ContainerState, EngineError, EngineEvent, LABEL_UID,
    Network, NetworkSettings,
};
use schema::condition::Reason;
use schema::ids::Timestamp;
use schema::image::ImageReference;
use schema::live::{Loss, Waiting};

use super::images::{familiar, made};
use super::script::{Calls, Fault, HostEntry, Run, Verb};
use super::world::FakeContainer;
use super::{FakeEngine, unavailable};

/// Scripting.
impl FakeEngine {
    /// How often each verb was called since the beginning or the last [`Self::reset_calls`].
    pub fn calls(&self) -> Calls {
        self.script().calls.clone()
    }

    /// Starts counting again and returns the counts so far.
    pub fn reset_calls(&self) -> Calls {
        std::mem::take(&mut self.script().calls)
    }

    /// The next `times` calls of a verb get a fault, after those that were scripted before.
    pub fn fault_next(&self, verb: Verb, times: usize, fault: Fault) {
        let mut script = self.script();
        let queue = script.faults.entry(verb).or_default();
        queue.extend(std::iter::repeat_n(fault, times));
    }

    /// The next `times` calls of a verb fail without effect.
    pub fn fail_next(
        &self,
        verb: Verb,
        times: usize,
        error: impl Fn() -> EngineError + Send + Sync + 'static,
    ) {
        self.fault_next(verb, times, Fault::fail(error));
    }

    /// Forgets all faults that did not happen yet.
    pub fn clear_faults(&self) {
        self.script().faults.clear();
    }

    /// Every call of a verb takes at least this long; zero takes it back.
    pub fn set_latency(&self, verb: Verb, latency: Duration) {
        let mut script = self.script();
        if latency.is_zero() {
            script.latency.remove(&verb);
        } else {
            script.latency.insert(verb, latency);
        }
    }

    /// Keeps files of containers here, as it says from its next answer on.
    pub fn set_root_dir(&self, path: &Path) {
        self.world().root_dir = Some(path.to_owned());
    }

    /// Switches the whole engine off or on. Containers go on; event streams break.
    pub fn set_unavailable(&self, off: bool) {
        self.script().unavailable = off;
        if off {
            self.cut_events();
        }
    }

    /// Lets the whole engine hang, or go on: calls are taken and not answered, event streams are silent.
    pub fn set_hung(&self, hung: bool) {
        self.shared.hung.send_replace(hung);
    }

    /// Breaks all event streams, while calls still work.
    pub fn cut_events(&self) {
        self.change(|world| world.cut += 1);
    }

    /// Lets listings show what is now, until it is taken back: a real engine's lag behind its events.
    pub fn lag_listings(&self, lag: bool) {
        self.change(|world| {
            let now = world.containers().map(|c| c.details.container.clone());
            world.listed = lag.then(|| now.collect());
        });
    }

    /// Keeps event streams open and lets nothing through them, until it is taken back.
    pub fn silence_events(&self, silent: bool) {
        self.change(|world| world.silent = silent);
    }

    /// Breaks all event streams and ends all containers, as a restart of the engine does.
    pub fn restart_engine(&self) {
        let now = self.now();
        self.change(|world| {
            world.cut += 1;
            let running: Vec<String> = world
                .containers()
                .filter(|container| container.runs())
                .map(|container| container.details.container.id.clone())
                .collect();
            for id in running {
                world.end(&id, now, 137, false);
            }
        });
    }

    /// Decides at each start how the process behaves; without a hook it runs for ever.
    pub fn on_start(&self, hook: impl Fn(&ContainerDetails) -> Run + Send + Sync + 'static) {
        self.script().start_hook = Some(std::sync::Arc::new(hook));
    }

    /// Decides what goes wrong with each call for which nothing was scripted.
    pub fn on_call(&self, hook: impl Fn(Verb) -> Option<Fault> + Send + Sync + 'static) {
        self.script().call_hook = Some(std::sync::Arc::new(hook));
    }

    /// Another handle to the same engine, whose calls are told apart from everybody else's.
    #[must_use]
    pub fn watched(&self, hook: impl Fn(Verb) + Send + Sync + 'static) -> Self {
        Self {
            caller: Some(std::sync::Arc::new(hook)),
            ..self.clone()
        }
    }

    /// Decides when each event is heard; without a hook at once, and once.
    pub fn on_event(&self, hook: impl Fn(&EngineEvent) -> Vec<Duration> + Send + Sync + 'static) {
        self.script().event_hook = Some(std::sync::Arc::new(hook));
    }

    /// Tells of all containers after every change, whoever made it.
    pub fn on_change(
        &self,
        hook: impl Fn(&mut dyn Iterator<Item = &ContainerDetails>) + Send + Sync + 'static,
    ) {
        self.script().change_hook = Some(std::sync::Arc::new(hook));
    }

    /// Gives the engine a host of its own: nothing on this machine's file system is observed.
    pub fn on_host(
        &self,
        hook: impl Fn(&std::path::Path) -> Option<HostEntry> + Send + Sync + 'static,
    ) {
        self.script().host_hook = Some(std::sync::Arc::new(hook));
    }

    /// Lets the engine see nothing of bound directories, as one on another host would.
    pub fn hide_binds(&self, hidden: bool) {
        self.script().hide_binds = hidden;
    }

    /// Creates containers although the directories to bind do not exist, for simulations.
    pub fn ignore_bind_sources(&self) {
        self.script().ignore_bind_sources = true;
    }

    /// Puts an image on the engine under a reference and returns its id. The same reference again
    /// moves the tag to a new image.
    pub fn add_image(&self, reference: &str) -> String {
        let now = self.now();
        self.change(|world| {
            let image = made(world.fresh_id(), reference, now);
            let id = image.id.clone();
            world.load(image);
            id
        })
    }

    /// Puts an image where pulls find it and returns the id it will have.
    pub fn publish_image(&self, reference: &str) -> String {
        let now = self.now();
        self.change(|world| {
            let mut image = made(world.fresh_id(), reference, now);
            if let Ok(parsed) = reference.parse::<ImageReference>() {
                let by_digest = match parsed.digest() {
                    Some(_) => {
                        image.repo_tags.clear();
                        reference.to_owned()
                    }
                    None => format!("{}@sha256:{}", parsed.name(), world.fresh_id()),
                };
                image.repo_digests.push(familiar(&by_digest));
            }
            let id = image.id.clone();
            for name in image.repo_digests.iter().chain(&image.repo_tags) {
                world.registry.insert(name.clone(), image.clone());
            }
            id
        })
    }

    /// The same for an engine of many machines: the registry has the image, and no machine does until it is pulled.
    pub fn offer_image(&self, reference: &str) -> String {
        let id = self.publish_image(reference);
        self.change(|world| {
            let offered = world
                .registry
                .values()
                .find(|image| image.id == id)
                .cloned();
            if let Some(mut image) = offered {
                image.is_local = false;
                world.load(image);
            }
        });
        id
    }
}

/// Looking without being counted.
impl FakeEngine {
    /// Everything about one container.
    pub fn container(&self, id_or_name: &str) -> Option<ContainerDetails> {
        self.world().find(id_or_name).map(|c| c.details.clone())
    }

    /// When a running container of the user has made this file in the user's directory.
    pub fn file_made(&self, uid: &str, file: &str) -> Option<Timestamp> {
        self.world().containers().find_map(|container| {
            let details = &container.details;
            let of_user = details
                .container
                .labels
                .get(LABEL_UID)
                .is_some_and(|l| l == uid);
            let (after, made) = container.run.makes_file.as_ref()?;
            let due = container.started.is_some_and(|at| at.elapsed() >= *after);
            let runs = details.container.state == ContainerState::Running;
            (of_user && runs && due && made == file)
                .then(|| details.started_at.map(|at| at.plus(*after)))?
        })
    }

    /// Reports that the agent of a container has stopped answering.
    pub fn agent_hangs(&self, id: &str) -> bool {
        let world = self.world();
        let hangs = |found: &FakeContainer| {
            let after = found.run.hangs_after?;
            found.answered.map(|at| at.elapsed() >= after)
        };
        world.find(id).and_then(hangs).unwrap_or_default()
    }

    /// All containers, owned or not, ordered by name.
    pub fn containers(&self) -> Vec<ContainerDetails> {
        let mut all: Vec<_> = self
            .world()
            .containers()
            .map(|container| container.details.clone())
            .collect();
        all.sort_by(|a, b| a.container.name.cmp(&b.container.name));
        all
    }

    /// Names of the containers that run, in order.
    pub fn running(&self) -> Vec<String> {
        self.containers()
            .into_iter()
            .filter(|details| details.container.state == ContainerState::Running)
            .map(|details| details.container.name)
            .collect()
    }

    /// A network.
    pub fn network_by_name(&self, name: &str) -> Option<Network> {
        self.world().network(name)
    }
}

/// Acting by hand, behind the service's back. Each fails when there is no such container.
impl FakeEngine {
    /// `docker create`, of a container that is nobody's or looks like somebody's.
    pub fn hand_create(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        let now = self.now();
        self.change(|world| {
            if world.image(&settings.image).is_none() {
                let mut image = made(world.fresh_id(), &settings.image, now);
                if settings.image.starts_with("sha256:") {
                    image.id.clone_from(&settings.image);
                    image.repo_tags.clear();
                }
                world.load(image);
            }
            world.create(name, settings, now)
        })
    }

    /// `docker start`.
    pub fn hand_start(&self, name: &str) -> Result<(), EngineError> {
        self.start_now(name)
    }

    /// `docker stop`: the process ends with code 0.
    pub fn hand_stop(&self, name: &str) -> Result<(), EngineError> {
        self.hand_end(name, 0, false)
    }

    /// The process ends by itself with a code.
    pub fn hand_exit(&self, name: &str, code: i64) -> Result<(), EngineError> {
        self.hand_end(name, code, false)
    }

    /// The kernel kills the process for want of memory.
    pub fn hand_oom_kill(&self, name: &str) -> Result<(), EngineError> {
        self.hand_end(name, 137, true)
    }

    /// A machine is found for a container that was starting.
    pub fn hand_begin(&self, name: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            if container.details.container.state == ContainerState::Starting {
                let id = container.details.container.id.clone();
                world.begin(&id, Instant::now());
            }
            Ok(())
        })
    }

    /// The engine takes the container from its machine.
    pub fn hand_evict(&self, name: &str) -> Result<(), EngineError> {
        self.hand_lose(name, Loss::Evicted)
    }

    /// The machine of the container stops answering: it is being removed, and that does not end.
    pub fn hand_lose_node(&self, name: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            if container.runs() {
                let container = &mut container.details.container;
                container.state = ContainerState::Removing;
                container.waiting = Some(Waiting {
                    reason: Reason::NodeLost,
                    message: "node n1 is not ready".to_owned(),
                });
            }
            let id = container.details.container.id.clone();
            world.notice(&id, "update");
            Ok(())
        })
    }

    /// The lost machine of the container is removed from the engine.
    pub fn hand_remove_node(&self, name: &str) -> Result<(), EngineError> {
        self.hand_lose(name, Loss::NodeLost)
    }

    /// All lost machines are removed from the engine.
    pub fn hand_remove_lost_nodes(&self) -> Result<(), EngineError> {
        let lost: Vec<_> = self.containers();
        for details in lost {
            let container = details.container;
            if container.state == ContainerState::Removing {
                self.hand_remove_node(&container.id)?;
            }
        }
        Ok(())
    }

    fn hand_lose(&self, name: &str, loss: Loss) -> Result<(), EngineError> {
        let now = self.now();
        self.change(|world| {
            let container = world.get_mut(name)?;
            let state = &mut container.details.container.state;
            if *state == ContainerState::Removing {
                *state = ContainerState::Running;
            }
            let id = container.details.container.id.clone();
            if container.runs() {
                world.end(&id, now, 137, false);
                let container = world.get_mut(&id)?;
                container.details.exit_code = None;
                container.details.loss = Some(loss);
            }
            Ok(())
        })
    }

    fn hand_end(&self, name: &str, code: i64, oom: bool) -> Result<(), EngineError> {
        let now = self.now();
        self.change(|world| {
            let id = world.get_mut(name)?.details.container.id.clone();
            world.end(&id, now, code, oom);
            Ok(())
        })
    }

    /// `docker rm -f`.
    pub fn hand_remove(&self, name: &str) -> Result<(), EngineError> {
        let now = self.now();
        self.change(|world| {
            world.get_mut(name)?;
            world.remove(name, now);
            Ok(())
        })
    }

    /// `docker rename`.
    pub fn hand_rename(&self, name: &str, to: &str) -> Result<(), EngineError> {
        self.change(|world| world.rename(name, to))
    }

    /// `docker pause`.
    pub fn hand_pause(&self, name: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            if container.runs() {
                container.details.container.state = ContainerState::Paused;
            }
            let id = container.details.container.id.clone();
            world.notice(&id, "pause");
            Ok(())
        })
    }

    /// `docker update`, or any other change of settings.
    pub fn hand_update(
        &self,
        name: &str,
        change: impl FnOnce(&mut ContainerSettings),
    ) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            change(&mut container.details.settings);
            let id = container.details.container.id.clone();
            world.notice(&id, "update");
            Ok(())
        })
    }

    /// Another value of a label, as another build of the service writes it.
    pub fn hand_label(&self, name: &str, label: &str, value: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let details = &mut world.get_mut(name)?.details;
            for labels in [&mut details.container.labels, &mut details.settings.labels] {
                labels.insert(label.to_owned(), value.to_owned());
            }
            Ok(())
        })
    }

    /// `docker update --restart=always`.
    pub fn hand_set_restart_policy(&self, name: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            container.details.deviations = vec!["restart_policy"];
            let id = container.details.container.id.clone();
            world.notice(&id, "update");
            Ok(())
        })
    }

    /// `docker network disconnect -f`; the engine reports it as an event of the network, not of the
    /// container, so nobody hears of it.
    pub fn hand_disconnect(&self, name: &str, network: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let id = world.get_mut(name)?.details.container.id.clone();
            world.disconnect(&id, network);
            Ok(())
        })
    }

    /// `docker network connect`; no event, as above.
    pub fn hand_connect(&self, name: &str, network: &str) -> Result<(), EngineError> {
        self.change(|world| {
            let id = world.get_mut(name)?.details.container.id.clone();
            world.connect(&id, network)
        })
    }

    /// `docker network create`.
    pub fn hand_create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        self.change(|world| world.create_network(settings))
    }

    /// Removes a network even while containers use it.
    pub fn hand_remove_network(&self, name: &str) -> Result<(), EngineError> {
        self.change(|world| world.remove_network(name, true))
    }

    /// `docker rmi -f`, by id; containers made from it stay.
    pub fn hand_remove_image(&self, id: &str) {
        self.change(|world| world.images.remove(id));
    }

    /// What an image, by id, has at a path: a tar archive.
    pub fn set_image_tree(&self, image: &str, path: &str, tree: Vec<u8>) {
        let at = (image.to_owned(), path.to_owned());
        self.script().trees.insert(at, tree.into());
    }

    /// Puts a file into a container.
    pub fn hand_write_file(
        &self,
        name: &str,
        path: &str,
        content: &[u8],
    ) -> Result<(), EngineError> {
        self.change(|world| {
            let container = world.get_mut(name)?;
            container.files.insert(path.to_owned(), content.to_vec());
            Ok(())
        })
    }

    /// The process writes a line; the line break is added.
    pub fn hand_log(&self, name: &str, stderr: bool, line: &str) -> Result<(), EngineError> {
        let now = self.now();
        self.change(|world| {
            let container = world.get_mut(name)?;
            let line = Bytes::from(format!("{line}\n"));
            container.logs.push((now, stderr, line));
            Ok(())
        })
    }

    /// What a call to a switched-off engine answers, to script the same for one verb.
    pub fn unavailable_error() -> EngineError {
        unavailable()
    }
}
