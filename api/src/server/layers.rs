//! What every response gets, whoever made it: security headers, a request id, an access log line,
//! and a JSON answer in place of a panic.

use std::any::Any;
use std::convert::Infallible;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::catch_panic::{CatchPanicLayer, ResponseForPanic};
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::Instrument;
use warp::filters::BoxedFilter;

use super::request::{Peer, REQUEST_ID, RequestContext};
use crate::dispatch::Trail;

/// An error while a body is sent.
type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a finished response.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;
/// The whole stack.
pub(super) type AppService = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

/// Longest method name written to the log, in bytes. Clients can make up methods.
const MAX_METHOD: usize = 16;

/// Puts the layers around the filter.
pub(super) fn stack(filter: BoxedFilter<(crate::reply::Response,)>) -> AppService {
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
    BoxCloneSyncService::new(service)
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
    service: AppService,
    mut request: Request<Incoming>,
    peer: Peer,
) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    let context = RequestContext::new(&request, peer);
    let id = context.id.clone();
    let method = request.method().clone();
    request.extensions_mut().insert(context);
    // An error span is there at every log level, so that whatever is logged inside has the id.
    let span = tracing::error_span!("request", id = %id);
    let work = async move {
        let begun = Instant::now();
        let mut response = service.oneshot(request).await?;
        if let Some(id) = id.header() {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let trail = response.extensions_mut().remove::<Trail>();
        log_access(&method, response.status(), begun, trail.as_ref());
        Ok(response)
    };
    Box::pin(work.instrument(span))
}

/// One line for each request, of bounded length: the route's pattern instead of the path, and no
/// header or parameter (L62). Reads that went well are for debugging only.
fn log_access(method: &Method, status: StatusCode, begun: Instant, trail: Option<&Trail>) {
    let method = method.as_str();
    let method = method.get(..MAX_METHOD).unwrap_or(method);
    let route = trail.and_then(|trail| trail.route).unwrap_or("-");
    let caller = trail
        .and_then(|trail| trail.caller.as_deref())
        .unwrap_or("-");
    let client = trail
        .and_then(|trail| trail.client)
        .map_or_else(|| "-".to_owned(), |client| client.to_string());
    let status = status.as_u16();
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let read = method == "GET" || method == "HEAD" || method == "OPTIONS";
    if read && status < 400 {
        tracing::debug!(method, route, status, ms, client, caller, "request");
    } else {
        tracing::info!(method, route, status, ms, client, caller, "request");
    }
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
