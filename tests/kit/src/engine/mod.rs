//! A scripted engine in memory, for tests, benchmarks and simulations.
//!
//! Keeps the contract of the real one (the same suite runs against both): names, addresses, states,
//! events. Waits in tokio's time, which a test can pause, and takes timestamps from the clock it is
//! given. Nothing runs in the background: what should have ended by now ends when somebody looks,
//! and an event stream sleeps until the next such moment.

mod hand;
mod images;
mod networks;
mod probe;
mod script;
mod streams;
mod world;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::FakeFirewall;
use async_trait::async_trait;
use bytes::Bytes;
use engine::{
    AgentNetwork, Compute, Container, ContainerDetails, ContainerFiles, ContainerSettings,
    Containers, EngineError, EngineEvent, EngineFacts, EngineInfo, EngineStream, Exec,
    ExecSettings, HostFirewall, HostRules, Image, Images, Isolation, Limits, LogChunk, LogOptions,
    Network, NetworkSettings, PING_LIMIT, PullEvent, Reach, RegistryCredentials, Sample, Stats,
    drift, tagged,
};
use futures::StreamExt;
use schema::clock::SharedClock;
use schema::ids::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use script::Script;
pub use script::{
    CallHook, CallerHook, Calls, ChangeHook, ErrorMaker, EventHook, Fault, HostEntry, HostHook,
    PullEnd, PullScript, Run, StartHook, Verb,
};
use world::World;

/// Words of the double.
const FACTS: EngineFacts = EngineFacts {
    name: "double",
    unreachable: "let the double answer",
    inventory: None,
    removal: None,
    foreign_network: None,
};

/// An engine in memory. Clones are handles to the same engine.
#[derive(Clone)]
pub struct FakeEngine {
    shared: Arc<Shared>,
    /// Called with each call through this handle.
    caller: Option<CallerHook>,
}

struct Shared {
    clock: SharedClock,
    world: Mutex<World>,
    script: Mutex<Script>,
    changed: Notify,
    /// It takes calls and answers none.
    hung: watch::Sender<bool>,
    firewall: FakeFirewall,
    pulls: images::PullCount,
}

impl std::fmt::Debug for FakeEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeEngine").finish_non_exhaustive()
    }
}

