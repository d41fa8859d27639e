//! The engine, as the service wires it.

use std::sync::Arc;

use engine::{Attendance, Compute, Digests, Metered};
use futures::FutureExt;
use schema::clock::SharedClock;

use super::{AccessError, FACTS, KubernetesEngine, Options};

/// Agents of the instance `owner` as Pods; `digests` tells what references of images mean. Calls are counted. Connects at the first call; to be called within a Tokio runtime.
///
/// # Errors
/// The way to the cluster cannot be read.
pub async fn compute(
    options: Options,
    owner: &str,
    clock: SharedClock,
    digests: Arc<dyn Digests>,
) -> Result<Compute, AccessError> {
    let overlay = options.pods.digest();
    let engine = KubernetesEngine::new(options, owner, clock).await?;
    let engine = engine.with_registries(digests);
    let engine = Arc::new(Metered::new(engine));
    let attended = Arc::clone(&engine);
    let attendance: Attendance = Arc::new(move || {
        let engine = Arc::clone(&attended);
        async move { engine.get().follow().await }.boxed()
    });
    Ok(Compute {
        containers: engine.clone(),
        images: engine.clone(),
        network: engine.clone(),
        homes: engine,
        facts: FACTS,
        probes: true,
        outlived: true,
        overlay: Some(overlay),
        attendance: Some(attendance),
    })
}
