//! From request to handler: the one place where routes are looked up and access is decided.
//!
//! Every request takes the same way, in this order: path, method, session, role, mode, CSRF, body
//! and parameters, handler. A handler therefore never runs for a request that may not reach it.

mod caller;
mod page;
mod router;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use cidr::IpCidr;
use futures::Stream;
use http::header::{CONTENT_LENGTH, HOST, UPGRADE};
use http::{HeaderMap, Method, StatusCode};
use hyper::body::Body as _;
use hyper::upgrade::OnUpgrade;
use schema::db::Refusal;
use schema::under_way::{self, Entry};
use tokio::sync::watch;
use tokio::time::Instant;
use warp::Filter;
use warp::filters::BoxedFilter;

pub use caller::{
    Actor, Anyone, Caller, Identity, OnMachine, OrdinaryUser, Session, Superadmin, Visitor,
};
pub use router::AddressTwice;

use crate::auth::api_token::TokenBearer;
use crate::auth::login_limit::Sender;
use crate::auth::unknown_proxy::is_behind_unknown_proxy;
use crate::auth::{Account, api_token, client_address, cors, csrf, mcp_token, origin};
use crate::budget::{AnswerMemory, Budgets, StreamCost};
use crate::console::{self, Asked, Console, Place, Viewer};
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::input::{
    Fields, Message, Meta, RawInput, decode_segment, read_fields, read_into_workspace,
    read_message, read_query, read_spooled, read_upload, take_if_generation,
};
use crate::limits::Share;
use crate::mcp;
use crate::reply::{Reply, Response};
use crate::route::{Access, BodyKind, Modes, Route, Tokens};
use crate::routes::{HEALTH, LIVENESS, READINESS, USERNAME, find_account};
use crate::server::{RequestContext, Surface, known_method};
use crate::settings::{AuthMode, WebSettings};
use router::{Found, Router, merge_slashes};

/// Paths of routes that tell how the service is, and need no database for that.
const ABOUT_HEALTH: [&str; 3] = [HEALTH, LIVENESS, READINESS];

/// The service as one filter over all routes.
pub struct Api {
    router: Router,
    deps: Deps,
    requests: Budgets,
    answers: Budgets,
}

/// What the access log may say of an answered request; travels in the response's extensions.
#[derive(Debug, Clone)]
pub struct Trail {
    /// The route's path pattern; `None` when no route matched.
    pub route: Option<&'static str>,
    /// The client's address; `None` on the admin socket.
    pub client: Option<std::net::IpAddr>,
    /// The request came through a proxy that `web.trusted_proxies` does not name.
    pub behind_unknown_proxy: bool,
    /// Who called: an account's name, `socket:<uid>`, or nothing.
    pub caller: Option<String>,
    /// A browser shows the answer to a person.
    pub page: bool,
}

/// A request without its body.
struct Head {
    method: Method,
    path: String,
    query: String,
    headers: Arc<HeaderMap>,
    context: RequestContext,
    /// What its connection becomes if the answer is 101.
    upgrade: Option<OnUpgrade>,
    /// Its place among what is under way.
    entry: Entry,
}

impl Api {
    /// The service with these routes.
    ///
    /// # Errors
    /// [`AddressTwice`] when two of them have one address.
    pub fn new(routes: Vec<Route>, deps: Deps) -> Result<Self, AddressTwice> {
        Ok(Self {
            router: Router::new(routes)?,
            deps,
            requests: Budgets::for_requests(),
            answers: Budgets::for_answers(),
        })
    }

    /// The latest settings.
    pub(crate) fn settings(&self) -> watch::Receiver<Arc<WebSettings>> {
        self.deps.settings.clone()
    }

    /// The filter that answers every request.
    pub fn filter(self) -> BoxedFilter<(Response,)> {
        let api = Arc::new(self);
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        let context = warp::ext::optional::<RequestContext>();
        warp::method()
            .and(warp::path::full())
            .and(query)
            .and(warp::header::headers_cloned())
            .and(context)
            .and(warp::ext::optional::<OnUpgrade>())
            .and(warp::body::stream())
            .then(
                move |method,
                      path: warp::path::FullPath,
                      query,
                      headers,
                      context,
                      upgrade,
                      body| {
                    let api = api.clone();
                    let context: Option<RequestContext> = context;
                    let head = Head {
                        entry: under_way::begin_request(known_method(&method)),
                        method,
                        path: merge_slashes(path.as_str()).into_owned(),
                        query,
                        headers: Arc::new(headers),
                        context: context.unwrap_or_default(),
                        upgrade,
                    };
                    async move { api.answer(head, body).await }
                },
            )
            .boxed()
    }