impl FakeEngine {
    /// An engine without containers, networks or images.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                world: Mutex::default(),
                script: Mutex::default(),
                changed: Notify::new(),
                hung: watch::Sender::new(false),
                firewall: FakeFirewall::default(),
                pulls: images::PullCount::default(),
            }),
            caller: None,
        }
    }

    /// This engine, for the instance `owner`, whose data directory it sees at `data_dir`.
    pub fn compute(&self, owner: &str, data_dir: &str) -> Compute {
        Compute::with_bind_homes(self.clone(), owner, data_dir, FACTS)
    }

    /// The packet filter of its host.
    pub fn firewall(&self) -> FakeFirewall {
        self.shared.firewall.clone()
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The world as it is by now.
    fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self
            .shared
            .world
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if world.settle(Instant::now()) {
            self.tell(&world);
        }
        world
    }

    fn tell(&self, world: &World) {
        let hook = self.script().change_hook.clone();
        if let Some(hook) = hook {
            hook(&mut world.containers().map(|container| &container.details));
        }
    }

    /// Changes the world and wakes whoever waits for a change.
    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let outcome = {
            let mut world = self.world();
            let outcome = change(&mut world);
            self.tell(&world);
            outcome
        };
        self.shared.changed.notify_waiters();
        outcome
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.shared
            .script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One call: counted, delayed, failed or let through as the script says.
    async fn call<T>(
        &self,
        verb: Verb,
        work: impl Future<Output = Result<T, EngineError>> + Send,
    ) -> Result<T, EngineError> {
        if let Some(told) = &self.caller {
            told(verb);
        }
        let (fault, hook, latency) = {
            let mut script = self.script();
            *script.calls.0.entry(verb).or_default() += 1;
            let fault = script.faults.get_mut(&verb).and_then(|q| q.pop_front());
            let latency = script.latency.get(&verb).copied();
            (fault, script.call_hook.clone(), latency)
        };
        let fault = fault.or_else(|| hook.and_then(|hook| hook(verb)));
        if let Some(latency) = latency {
            tokio::time::sleep(latency).await;
        }
        self.answers().await;
        self.available()?;
        match fault {
            None => work.await,
            Some(Fault::Fail(error)) => Err(error()),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Delay(delay)) => {
                tokio::time::sleep(delay).await;
                self.available()?;
                work.await
            }
            Some(Fault::ApplyThenFail(error)) => {
                work.await?;
                Err(error())
            }
            Some(Fault::ApplyThenHang) => {
                work.await?;
                std::future::pending().await
            }
            Some(Fault::Slow {
                before,
                happens,
                after,
                answer,
            }) => {
                tokio::time::sleep(before).await;
                self.available()?;
                let result = if happens { Some(work.await) } else { None };
                tokio::time::sleep(after).await;
                self.available()?;
                match (answer, result) {
                    (Some(error), _) => Err(error()),
                    (None, Some(result)) => result,
                    // Nothing happened and nobody says so: that is no answer at all.
                    (None, None) => std::future::pending().await,
                }
            }
        }
    }

    /// Waits until the engine answers.
    async fn answers(&self) {
        // The sender lives as long as this.
        let _ = self.shared.hung.subscribe().wait_for(|hung| !hung).await;
    }

    fn available(&self) -> Result<(), EngineError> {
        if self.script().unavailable {
            return Err(unavailable());
        }
        Ok(())
    }

    /// Finds a file that the scripted process made or a test placed.
    fn own_file(&self, id: &str, path: &str) -> Result<FileAt, EngineError> {
        let hidden = self.script().hide_binds;
        let mut world = self.world();
        let container = world.get_mut(id)?;
        if let Some(content) = container.files.get(path) {
            return Ok(FileAt::Memory(content.clone()));
        }
        if hidden {
            return Ok(FileAt::Nowhere);
        }
        let bound = container
            .details
            .settings
            .binds
            .iter()
            .filter_map(|bind| {
                let rest = Path::new(path).strip_prefix(&bind.target).ok()?;
                let plain = rest.components().all(|c| matches!(c, Component::Normal(_)));
                plain.then(|| (bind.target.len(), Path::new(&bind.source).join(rest)))
            })
            .max();
        let Some((_, path)) = bound else {
            return Ok(FileAt::Nowhere);
        };
        let host = self.script().host_hook.clone();
        Ok(match host.map(|host| host(&path)) {
            None => FileAt::Disk(path),
            Some(Some(HostEntry::File(content))) => FileAt::Memory(content),
            Some(Some(HostEntry::Directory) | None) => FileAt::Nowhere,
        })
    }

    /// Whether the engine's host has something at `path`.
    async fn host_has(&self, path: &str) -> bool {
        let host = self.script().host_hook.clone();
        match host {
            Some(host) => host(Path::new(path)).is_some(),
            None => tokio::fs::try_exists(path).await.unwrap_or(false),
        }
    }
}

enum FileAt {
    Memory(Vec<u8>),
    Disk(PathBuf),
    Nowhere,
}

fn unavailable() -> EngineError {
    EngineError::Unavailable(Box::new(std::io::Error::from(
        std::io::ErrorKind::ConnectionRefused,
    )))
}

async fn is_file(path: &Path) -> bool {
    tokio::fs::symlink_metadata(path)
        .await
        .is_ok_and(|metadata| metadata.is_file())
}

/// Refusal of programs: only the real engine runs them.
fn no_programs() -> EngineError {
    EngineError::Refused("the double of an engine runs no programs in containers".to_owned())
}

