//! Keys of `oidc`.

use super::settings;
use crate::config::setting::{NotYet, Setting};
use crate::config::{host, rules};

settings! {
    /// CA certificates (PEM) trusted for the identity provider, in addition to the system's.
    CA_CERTIFICATE: NotYet = "oidc.ca_certificate", "Provider CA certificate", Setting::optional(rules::certificate).not_yet();

    /// Client id at the identity provider.
    CLIENT_ID: NotYet = "oidc.client_id", "Client id", Setting::optional(rules::line).not_yet();

    /// Client secret at the identity provider.
    CLIENT_SECRET: NotYet = "oidc.client_secret", "Client secret", Setting::secret().belongs_to(&PROVIDER_URL.row, host::of_url).not_yet();

    /// Claim that lists the user's groups.
    GROUPS_CLAIM: NotYet = "oidc.groups_claim", "Groups claim", Setting::text(rules::name, "groups").not_yet();

    /// Issuer URL of the identity provider, exactly as the provider writes it.
    PROVIDER_URL: NotYet = "oidc.provider_url", "Issuer URL", Setting::optional(rules::issuer_url).not_yet();

    /// Callback URL of this service; ends with /api/login/oidc/callback.
    REDIRECT_URL: NotYet = "oidc.redirect_url", "Redirect URL", Setting::optional(rules::redirect_url).not_yet();

    /// Scopes to request.
    SCOPES: NotYet = "oidc.scopes", "Scopes", Setting::text(rules::scopes, "openid profile email").not_yet();

    /// Claim that holds the user name.
    USERNAME_CLAIM: NotYet = "oidc.username_claim", "User name claim", Setting::text(rules::name, "preferred_username").not_yet();

    /// Let only users on the whitelist sign in.
    WHITELIST_ENABLED: Setting<bool> = "oidc.whitelist_enabled", "Whitelist for provider users", Setting::flag(false);
}
