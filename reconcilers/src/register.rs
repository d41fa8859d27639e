//! The reconcilers of a service. Whoever runs them, the service or a simulation, calls [`register`]: there is no other
//! list.

use std::sync::Arc;

use crate::adapter::AdapterStore;
use crate::agent_config::AgentConfigStore;
use crate::container::ContainerStore;
use crate::engine::EngineStore;
use crate::image::ImageStore;
use crate::rollout::RolloutStore;
use crate::runtime::{Controllers, Objects};
use crate::shared::Shared;
use crate::stores::{ConfigStore, PackageStore};
use crate::user::UserStore;
use crate::{adapter, agent_config, container, engine, image, rollout, user};

/// What all reconcilers together read and write in the database.
pub trait Stores:
    Objects
    + ConfigStore
    + PackageStore
    + EngineStore
    + UserStore
    + ImageStore
    + RolloutStore
    + AdapterStore
    + AgentConfigStore
    + ContainerStore
{
}

impl<T> Stores for T where
    T: Objects
        + ConfigStore
        + PackageStore
        + EngineStore
        + UserStore
        + ImageStore
        + RolloutStore
        + AdapterStore
        + AgentConfigStore
        + ContainerStore
{
}

/// Starts all reconcilers.
pub fn register<S: Stores>(
    stores: &Arc<S>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    engine::register(stores.clone(), shared, controllers);
    user::register(stores.clone(), shared, controllers);
    image::register(stores.clone(), shared, controllers);
    rollout::register(stores.clone(), shared, controllers);
    adapter::register(stores.clone(), shared, controllers);
    agent_config::register(stores.clone(), shared, controllers);
    container::register(stores.clone(), shared, controllers);
}