#[async_trait]
impl Containers for FakeEngine {
    /// Not counted and not subject to faults: it is asked all the time, and means nothing but whether there is an answer.
    async fn ping(&self) -> Result<(), EngineError> {
        match tokio::time::timeout(PING_LIMIT, self.answers()).await {
            Ok(()) => self.available(),
            Err(_) => Err(unavailable()),
        }
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        self.call(Verb::Info, async {
            Ok(EngineInfo {
                version: "fake".to_owned(),
                too_old: None,
                cpus: 4,
                memory_bytes: 16 << 30,
                root_dir: self.world().root_dir.clone(),
                limits: Limits::ALL,
            })
        })
        .await
    }

    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError> {
        self.call(Verb::List, async { Ok(self.world().listing(owner, uid)) })
            .await
    }

    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError> {
        self.call(Verb::Inspect, async {
            Ok(self.world().find(id_or_name).map(|c| c.details.clone()))
        })
        .await
    }

    async fn create(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        self.call(Verb::Create, async {
            let checks = !self.script().ignore_bind_sources;
            for bind in settings.binds.iter().filter(|_| checks) {
                if !self.host_has(&bind.source).await {
                    return Err(EngineError::Refused(format!(
                        "invalid mount config for type \"bind\": bind source path does not exist: {}",
                        bind.source
                    )));
                }
            }
            let now = self.now();
            self.change(|world| world.create(name, settings, now))
        })
        .await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        self.call(Verb::Start, async { self.start_now(id) }).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        self.call(Verb::Stop, async {
            let found = self
                .world()
                .find(id)
                .filter(|c| c.runs())
                .map(|c| (c.details.container.id.clone(), c.runs, c.run.stops_after));
            let Some((id, runs, stops_after)) = found else {
                return Ok(());
            };
            let (wait, code) = match stops_after {
                Some(wait) if wait <= grace => (wait, 0),
                _ => (grace, 137),
            };
            tokio::time::sleep(wait).await;
            let now = self.now();
            self.change(|world| {
                if world.find(&id).is_some_and(|c| c.runs == runs) {
                    world.end(&id, now, code, false);
                }
            });
            Ok(())
        })
        .await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        self.call(Verb::Remove, async {
            let now = self.now();
            self.change(|world| world.remove(id, now));
            Ok(())
        })
        .await
    }

    async fn rename(&self, id: &str, name: &str) -> Result<(), EngineError> {
        self.call(Verb::Rename, async {
            self.change(|world| world.rename(id, name))
        })
        .await
    }

    async fn logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError> {
        self.call(Verb::Logs, async {
            let id = {
                let mut world = self.world();
                world.get_mut(id)?.details.container.id.clone()
            };
            Ok(self.log_stream(id, *options))
        })
        .await
    }

    async fn exec(&self, _: &str, _: &ExecSettings) -> Result<Exec, EngineError> {
        Err(no_programs())
    }

    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError> {
        self.call(Verb::Stats, async {
            let mut world = self.world();
            let container = world.get_mut(id)?;
            let limit = container.details.settings.memory_bytes;
            Ok(container.runs().then(|| Stats {
                cpu_percent: 1.0,
                memory_bytes: 8 << 20,
                memory_limit_bytes: u64::try_from(limit).unwrap_or(0),
                pids: Some(2),
                network_rx_bytes: Some(0),
                network_tx_bytes: Some(0),
            }))
        })
        .await
    }

    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError> {
        self.call(Verb::Stats, async {
            let mut world = self.world();
            let container = world.get_mut(id)?;
            let started = container.details.started_at;
            // A hundredth of a core.
            let cpu = started.map_or(Duration::ZERO, |at| self.now().since(at) / 100);
            Ok(container.runs().then_some(Sample {
                cpu,
                memory_bytes: 8 << 20,
            }))
        })
        .await
    }

    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError> {
        self.call(Verb::Events, async {
            Ok(self.event_stream(owner.to_owned()))
        })
        .await
    }