    async fn answer<S, B, E>(&self, head: Head, body: S) -> Response
    where
        S: Stream<Item = Result<B, E>> + Send,
        B: Buf,
    {
        let settings = self.deps.settings();
        let peer = head.context.peer.addr.map(|addr| addr.ip());
        let trusted = trusted_proxies(&head, &settings);
        let client = peer.map(|peer| client_address::client_address(peer, &head.headers, trusted));
        let behind_unknown_proxy = peer
            .filter(|_| head.context.peer.surface == Surface::Public)
            .filter(|peer| is_behind_unknown_proxy(*peer, &head.headers, trusted));
        if let Some(proxy) = behind_unknown_proxy {
            let now = self.deps.clock.steady();
            self.deps.unknown_proxies.note(proxy, now, &settings);
        }
        let mut trail = Trail {
            behind_unknown_proxy: behind_unknown_proxy.is_some(),
            route: None,
            client,
            caller: None,
            page: false,
        };
        if let Some((console, place)) = self.place(&head) {
            trail.route = Some(place.pattern());
            head.entry.set_route(place.pattern());
            let page = self.answer_page(console, place, &head, &settings).await;
            let mut response = page.unwrap_or_else(|error| self.render(Err(error), None));
            if head.method == Method::HEAD {
                *response.body_mut() = Response::default().into_body();
            }
            response.extensions_mut().insert(trail);
            return response;
        }
        let mut memory = None;
        let result = self.run(&head, body, &settings, &mut trail, &mut memory);
        let result = result.await;
        let page = trail.page.then_some(&head);
        let mut response = self.render(result, page);
        if let Some(mut memory) = memory {
            let covered = memory.resize(memory_of(&response).max(LEAST_SHORT_ANSWER));
            // The answer of a change is small, and its sender has to learn of it.
            if let Err(busy) = covered
                && head.method.is_safe()
            {
                response = self.render(Err(busy), page);
            }
            response.extensions_mut().insert(AnswerMemory::from(memory));
        }
        if head.path.starts_with("/api/") {
            let preflight = head.method == Method::OPTIONS;
            let found = self.router.find(&head.path);
            let acts = match found.is_some_and(|found| found.node.takes_tokens()) {
                true => cors::Acts::Token,
                false => cors::Acts::Cookie,
            };
            cors::apply(
                &head.headers,
                acts,
                preflight,
                &settings,
                response.headers_mut(),
            );
        }
        if head.method == Method::HEAD {
            // The headers are those of GET; a stream must not be kept running for nobody.
            if let Some(length) = response.body().size_hint().exact() {
                let length = http::HeaderValue::from(length);
                response.headers_mut().insert(CONTENT_LENGTH, length);
            }
            *response.body_mut() = Response::default().into_body();
        }
        response.extensions_mut().insert(trail);
        response
    }

