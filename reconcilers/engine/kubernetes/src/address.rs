//! A cluster that settings name.

use std::sync::Arc;

use async_trait::async_trait;
use engine::{
    Compute, Containers, EngineAddress, EngineCheck, EngineContext, EngineError, EngineFacts,
    EngineFault,
};
use schema::clock::SystemClock;

use super::{FACTS, KubernetesEngine, Options, compute};

/// Remedy for rights that lack.
const GIVE_RIGHTS: &str = "give the service account the rights of the chart's role";

#[async_trait]
impl EngineAddress for Options {
    fn facts(&self) -> EngineFacts {
        FACTS
    }

    /// The server asks for no rights.
    fn checks_more_than_server(&self) -> bool {
        true
    }

    async fn check(&self) -> Result<EngineCheck, EngineError> {
        let engine = KubernetesEngine::new(self.clone(), "", Arc::new(SystemClock)).await;
        let engine = engine.map_err(|error| EngineError::Unavailable(Box::new(error)))?;
        let info = engine.info().await?;
        let rights = engine.rights().await?;
        let lacking = Some(rights.lacking).filter(|lacking| !lacking.is_empty());
        Ok(EngineCheck {
            fault: lacking.map(|lacking| EngineFault {
                message: format!("the service may not: {}", lacking.join(", ")),
                remedy: GIVE_RIGHTS,
            }),
            absent: rights.absent,
            ..info.into()
        })
    }

    async fn compute(
        self: Box<Self>,
        context: EngineContext,
    ) -> Result<Compute, Box<dyn std::error::Error + Send + Sync>> {
        let EngineContext {
            owner,
            clock,
            digests,
        } = context;
        Ok(compute(*self, &owner, clock, digests).await?)
    }
}