    fn drift(
        &self,
        container: &Container,
        details: Option<&ContainerDetails>,
        wanted: &ContainerSettings,
        limits: Limits,
    ) -> Option<&'static str> {
        drift::compare(container, details, wanted, limits)
    }
}

#[async_trait]
impl Images for FakeEngine {
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        self.call(Verb::Image, async {
            Ok(self.world().image(reference).cloned())
        })
        .await
    }

    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        self.call(Verb::Images, async { Ok(self.all_images()) })
            .await
    }

    async fn remove_image(&self, reference_or_id: &str) -> Result<(), EngineError> {
        self.call(Verb::RemoveImage, async {
            self.change(|world| world.remove_image(reference_or_id))
        })
        .await
    }

    async fn pull(
        &self,
        reference: &str,
        _credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError> {
        self.call(Verb::Pull, async { self.pull_stream(&tagged(reference)?) })
            .await
    }
}

#[async_trait]
impl AgentNetwork for FakeEngine {
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError> {
        self.call(Verb::Network, async { Ok(self.world().network(name)) })
            .await
    }

    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        self.call(Verb::CreateNetwork, async {
            self.change(|world| world.create_network(settings))
        })
        .await
    }

    async fn remove_network(&self, id: &str) -> Result<(), EngineError> {
        self.call(Verb::RemoveNetwork, async {
            self.change(|world| world.remove_network(id, false))
        })
        .await
    }

    fn is_as_desired(&self, network: &Network, wanted: &NetworkSettings) -> bool {
        network.subnet.as_ref() == Some(&wanted.subnet) && !network.inter_container_traffic
    }

    fn agents_reach_us(&self, network: &Network) -> Option<Reach> {
        let gateway = network.gateway.as_ref()?.parse().ok()?;
        Some(Reach::Gateway(gateway))
    }

    fn host_rules(&self, network: &Network, isolation: &Isolation) -> Option<HostRules> {
        let bridge = format!("br-{}", network.id.get(..12)?);
        let gateway = network.gateway.as_ref()?.parse().ok()?;
        HostRules::of(bridge, gateway, isolation)
    }

    fn firewall(&self) -> Option<&dyn HostFirewall> {
        Some(&self.shared.firewall)
    }
}

#[async_trait]
impl ContainerFiles for FakeEngine {
    async fn read_file(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        self.call(Verb::ReadFile, async {
            let content = match self.own_file(id, path)? {
                FileAt::Memory(content) => Some(content),
                FileAt::Disk(path) if is_file(&path).await => tokio::fs::read(path).await.ok(),
                FileAt::Disk(_) | FileAt::Nowhere => None,
            };
            Ok(content.map(|mut content| {
                content.truncate(limit);
                content
            }))
        })
        .await
    }

    async fn read_tree(
        &self,
        id: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        self.call(Verb::ReadTree, async {
            let image = {
                let mut world = self.world();
                world.get_mut(id)?.details.container.image_id.clone()
            };
            let tree = self.script().trees.get(&(image, path.to_owned())).cloned();
            // In pieces, as they come from a real one.
            Ok(tree.map(|tree| {
                let pieces: Vec<_> = tree
                    .chunks(1000)
                    .map(|piece| Ok(Bytes::copy_from_slice(piece)))
                    .collect();
                futures::stream::iter(pieces).boxed()
            }))
        })
        .await
    }
}

impl FakeEngine {
    fn start_now(&self, id: &str) -> Result<(), EngineError> {
        let hook = self.script().start_hook.clone();
        let (now, instant) = (self.now(), Instant::now());
        self.change(|world| {
            world.start(id, now, instant, |details| match hook {
                Some(hook) => hook(details),
                None => Run::default(),
            })
        })
    }
}

#[cfg(test)]
mod tests;