    /// Finds the place of the console that a request is for. Agents and the admin socket have none.
    fn place<'a>(&'a self, head: &'a Head) -> Option<(&'a Console, Place<'a>)> {
        let console = self.deps.console.as_deref()?;
        let is_public = head.context.peer.surface == Surface::Public;
        let place = console::place_of(&head.path).filter(|_| is_public)?;
        Some((console, place))
    }

    async fn answer_page(
        &self,
        console: &Console,
        place: Place<'_>,
        head: &Head,
        settings: &WebSettings,
    ) -> Result<Response> {
        if let Some(fault) = head.context.fault {
            return Err(fault.into());
        }
        let prefix = prefix(head, settings);
        let asked = Asked {
            method: &head.method,
            path: &head.path,
            query: &head.query,
            headers: &head.headers,
            prefix: &prefix,
        };
        console.answer(place, &asked, self.viewer(head)).await
    }

    /// Finds out the account that asks for a page.
    async fn viewer(&self, head: &Head) -> Viewer {
        let found = caller::identify(
            Access::Login,
            &head.context.peer,
            &head.headers,
            &self.deps.signer,
            self.deps.authenticator.as_ref(),
            self.deps.clock.now(),
        );
        match found.await {
            Ok(Identity::Session(session)) => Viewer::Account(session.account.role),
            Ok(_) | Err(ApiError::NotSignedIn) => Viewer::Guest,
            Err(error) => {
                error.log();
                Viewer::Unknown
            }
        }
    }

    /// Refuses what the database refuses, before it has any effect.
    fn check_database(&self, head: &Head) -> Result<()> {
        let path = head.path.strip_suffix('/').unwrap_or(&head.path);
        let what = match self.deps.db.refusal() {
            Some(Refusal::Changes(what)) if !head.method.is_safe() => what,
            Some(Refusal::Everything(what)) if !ABOUT_HEALTH.contains(&path) => what,
            _ => return Ok(()),
        };
        let cause = "no request was tried".into();
        Err(ApiError::StorageFailed { what, cause })
    }

    async fn run<S, B, E>(
        &self,
        head: &Head,
        body: S,
        settings: &WebSettings,
        trail: &mut Trail,
        memory: &mut Option<Share>,
    ) -> Result<Reply>
    where
        S: Stream<Item = Result<B, E>> + Send,
        B: Buf,
    {
        if let Some(fault) = head.context.fault {
            return Err(fault.into());
        }
        self.check_database(head)?;
        let agents_only = head.context.peer.surface == Surface::Agent;
        let is_on_machine = head.context.peer.surface == Surface::AdminSocket;
        let Found { node, params } = self
            .router
            .find(&head.path)
            .filter(|found| !agents_only || found.node.for_agents())
            .filter(|found| is_on_machine || !found.node.is_on_machine())
            .ok_or(ApiError::NoSuchRoute)?;
        if head.method == Method::OPTIONS {
            let allow = http::HeaderValue::from_static(node.allow());
            return Ok(Reply::empty().header(http::header::ALLOW, allow));
        }
        let route = node.route(&head.method).ok_or(ApiError::MethodNotAllowed {
            allow: node.allow(),
        })?;
        trail.route = Some(route.path);
        head.entry.set_route(route.path);
        trail.page = route.for_browsers && page::is_wanted(&head.headers);

        let identity = match self.identify(head, route, trail).await {
            Err(error) if goes_on_later(head, route, &error) => {
                error.log();
                return Ok(mcp::come_again(&head.headers));
            }
            identified => identified?,
        };
        trail.caller = identity.label();
        head.entry.set_state(identity.kind());
        let mut answer = self.answers.share(&identity, trail.client);
        answer.cover(least_answer(&identity).max(route.memory))?;
        *memory = Some(answer);
        check_mode(route, settings)?;
        let csrf_user = self.check_csrf_header(head, route, &identity, settings)?;
        // Kept until the handler is done with what was in the body.
        let mut share = self.requests.share(&identity, trail.client);
        let mut message = Message::default();
        let mut fields = match route.body {
            BodyKind::Fields => {
                read_fields(&head.headers, body, route.body_limit, &mut share).await?
            }
            BodyKind::Upload => {
                read_upload(&head.headers, body, route.body_limit, &mut share).await?
            }
            BodyKind::SpooledUpload => {
                let spool = || self.deps.skills.spool();
                read_spooled(&head.headers, body, route.body_limit, spool).await?
            }
            BodyKind::Files => {
                let account = match &identity {
                    Identity::Session(session) => session.account.clone(),
                    Identity::Socket(_) => account_in_path(&self.deps, &params).await?,
                    Identity::Nobody | Identity::Bearer(_) | Identity::ApiToken(_) => {
                        return Err(ApiError::NotSignedIn);
                    }
                };
                let deps = &self.deps;
                read_into_workspace(&head.headers, body, route.body_limit, deps, &account).await?
            }
            BodyKind::Message => {
                let begun = Instant::now();
                let bytes = read_message(&head.headers, body, route.body_limit, &mut share).await?;
                // What was asked slowly is asked by whoever may ask it at its end.
                if begun.elapsed() > PROMPT {
                    self.identify(head, route, trail).await?;
                }
                message = Message {
                    bytes,
                    share: Some(Arc::new(share)),
                };
                read_query(&head.query)?
            }
            // Parameters of any other POST never come from the query.
            BodyKind::None if route.is_post() => Fields::default(),
            BodyKind::None => read_query(&head.query)?,
        };
        if route.changes() {
            let token = match route.is_post() {
                true => fields.take_text(csrf::FIELD)?,
                // Fields of other methods come from the query, which ends up in logs.
                false => None,
            };
            if let Some(user) = csrf_user {
                let valid = token.is_some_and(|token| {
                    csrf::is_valid(&self.deps.signer, &user, self.deps.clock.now(), &token)
                });
                if !valid {
                    return Err(TOKEN_INVALID);
                }
            }
        }
        // Ignoring it would let a change through that its sender has forbidden.
        if route.is_post() && !route.guarded && take_if_generation(&mut fields)?.is_some() {
            let rule = "this request does not take if_generation";
            return Err(ApiError::invalid("if_generation", rule));
        }
        add_path_params(&mut fields, &params)?;
        let input = RawInput {
            post: route.is_post(),
            fields,
            message,
            upgrade: head.upgrade.clone(),
            meta: self.meta(head, route, settings, trail),
        };
        route.handler.call(identity, input, self.deps.clone()).await
    }

    /// Finds out who calls and whether the role fits the route.
    async fn identify(&self, head: &Head, route: &Route, trail: &Trail) -> Result<Identity> {
        if route.access == Access::McpToken {
            let settings = self.deps.settings();
            origin::check_strictly(&head.headers, &settings, route.for_extensions)?;
            let bearer = mcp_token::bearer(&self.deps, &head.headers, &head.query).await?;
            return Ok(Identity::Bearer(bearer));
        }
        if route.access == Access::Superadmin
            && let Some(token) = self.api_token(head, trail).await?
        {
            token.check(route.tokens.unwrap_or(Tokens::None))?;
            return Ok(Identity::ApiToken(token));
        }
        caller::identify(
            route.access,
            &head.context.peer,
            &head.headers,
            &self.deps.signer,
            self.deps.authenticator.as_ref(),
            self.deps.clock.now(),
        )
        .await
    }

    /// Finds the API token of a request from outside.
    async fn api_token(&self, head: &Head, trail: &Trail) -> Result<Option<TokenBearer>> {
        if head.context.peer.surface == Surface::AdminSocket {
            return Ok(None);
        }
        let sender = Sender {
            address: trail.client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            behind_unknown_proxy: trail.behind_unknown_proxy,
        };
        api_token::bearer(&self.deps, &head.headers, sender).await
    }

    /// Checks origin and token header of a change before its body is read. `Some(user)` when the token
    /// still has to come from the body.
    fn check_csrf_header(
        &self,
        head: &Head,
        route: &Route,
        identity: &Identity,
        settings: &WebSettings,
    ) -> Result<Option<schema::ids::UserName>> {
        // A page of another site may open a WebSocket with the visitor's cookie, and read from it.
        let is_read = !route.changes() && !head.headers.contains_key(UPGRADE);
        // No browser reaches the socket, and no cookie acts there or beside an MCP token.
        if is_read || matches!(identity, Identity::Socket(_) | Identity::Bearer(_)) {
            return Ok(None);
        }
        origin::check(&head.headers, head.context.host.as_deref(), settings)?;
        // A page may have been given an API token: the same ones act with it as with a cookie. Programs send no origin.
        if matches!(identity, Identity::ApiToken(_)) {
            return Ok(None);
        }
        if !route.csrf() {
            return Ok(None);
        }
        let Identity::Session(session) = identity else {
            return Err(ApiError::NotSignedIn);
        };
        let user = &session.account.name;
        let Some(token) = head.headers.get(csrf::HEADER) else {
            return Ok(Some(user.clone()));
        };
        let now = self.deps.clock.now();
        let valid = token
            .to_str()
            .is_ok_and(|token| csrf::is_valid(&self.deps.signer, user, now, token));
        if valid { Ok(None) } else { Err(TOKEN_INVALID) }
    }

    fn meta(&self, head: &Head, route: &Route, settings: &WebSettings, trail: &Trail) -> Meta {
        let (peer, trusted) = (head.context.peer.addr, trusted_proxies(head, settings));
        let proxied_https = peer
            .is_some_and(|peer| client_address::forwarded_https(peer.ip(), &head.headers, trusted));
        Meta {
            action: route.id,
            actor: trail.caller.clone(),
            request_id: head.context.id.clone(),
            client: trail.client,
            host: head.context.host.clone().or_else(|| {
                let host = head.headers.get(HOST)?;
                host.to_str().ok().map(str::to_owned)
            }),
            behind_unknown_proxy: trail.behind_unknown_proxy,
            secure: self.deps.tls || proxied_https,
            prefix: prefix(head, settings),
            headers: head.headers.clone(),
        }
    }

    /// The response; a failure is a page where `page` is the request of a browser.
    fn render(&self, result: Result<Reply>, page: Option<&Head>) -> Response {
        let shutdown = &self.deps.shutdown;
        let error = match result.and_then(|reply| reply.into_response(shutdown)) {
            Ok(response) => return response,
            Err(error) => error,
        };
        error.log();
        let reply = match page {
            Some(head) => {
                let settings = self.deps.settings();
                let console = self.deps.console.as_deref();
                let styles = console.map_or(&[][..], Console::styles);
                let prefix = prefix(head, &settings);
                let links = styles.iter().map(|style| format!("{prefix}{style}"));
                let links: Vec<_> = links.collect();
                page::of_failure(&error, &head.context.id, &settings.provider_path, &links)
            }
            None => error.to_reply(),
        };
        reply.into_response(shutdown).unwrap_or_else(|_| {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }
}

/// Memory that any answer is counted with, in bytes: that of its stream, and of what is under way in it.
const LEAST_ANSWER: usize = 64 * 1024;

/// The same for callers without an account: they get no streams.
const LEAST_SHORT_ANSWER: usize = 8 * 1024;

fn least_answer(identity: &Identity) -> usize {
    match identity {
        Identity::Nobody => LEAST_SHORT_ANSWER,
        Identity::Session(_)
        | Identity::Socket(_)
        | Identity::Bearer(_)
        | Identity::ApiToken(_) => LEAST_ANSWER,
    }
}

/// The memory that an answer takes, in bytes.
fn memory_of(response: &Response) -> usize {
    let StreamCost(cost) = response
        .extensions()
        .get()
        .copied()
        .unwrap_or(StreamCost(0));
    let whole = response.body().size_hint().exact().unwrap_or(0);
    cost.max(usize::try_from(whole).unwrap_or(usize::MAX))
}

/// Prefix that a proxy has taken off the path; mostly empty.
fn prefix(head: &Head, settings: &WebSettings) -> String {
    let trusted = trusted_proxies(head, settings);
    let prefix = head.context.peer.addr.and_then(|peer| {
        let path = &settings.public_path;
        client_address::forwarded_prefix(peer.ip(), &head.headers, trusted, path)
    });
    prefix.unwrap_or_default().to_owned()
}

/// Proxies that a request may have come through: agents reach their listener without any.
fn trusted_proxies<'a>(head: &Head, settings: &'a WebSettings) -> &'a [IpCidr] {
    match head.context.peer.surface {
        Surface::Public => &settings.trusted_proxies,
        Surface::Agent | Surface::AdminSocket => &[],
    }
}

