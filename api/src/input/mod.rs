//! Reading what a request carries: bodies, queries and path parameters become named fields, and
//! fields become the struct a handler asks for.

mod body;
mod fields;
mod into_workspace;
mod multipart;
mod pace;
mod spool;
mod urlencoded;
mod value;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use hyper::upgrade::OnUpgrade;
use schema::audit::{About, Audited, Author};
use schema::error::DbError;
use schema::ids::Generation;
use serde::de::DeserializeOwned;

pub(crate) use body::{FILE, read_fields, read_message, read_query, read_upload};
pub use fields::Fields;
pub use into_workspace::ReceivedFiles;
pub(crate) use into_workspace::{MOST_FILES, read_into_workspace};
pub(crate) use multipart::has_crlf_only;
pub(crate) use spool::read_spooled;
pub(crate) use urlencoded::decode_segment;

use crate::auth::login_limit::Sender;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::limits::Share;
use crate::server::RequestId;

/// The longest time a client may ask an answer to be held back.
pub const MAX_WAIT: Duration = Duration::from_secs(120);
/// Entries of a list page when the client names no size.
pub const DEFAULT_PAGE_SIZE: u32 = 20;
/// Most entries of a list page.
pub const MAX_PAGE_SIZE: u32 = 200;

/// Facts about a request beside its parameters.
#[derive(Debug, Clone)]
pub struct Meta {
    /// What is asked for: the id of the route.
    pub action: &'static str,
    /// Who asks: an account's name, `socket:<uid>`, or nobody known.
    pub actor: Option<String>,
    /// The id under which the log speaks of this request.
    pub request_id: RequestId,
    /// The client's address; `None` on the admin socket.
    pub client: Option<IpAddr>,
    /// The host that the client asked, with its port unless that is the usual one.
    pub host: Option<String>,
    /// The request came through a proxy that `web.trusted_proxies` does not name.
    pub behind_unknown_proxy: bool,
    /// Whether the client's connection is encrypted, here or at a trusted proxy.
    pub secure: bool,
    /// What a trusted proxy has taken off the beginning of the path.
    pub prefix: String,
    /// The request's headers.
    pub headers: Arc<HeaderMap>,
}

impl Meta {
    /// The client, as its sign-ins are counted.
    pub(crate) fn sender(&self) -> Sender {
        Sender {
            // No connection comes from it: it stands for the admin socket.
            address: self.client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            behind_unknown_proxy: self.behind_unknown_proxy,
        }
    }

    /// A transaction that may write. Its commit names what it is about, and leaves the entry in the
    /// audit trail: this request's caller, address, route and id.
    pub async fn begin(&self, deps: &Dependencies) -> Result<Audited, DbError> {
        deps.writer.begin(self.author()).await
    }

    /// Records that this request was refused.
    pub async fn refused(&self, deps: &Dependencies, about: About) -> Result<(), DbError> {
        deps.writer.refused(self.author(), about).await
    }

    fn author(&self) -> Author {
        let address = self.client.map(|address| address.to_string());
        Author {
            actor: self.actor.clone().unwrap_or_else(|| "-".to_owned()),
            address: address.unwrap_or_default(),
            action: self.action.to_owned(),
            request_id: self.request_id.to_string(),
        }
    }
}

/// What a handler gets besides its caller and the service's dependencies.
pub struct Input<T> {
    /// Path parameters and query (GET) or body (POST) fields.
    pub params: T,
    /// `wait`: how long the answer may be held back until the objects have converged. POST only.
    pub wait: Option<Duration>,
    /// `if_generation`: act only if the object still has this generation. POST only.
    pub if_generation: Option<Generation>,
    /// `page`, `page_size`, `search`. GET only.
    pub paging: Option<Paging>,
    /// The file of an upload. Routes that take one only.
    pub file: Option<Bytes>,
    /// The file of an upload that was received on disk, from its beginning.
    pub spooled: Option<File>,
    /// The files for the caller's workspace.
    pub received: ReceivedFiles,
    /// A text of a multipart form arrived with CRLF, and got line feeds.
    pub(crate) had_crlf: bool,
    /// The body as it is. Routes that take JSON as it is only.
    pub message: Message,
    /// What the connection becomes if the answer is 101; `None` when it can become nothing else.
    pub upgrade: Option<OnUpgrade>,
    /// Facts about the request.
    pub meta: Meta,
}

/// A body as it is.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its part of the memory for bodies, to be kept for as long as what is in it.
    pub(crate) share: Option<Arc<Share>>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paging {
    /// The page, from 1.
    pub page: u32,
    /// Entries per page, 1 to [`MAX_PAGE_SIZE`].
    pub page_size: u32,
    /// Case-insensitive substring; empty matches all.
    pub search: String,
}

/// The first page of a list of which there is always one.
impl Default for Paging {
    fn default() -> Self {
        Self {
            page: 1,
            page_size: DEFAULT_PAGE_SIZE,
            search: String::new(),
        }
    }
}

/// No parameters at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, utoipa::ToSchema)]
pub struct Nothing {}

/// What the dispatcher has read, not typed yet.
pub(crate) struct RawInput {
    pub(crate) post: bool,
    pub(crate) fields: Fields,
    pub(crate) message: Message,
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) meta: Meta,
}

