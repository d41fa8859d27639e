//! The agents' listener on the gateway of their network, which may come, go and change.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::server::{Listener, Server, Surface};
use reconcilers::engine::view::EngineView;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Port on the gateway.
const PORT: u16 = 8081;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Serves agents wherever the gateway is, until the end.
pub async fn follow_gateway(view: Arc<EngineView>, server: Server, shutdown: CancellationToken) {
    let _ = shutdown
        .run_until_cancelled(async {
            let mut warned = false;
            loop {
                let Some(address) = gateway(&view) else {
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                };
                match Listener::tcp(address, None, Surface::Agent).await {
                    Ok(listener) => {
                        warned = false;
                        info!(%address, "serving agents");
                        let until = CancellationToken::new();
                        tokio::select! {
                            () = server.clone().run(listener, until.clone()) => {}
                            () = moved(&view, address) => until.cancel(),
                        }
                    }
                    Err(error) => {
                        // An engine on another host has its gateway there.
                        if !std::mem::replace(&mut warned, true) {
                            warn!(%address, %error, "cannot listen for agents; name an address with --agent-listen, or off");
                        }
                        tokio::time::sleep(TRY_AGAIN_AFTER).await;
                    }
                }
            }
        })
        .await;
}

fn gateway(view: &EngineView) -> Option<SocketAddr> {
    let address: IpAddr = view.network()?.gateway?.parse().ok()?;
    Some(SocketAddr::new(address, PORT))
}

/// Waits until the gateway is elsewhere. A lost engine moves nothing.
async fn moved(view: &EngineView, from: SocketAddr) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if gateway(view).is_some_and(|now| now != from) {
            return;
        }
    }
}
