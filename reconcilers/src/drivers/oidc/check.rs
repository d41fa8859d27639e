//! Whether settings of a provider work, as far as that can be told without anybody who signs in.

use std::time::Duration;

use schema::live::{CheckStep, PendingSignIn};
use secrecy::SecretString;

use super::error::ProviderError;
use super::provider::Provider;
use super::token::Method;
use super::{ProviderSettings, Returned};

/// Asks what can be asked, until something fails; `now` is the steady time.
pub(super) async fn check(
    settings: &ProviderSettings,
    now: impl Fn() -> Duration,
) -> Vec<CheckStep> {
    let mut steps = Vec::new();
    let mut begun = now();
    let mut step = |name, outcome: Result<String, ProviderError>| {
        let took = now().saturating_sub(begun);
        begun = now();
        let ok = outcome.is_ok();
        steps.push(CheckStep {
            name,
            ok,
            detail: outcome.unwrap_or_else(|error| error.to_string()),
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        ok
    };
    // Asked anew: what is known may be an hour old.
    let authorities = settings.ca_certificate.clone();
    let described = Provider::describe(&settings.issuer, authorities).await;
    let provider = match described {
        Ok(provider) => provider,
        Err(error) => {
            step("discovery", Err(error));
            return steps;
        }
    };
    let keys = provider.keys.count_signing();
    let needed = provider.description.endpoints();
    let found = match keys {
        _ if let Err(error) = needed => Err(error),
        0 => Err(ProviderError::Token(
            provider.keys.describe_short(None).unwrap_or_else(|| {
                "the provider has no key that ID tokens can be signed with".to_owned()
            }),
        )),
        keys => Ok(format!("issuer {}, signing keys: {keys}", settings.issuer)),
    };
    if !step("discovery", found) {
        return steps;
    }
    let begin = provider.begin(settings, false);
    let pending = match begin {
        Ok((address, pending)) => {
            let taken = provider.takes(&address).await;
            let taken = taken.map(|()| format!("{} is accepted", settings.redirect_url));
            step("redirect", taken);
            pending
        }
        Err(error) => {
            step("redirect", Err(error));
            return steps;
        }
    };
    step("client", client(&provider, settings, &pending).await);
    steps
}

/// A provider that knows the client refuses the code; one that does not refuses the client.
async fn client(
    provider: &Provider,
    settings: &ProviderSettings,
    pending: &PendingSignIn,
) -> Result<String, ProviderError> {
    let returned = Returned {
        code: SecretString::from("no-code-a-test-of-the-settings"),
        issuer: Some(settings.issuer.clone()),
    };
    match provider.redeem(settings, pending, &returned).await {
        Ok(_) => Err(ProviderError::Code("it accepts any".to_owned())),
        // A refused request may not have come to the client's secret.
        Err((ProviderError::Code(why), _)) if !why.starts_with("invalid_grant") => {
            Ok(format!("{} is not refused ({why})", settings.client_id))
        }
        Err((ProviderError::Code(_), method)) => {
            let known = format!("{} is known", settings.client_id);
            Ok(match method {
                None | Some(Method::Basic) => known,
                Some(method) => format!("{known}; its secret is taken as {method}"),
            })
        }
        Err((error, _)) => Err(error),
    }
}