impl RawInput {
    /// Types the fields.
    pub(crate) fn into_input<T: DeserializeOwned>(mut self) -> Result<Input<T>> {
        let (mut wait, mut if_generation, mut paging) = (None, None, None);
        if self.post {
            wait = take_wait(&mut self.fields)?;
            if_generation = take_if_generation(&mut self.fields)?;
        } else {
            paging = take_paging(&mut self.fields)?;
        }
        Ok(Input {
            file: self.fields.take_file(),
            spooled: self.fields.take_spooled(),
            received: self.fields.take_received(),
            had_crlf: self.fields.had_crlf,
            message: self.message,
            upgrade: self.upgrade,
            params: self.fields.parse()?,
            wait,
            if_generation,
            paging,
            meta: self.meta,
        })
    }
}

fn take_wait(fields: &mut Fields) -> Result<Option<Duration>> {
    let Some(text) = fields.take_text("wait")? else {
        return Ok(None);
    };
    let wait = text.parse().map(Duration::from_secs).ok();
    match wait.filter(|wait| *wait <= MAX_WAIT) {
        Some(wait) => Ok(Some(wait)),
        None => Err(ApiError::invalid(
            "wait",
            "wait is a whole number of seconds from 0 to 120",
        )),
    }
}

pub(crate) fn take_if_generation(fields: &mut Fields) -> Result<Option<Generation>> {
    let Some(text) = fields.take_text("if_generation")? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(generation) if generation >= 1 => Ok(Some(Generation(generation))),
        _ => Err(ApiError::invalid(
            "if_generation",
            "if_generation is a whole number from 1",
        )),
    }
}

fn take_paging(fields: &mut Fields) -> Result<Option<Paging>> {
    let page = fields.take_text("page")?;
    let page_size = fields.take_text("page_size")?;
    let search = fields.take_text("search")?;
    if page.is_none() && page_size.is_none() && search.is_none() {
        return Ok(None);
    }
    // An empty field is what a browser's form sends for an input left blank.
    let number = |name, text: Option<String>, default, max| match text.as_deref() {
        None | Some("") => Ok(default),
        Some(text) => text
            .parse::<u32>()
            .ok()
            .filter(|number| (1..=max).contains(number))
            .ok_or_else(|| {
                ApiError::invalid(name, format!("{name} is a whole number from 1 to {max}"))
            }),
    };
    Ok(Some(Paging {
        page: number("page", page, 1, i32::MAX.unsigned_abs())?,
        page_size: number("page_size", page_size, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?,
        search: search.unwrap_or_default(),
    }))
}

impl Paging {
    /// The page actually shown for `total` entries: a page past the end is the last page.
    pub fn clamp(&self, total: u64) -> (u32, u64) {
        let total_pages = total.div_ceil(u64::from(self.page_size)).max(1);
        let page = u64::from(self.page).min(total_pages);
        (u32::try_from(page).unwrap_or(u32::MAX), total_pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::budget_of;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields
                .insert((*name).to_owned(), (*value).to_owned())
                .unwrap();
        }
        fields
    }

    #[test]
    fn a_wait_is_0_to_120_seconds() {
        for (text, expected) in [("0", Some(0)), ("120", Some(120))] {
            let wait = take_wait(&mut fields(&[("wait", text)])).unwrap();
            assert_eq!(wait.map(|w| w.as_secs()), expected);
        }
        for text in ["121", "-1", "1.5", "", "a"] {
            assert!(take_wait(&mut fields(&[("wait", text)])).is_err(), "{text}");
        }
        assert_eq!(take_wait(&mut fields(&[])).unwrap(), None);
    }

    #[test]
    fn without_page_parameters_there_is_no_page() {
        assert_eq!(take_paging(&mut fields(&[])).unwrap(), None);
        let paging = take_paging(&mut fields(&[("search", "al")]))
            .unwrap()
            .unwrap();
        assert_eq!((paging.page, paging.page_size), (1, 20));
        assert_eq!(paging.search, "al");
        assert!(take_paging(&mut fields(&[("page_size", "201")])).is_err());
        assert!(take_paging(&mut fields(&[("page", "0")])).is_err());
    }

    #[test]
    fn a_page_past_the_end_is_the_last_page() {
        let paging = Paging {
            page: 9,
            page_size: 20,
            search: String::new(),
        };
        assert_eq!(paging.clamp(41), (3, 3));
        assert_eq!(paging.clamp(0), (1, 1));
        assert_eq!(paging.clamp(1000), (9, 50));
    }

    const KINDS: [&str; 3] = [
        "application/x-www-form-urlencoded",
        "application/json",
        "multipart/form-data; boundary=B",
    ];

    proptest::proptest! {
        #[test]
        fn l64_no_body_is_anything_but_fields_or_a_client_error(
            mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            prefix in proptest::sample::select(vec!["", "a=", "{\"a\":", "--B\r\n"]),
        ) {
            bytes.splice(0..0, prefix.bytes());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            for kind in KINDS {
                let mut headers = HeaderMap::new();
                headers.insert("content-type", http::HeaderValue::from_static(kind));
                let piece = bytes::Bytes::from(bytes.clone());
                let body = futures::stream::iter([Ok::<_, std::convert::Infallible>(piece)]);
                let mut share = budget_of(1).share(&());
                let read = read_fields(&headers, body, 1000, &mut share);
                let read = runtime.as_ref().unwrap().block_on(read);
                if let Err(error) = read {
                    assert!(error.status().is_client_error(), "{error:?}");
                }
            }
        }
    }
}
