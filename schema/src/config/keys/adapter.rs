//! Keys of `adapter`.

use std::time::Duration;

use super::settings;
use crate::config::rules;
use crate::config::setting::{Effect, Setting};
use crate::kind::Kind;

settings! {
    /// Allow adapter.source_url over plain HTTP; otherwise it must be HTTPS, or a loopback address.
    ALLOW_HTTP: Setting<bool> = "adapter.allow_http", "Adapter source over plain HTTP", Setting::flag(false);

    /// Activate a newer adapter package as soon as adapter.source_url has one; otherwise it is reported, and a refresh activates it.
    AUTO_ACTIVATE: Setting<bool> = "adapter.auto_activate", "Automatic adapter activation", Setting::flag(false).effects(&[Effect::Object(Kind::Adapter)]);

    /// Hosts, as host or host:port, to which adapter.source_url may redirect besides its own; the scheme stays the same.
    REDIRECT_HOSTS: Setting<Vec<String>> = "adapter.redirect_hosts", "Adapter source redirects", Setting::list(rules::server).effects(&[Effect::Object(Kind::Adapter)]);

    /// How often adapter.source_url is checked for a newer adapter package; 0 = never.
    REFRESH_INTERVAL: Setting<Option<Duration>> = "adapter.refresh_interval", "Adapter refresh interval", Setting::duration(true, "24h").effects(&[Effect::Object(Kind::Adapter)]);

    /// URL that newer adapter packages are fetched from; empty = none. Shown to administrators, so it must not contain a secret.
    SOURCE_URL: Setting<Option<String>> = "adapter.source_url", "Adapter source", Setting::optional(rules::source_url).effects(&[Effect::Object(Kind::Adapter)]);
}
