//! The reconcilers of a service. Whoever runs them, the service or a simulation, calls [`register`]: there is no other
//! list.

use std::sync::Arc;

use crate::runtime::{Controllers, Objects};
use crate::shared::Shared;
use crate::stores::{ConfigStore, PackageStore};

/// A line for each reconciler: its folder, and its trait of what it reads and writes.
macro_rules! reconcilers {
    ($($folder:ident: $store:ident,)*) => {
        /// What all reconcilers together read and write in the database.
        pub trait Stores:
            Objects + ConfigStore + PackageStore $(+ crate::$folder::$store)*
        {
        }

        impl<T> Stores for T where
            T: Objects + ConfigStore + PackageStore $(+ crate::$folder::$store)*
        {
        }

        /// Starts all reconcilers.
        pub fn register<S: Stores>(
            stores: &Arc<S>,
            shared: &Arc<Shared>,
            controllers: &mut Controllers<'_>,
        ) {
            $(crate::$folder::register(stores.clone(), shared, controllers);)*
        }
    };
}

reconcilers! {
    engine: EngineStore,
    directory: DirectoryStore,
    user: UserStore,
    image: ImageStore,
    rollout: RolloutStore,
    adapter: AdapterStore,
    archive: ArchiveStore,
    skill: SkillStore,
    skill_repository: RepositoryStore,
    skill_set: SkillSetStore,
    agent_config: AgentConfigStore,
    container: ContainerStore,
    usage: UsageStore,
}
