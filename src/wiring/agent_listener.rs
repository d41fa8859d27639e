//! The agents' listener on the gateway of their network, which may come, go and change. Where the engine has a URL for agents, it is
//! on all addresses.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::server::{Listener, Server, Surface};
use engine::{AgentAddress, Reach};
use reconcilers::shared::view::EngineView;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::settings::{AGENT_PORT, AgentListen};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Where agents reach the service; `None`: nowhere.
pub fn address(listen: AgentListen) -> Option<AgentAddress> {
    match listen {
        AgentListen::Auto => Some(AgentAddress {
            ip: None,
            port: AGENT_PORT,
        }),
        AgentListen::At(address) => Some(AgentAddress {
            // At all addresses it is at the gateway, too.
            ip: Some(address.ip()).filter(|ip| !ip.is_unspecified()),
            port: address.port(),
        }),
        AgentListen::Off => None,
    }
}

/// Serves agents wherever the gateway is, until the end. Requests under way finish when the gateway
/// moves and when the service stops.
pub async fn follow_gateway(view: Arc<EngineView>, server: Server, shutdown: CancellationToken) {
    let mut warned = false;
    while !shutdown.is_cancelled() {
        let Some(address) = gateway(&view) else {
            pause(&shutdown, LOOK_EVERY).await;
            continue;
        };
        match Listener::tcp(address, None, Surface::Agent).await {
            Ok(listener) => {
                warned = false;
                info!(%address, "serving agents");
                let until = shutdown.child_token();
                let run = server.clone().run(listener, until.clone());
                tokio::pin!(run);
                tokio::select! {
                    () = &mut run => {}
                    () = moved(&view, address) => {
                        until.cancel();
                        run.await;
                    }
                }
            }
            Err(error) => {
                // An engine on another host has its gateway there.
                if !std::mem::replace(&mut warned, true) {
                    warn!(%address, %error, "cannot listen for agents; name an address with --agent-listen, or off");
                }
                pause(&shutdown, TRY_AGAIN_AFTER).await;
            }
        }
    }
}

/// Waits so long, or until the service stops.
async fn pause(shutdown: &CancellationToken, time: Duration) {
    let _ = shutdown.run_until_cancelled(tokio::time::sleep(time)).await;
}

fn gateway(view: &EngineView) -> Option<SocketAddr> {
    let ip = match view.compute().network.agents_reach_us(&view.network()?)? {
        Reach::Gateway(ip) => ip,
        Reach::Url(_) => Ipv4Addr::UNSPECIFIED.into(),
    };
    Some(SocketAddr::new(ip, AGENT_PORT))
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
