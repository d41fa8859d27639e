//! The addresses at which the service answers, taken before its data is touched.

use std::net::{Ipv4Addr, SocketAddr};

use api::server::{Listener, Surface, Tls};
use tokio::net::TcpListener;

use super::Error;
use crate::settings::{
    AGENT_PORT, AgentListen, METRICS_ADDRESS, MetricsListen, ReplicaListen, Settings,
};

/// Bound listeners that nobody serves yet: whoever connects meanwhile waits in the backlog.
pub struct Listeners {
    /// For people and clients.
    pub(super) public: Listener,
    /// For the command line.
    pub(super) socket: Listener,
    /// For agents, when the address does not follow from the engine's network.
    pub(super) agents: Option<Listener>,
    /// For Prometheus.
    pub(super) metrics: Option<TcpListener>,
    /// For other replicas, and the URL at which they reach it.
    pub(super) replicas: Option<(TcpListener, String)>,
    /// Where people and clients find the service, as a URL.
    pub(super) address: String,
    /// The certificate of `public`, if it speaks TLS.
    pub(super) tls: Option<Tls>,
}

impl Listeners {
    /// Takes the addresses that the settings name. An address that is occupied fails the start before the database is
    /// made: the first superadmin's password is printed once, by a start that goes on.
    ///
    /// # Errors
    /// When an address cannot be bound, or the certificate cannot be used.
    pub async fn bind(settings: &Settings) -> Result<Self, Error> {
        let tls = match &settings.tls {
            Some((cert, key)) => Some(Tls::load(cert.clone(), key.clone())?),
            None => None,
        };
        let public = Listener::tcp(settings.listen, tls.clone(), Surface::Public).await?;
        let agents = match settings.agent_listen {
            AgentListen::At(at) => Some(Listener::tcp(at, None, Surface::Agent).await?),
            AgentListen::Off | AgentListen::Auto => None,
        };
        let metrics = bind_metrics(settings.metrics_listen).await?;
        let replicas = match &settings.replicas {
            Some(replicas) => Some(bind_replicas(replicas).await?),
            None => None,
        };
        // Last: it is the one that leaves a file.
        let socket = Listener::admin_socket(&settings.admin_socket).await?;
        let at: SocketAddr = public.local_addr().unwrap_or(settings.listen);
        let scheme = if tls.is_some() { "https" } else { "http" };
        Ok(Self {
            public,
            socket,
            agents,
            metrics,
            replicas,
            address: format!("{scheme}://{at}"),
            tls,
        })
    }

    /// Where people and agents can reach the service, as far as it is known before the engine is.
    pub(super) fn addresses(&self, settings: &Settings) -> Vec<SocketAddr> {
        let agents = match settings.agent_listen {
            AgentListen::At(at) => Some(at),
            AgentListen::Auto => Some((Ipv4Addr::UNSPECIFIED, AGENT_PORT).into()),
            AgentListen::Off => None,
        };
        let public = self.public.local_addr().unwrap_or(settings.listen);
        let replicas = self.replicas.as_ref();
        let replicas = replicas.and_then(|(listener, _)| listener.local_addr().ok());
        [public].into_iter().chain(agents).chain(replicas).collect()
    }
}

/// Binds the address for other replicas; returns the URL at which they reach it, too.
async fn bind_replicas(replicas: &ReplicaListen) -> Result<(TcpListener, String), Error> {
    let ReplicaListen { at, url } = replicas;
    let listener = TcpListener::bind(at).await;
    let listener = listener.map_err(|error| {
        format!("{at} can't be listened on for other replicas: {error}; give --replica-listen another address")
    })?;
    let bound = listener.local_addr()?;
    Ok((listener, url.clone().unwrap_or(format!("http://{bound}"))))
}

/// Binds the address of the metrics. The default address is given up when another program has it.
async fn bind_metrics(listen: MetricsListen) -> Result<Option<TcpListener>, Error> {
    match listen {
        MetricsListen::Off => Ok(None),
        MetricsListen::At(at) => match TcpListener::bind(at).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => Err(format!(
                "{at} can't be listened on for metrics: {error}; give --metrics-listen another address, or off"
            )
            .into()),
        },
        MetricsListen::Usual => match TcpListener::bind(METRICS_ADDRESS).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => {
                tracing::warn!(
                    address = %METRICS_ADDRESS, %error,
                    "no metrics are served: the address is taken; choose one with --metrics-listen"
                );
                Ok(None)
            }
        },
    }
}
