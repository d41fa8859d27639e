//! Version and host facts of an engine.

use std::path::PathBuf;

use schema::live::ContainerSettings;

/// Version and host facts of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// The engine's own version, for people.
    pub version: String,
    /// Reason for which this version cannot be used, with the one that is needed; `None`: it can be used.
    pub too_old: Option<String>,
    /// Number of processors of the engine's host.
    pub cpus: u32,
    /// Memory of the engine's host in bytes.
    pub memory_bytes: u64,
    /// Directory of its host in which it keeps images and files of containers; `None` when it does not say.
    pub root_dir: Option<PathBuf>,
    /// Limits that take effect there.
    pub limits: Limits,
}

/// Limits that the engine's host can enforce. The engine drops one that it cannot with a warning, and `inspect` reads
/// 0 for it for ever, which is no drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory.
    pub memory: bool,
    /// Processor time.
    pub cpu: bool,
    /// Number of processes.
    pub pids: bool,
}

impl Limits {
    /// All of them.
    pub const ALL: Self = Self {
        memory: true,
        cpu: true,
        pids: true,
    };

    /// Settings without the limits that cannot be enforced.
    pub fn enforceable(self, settings: &ContainerSettings) -> ContainerSettings {
        let mut settings = settings.clone();
        if !self.memory {
            settings.memory_bytes = 0;
        }
        if !self.cpu {
            settings.nano_cpus = 0;
        }
        if !self.pids {
            settings.pids_limit = 0;
        }
        settings
    }
}
