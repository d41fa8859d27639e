//! What every response gets, whoever made it: security headers, a request id, an access log line,
//! and a JSON answer in place of a panic.

use std::any::Any;
use std::convert::Infallible;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use schema::metric;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::catch_panic::{CatchPanicLayer, ResponseForPanic};
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::Instrument;
use warp::filters::BoxedFilter;

use super::access_log::AccessLog;
use super::linger::Received;
use super::outgoing::count_until_sent;
use super::request::{Peer, REQUEST_ID, RequestContext};
use crate::dispatch::Trail;

/// An error while a body is sent.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a finished response.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;
/// The layers and what is inside.
type AppService = BoxCloneSyncService<Request<Received>, Response<Body>, Infallible>;

/// The whole stack with its log.
#[derive(Clone)]
pub(super) struct Stack {
    service: AppService,
    pub(super) log: AccessLog,
}

/// Puts the layers around the filter.
pub(super) fn stack(filter: BoxedFilter<(crate::reply::Response,)>) -> Stack {
    let fixed = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::overriding(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    let service = ServiceBuilder::new()
        .map_response(|response: Response<_>| response.map(into_body))
        .layer(fixed("x-frame-options", "DENY"))
        .layer(fixed("x-content-type-options", "nosniff"))
        .layer(fixed("referrer-policy", "strict-origin-when-cross-origin"))
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(CatchPanicLayer::custom(PanicAnswer))
        .service(warp::service(filter));
    Stack {
        service: BoxCloneSyncService::new(service),
        log: AccessLog::default(),
    }
}

fn into_body<B>(body: B) -> Body
where
    B: http_body_util::BodyExt<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Answers one request: gives it its context, sees it through the stack and writes the access log.
pub(super) fn answer(
    stack: Stack,
    mut request: Request<Received>,
    peer: Peer,
) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    let context = RequestContext::new(&request, peer);
    let host = context.host.as_deref().unwrap_or_default();
    let is_localhost = host == "localhost" || host.starts_with("localhost:");
    let id = context.id.clone();
    let (method, version) = (request.method().clone(), request.version());
    request.extensions_mut().insert(context);
    if request.uri().path_and_query().is_none() {
        // Refused by its context. The web framework panics where there is no path at all.
        *request.uri_mut() = Uri::from_static("/");
    }
    // An error span is there at every log level, so that whatever is logged inside has the id.
    let span = tracing::error_span!("request", id = %id);
    let work = async move {
        let begun = Instant::now();
        let mut response = stack.service.oneshot(request).await?;
        // For localhost it would bind all other servers of the machine.
        if peer.encrypted && !is_localhost {
            let year = HeaderValue::from_static("max-age=31536000");
            response
                .headers_mut()
                .insert(STRICT_TRANSPORT_SECURITY, year);
        }
        if let Some(id) = id.header() {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let trail = response.extensions_mut().remove::<Trail>();
        let (status, trail) = (response.status(), trail.as_ref());
        count_request(&method, status, begun, trail);
        stack.log.request(&method, status, begun, trail);
        Ok(count_until_sent(response, version))
    };
    Box::pin(work.instrument(span))
}

/// Name of a method, `-` for one that its client has made up.
pub(crate) fn known_method(method: &Method) -> &'static str {
    const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    let known = METHODS.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or("-")
}

/// Counts a request by the pattern of its route. Clients can make up methods and paths.
fn count_request(method: &Method, status: StatusCode, begun: Instant, trail: Option<&Trail>) {
    let method = known_method(method);
    let route = trail.and_then(|trail| trail.route).unwrap_or("-");
    let class = match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    metric::HTTP_REQUESTS.increment(&[route, method, class]);
    metric::HTTP_DURATION.observe(&[route, method], begun.elapsed());
}

/// Answers in place of a handler that panicked, and logs what it said under the request id.
#[derive(Clone, Copy)]
struct PanicAnswer;

impl ResponseForPanic for PanicAnswer {
    type ResponseBody = Full<Bytes>;

    fn response_for_panic(
        &mut self,
        panic: Box<dyn Any + Send + 'static>,
    ) -> Response<Self::ResponseBody> {
        const ANSWER: &str = r#"{"success":false,"error":"internal error; the server log shows the details by request id","code":"internal"}"#;
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a value that is no text");
        tracing::error!(panic = said, "a handler panicked");
        let mut response = Response::new(Full::from(ANSWER));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
