//! Keys of `oidc`.

use secrecy::SecretString;

use super::settings;
use crate::config::setting::Setting;
use crate::config::{host, rules};

settings! {
    /// CA certificates (PEM) trusted for the identity provider, in addition to the system's.
    CA_CERTIFICATE: Setting<Option<String>> = "oidc.ca_certificate", "Provider CA certificate", Setting::optional(rules::certificate);

    /// Client id at the identity provider.
    CLIENT_ID: Setting<Option<String>> = "oidc.client_id", "Client id", Setting::optional(rules::line);

    /// Client secret at the identity provider; empty for a public client.
    CLIENT_SECRET: Setting<Option<SecretString>> = "oidc.client_secret", "Client secret", Setting::secret().belongs_to(&PROVIDER_URL.row, host::of_url);

    /// Name of the identity provider on the sign-in page: "Sign in with …".
    DISPLAY_NAME: Setting<String> = "oidc.display_name", "Display name", Setting::text(rules::line, "Single sign-on");

    /// Claim that lists the user's groups, or the path to it such as realm_access.roles; without it, groups stay as they are. Each / inside a name becomes a colon.
    GROUPS_CLAIM: Setting<String> = "oidc.groups_claim", "Groups claim", Setting::text(rules::name, "groups");

    /// Issuer URL of the identity provider, exactly as the provider writes it: https, except on the loopback interface.
    PROVIDER_URL: Setting<Option<String>> = "oidc.provider_url", "Issuer URL", Setting::optional(rules::issuer_url);

    /// Callback URL of this service; ends with /api/login/oidc/callback.
    REDIRECT_URL: Setting<Option<String>> = "oidc.redirect_url", "Redirect URL", Setting::optional(rules::redirect_url);

    /// Scopes to request.
    SCOPES: Setting<String> = "oidc.scopes", "Scopes", Setting::text(rules::scopes, "openid profile email");

    /// Claim that holds the user name, or the path to it with dots; email counts only with email_verified. It is read at the first sign-in; afterwards the provider's subject identifies the user.
    USERNAME_CLAIM: Setting<String> = "oidc.username_claim", "User name claim", Setting::text(rules::name, "preferred_username");

    /// Let only users on the whitelist sign in.
    WHITELIST_ENABLED: Setting<bool> = "oidc.whitelist_enabled", "Whitelist for provider users", Setting::flag(false);
}
