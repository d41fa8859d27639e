//! Keys of `container`.

use std::time::Duration;

use super::settings;
use crate::config::setting::{Effect, Setting};
use crate::config::{HostAccess, LanAccess, rules};
use crate::kind::Kind;

settings! {
    /// Start the container of a new user at once.
    AUTOSTART: Setting<bool> = "container.autostart", "Start new containers", Setting::flag(true);

    /// Linux capabilities that agents keep; all others are dropped. Only those that do not reach the host may be given:
    /// AUDIT_WRITE, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_ADMIN, NET_BIND_SERVICE, NET_RAW, SETFCAP, SETGID, SETPCAP,
    /// SETUID, SYS_CHROOT. An adapter whose agent runs as the image's user needs
    /// CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID, which are then the default.
    CAPABILITIES: Setting<Vec<String>> = "container.capabilities", "Capabilities", Setting::list(rules::capability).effects(&[Effect::Containers]);

    /// CPU cores per container, for example 0.5; 0 = unlimited.
    CPU_LIMIT: Setting<f64> = "container.cpu_limit", "CPU limit", Setting::number(0.0, 1024.0, 0).effects(&[Effect::Containers]);

    /// Time within which an agent must be ready after it got a changed configuration or adapter. The first that is not pauses the
    /// rollout of the change.
    HEALTH_TIMEOUT: Setting<Option<Duration>> = "container.health_timeout", "Time to become ready", Setting::duration(false, "2m");

    /// What agents reach of the host: service = the agent listener and nothing else; open = every service that is bound to all
    /// addresses; enforce = as service, and no agent is started where that cannot be ensured. Needs an engine on this host, and the
    /// right to change its packet filter: without them, service starts agents all the same, and the engine's condition
    /// HostRestricted is false. No effect with --engine kubernetes, where policies of the cluster isolate agents.
    HOST_ACCESS: Setting<HostAccess> = "container.host_access", "Host access", Setting::choice("service").effects(&[Effect::Object(Kind::Engine)]);

    /// Networks behind the host that agents reach besides public addresses: private = private ones; none = none of them; or the
    /// private networks that are open, such as 10.1.0.0/16,192.168.7.0/24. Link-local addresses and the metadata services of
    /// clouds are closed, unless it is open. The resolvers of the host's /etc/resolv.conf stay open; name the network of one that
    /// only the engine's configuration has (dns in daemon.json). Needs what container.host_access needs. With --engine kubernetes the
    /// policies of agents follow it, and private opens no network.
    LAN_ACCESS: Setting<LanAccess> = "container.lan_access", "Network access", Setting::parsed(rules::lan_access, "private").effects(&[Effect::Object(Kind::Engine)]);

    /// Agents that get a changed configuration or adapter at once; others keep what they have until their turn comes.
    MAX_UNAVAILABLE: Setting<u64> = "container.max_unavailable", "Agents changed at once", Setting::integer(1, 1000, 4);

    /// Memory per container in MiB.
    MEMORY_LIMIT_MB: Setting<u64> = "container.memory_limit_mb", "Memory limit (MiB)", Setting::integer(16, 16_777_216, 1024).effects(&[Effect::Containers]);

    /// Time for which a replacement must have been ready before it counts as such. The previous container is kept until then, and put
    /// back if the replacement ends. The default of rollouts.
    MIN_READY: Setting<Option<Duration>> = "container.min_ready", "Ready time of replacements", Setting::duration(true, "10s");

    /// Private network of the containers. Cannot be changed while containers exist.
    // The network's gateway is the service's address unless another one is configured.
    NETWORK_SUBNET: Setting<String> = "container.network_subnet", "Agent network", Setting::text(rules::agent_subnet, "10.88.0.0/16").effects(&[Effect::Object(Kind::Engine), Effect::Files]);

    /// Maximum number of processes and threads per container.
    PIDS_LIMIT: Setting<u64> = "container.pids_limit", "Process limit", Setting::integer(16, 4_194_304, 512).effects(&[Effect::Containers]);

    /// Readiness checks in a row that a ready agent may leave unanswered before its container is restarted.
    PROBE_FAILURES: Setting<u64> = "container.probe_failures", "Failed checks before a restart", Setting::integer(1, 100, 3);

    /// Time between two readiness checks of an agent that is ready; 0 = ready agents are not checked. Only agents that answer over
    /// HTTP are checked, and not in debug mode.
    PROBE_INTERVAL: Setting<Option<Duration>> = "container.probe_interval", "Check interval", Setting::duration(true, "30s");

    /// Base URL that agents use to reach this service; empty = where the server listens for agents.
    SERVICE_URL: Setting<Option<String>> = "container.service_url", "Service URL for agents", Setting::optional(rules::base_url).effects(&[Effect::Files, Effect::Object(Kind::Engine)]);

    /// Time zone in containers, for example Europe/Berlin; empty = the image's default.
    TIMEZONE: Setting<Option<String>> = "container.timezone", "Time zone", Setting::optional(rules::timezone).effects(&[Effect::Containers]);
}