/// A body that takes longer was not sent at once.
const PROMPT: Duration = Duration::from_secs(1);

const TOKEN_INVALID: ApiError =
    ApiError::CsrfInvalid("the CSRF token is missing or expired; fetch a new one");

/// Whether a client would give up its session over this failure, and is told to come again instead.
fn goes_on_later(head: &Head, route: &Route, error: &ApiError) -> bool {
    route.for_agents
        && head.method == Method::GET
        && error.status() == StatusCode::SERVICE_UNAVAILABLE
        && mcp::goes_on(&head.headers)
}

fn check_mode(route: &Route, settings: &WebSettings) -> Result<()> {
    match (route.modes, settings.auth_mode) {
        (Modes::Any, _)
        | (Modes::LocalOnly, AuthMode::Local)
        | (Modes::LdapOnly, AuthMode::Ldap) => Ok(()),
        (Modes::LdapOnly, AuthMode::Local | AuthMode::Oidc) => Err(ApiError::ModeForbidden(
            "users do not come from an LDAP directory",
        )),
        (Modes::LocalOnly, AuthMode::Ldap | AuthMode::Oidc) => Err(ApiError::ModeForbidden(
            "accounts and passwords are managed by a directory or an identity provider",
        )),
    }
}

/// Finds the user whose workspace a request on the admin socket is for.
async fn account_in_path(deps: &Deps, params: &[(String, String)]) -> Result<Account> {
    let mut named = params.iter().filter(|(name, _)| name == USERNAME);
    let (_, raw) = named.next().ok_or(ApiError::NoSuchRoute)?;
    let name = decode_segment(raw)?.parse();
    let name = name.map_err(|_| ApiError::not_found("the user"))?;
    find_account(deps, &name).await
}

fn add_path_params(fields: &mut Fields, params: &[(String, String)]) -> Result<()> {
    for (name, raw) in params {
        fields.insert(name.clone(), decode_segment(raw)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
