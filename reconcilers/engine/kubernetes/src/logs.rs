//! Logs of agents. The node keeps them with the Pod, in one stream; they are gone with it.

use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, EngineStream, LogChunk, LogOptions};
use futures::io::AsyncBufRead;
use futures::{AsyncBufReadExt, StreamExt};
use k8s_openapi::jiff::Timestamp as Moment;
use kube::api::LogParams;

use super::KubernetesEngine;
use super::convert::CONTAINER;
use super::log_lines::LinesSince;
use super::reason::Progress;
use super::state::PodState;

/// Longest piece, in bytes.
pub(crate) const PIECE: usize = 64 * 1024;
/// Longest time without a piece of a log that is read to its end.
const IDLE: Duration = Duration::from_secs(5);

impl KubernetesEngine {
    pub(crate) async fn read_logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError> {
        let (_, template) = self.known_template(id).await?;
        let pod = self.own_pod(&template).await?;
        let Some(pod) = pod.as_ref().and_then(PodState::of) else {
            return Ok(futures::stream::empty().boxed());
        };
        if matches!(pod.progress, Progress::Waiting(_) | Progress::NotStarted(_)) {
            return Ok(futures::stream::empty().boxed());
        }
        let opened = self
            .cluster
            .read(self.cluster.pods.log_stream(&pod.name, &params(options)))
            .await;
        match opened {
            Ok(reader) => {
                let idle = (!options.follow).then_some(IDLE);
                let pieces = pieces(reader, idle);
                Ok(match options.since {
                    Some(since) => since_moment(pieces, LinesSince::new(since, options.timestamps)),
                    None => pieces,
                })
            }
            // It went between the two calls, or its node has not begun with it.
            Err(EngineError::NotFound(_)) => Ok(futures::stream::empty().boxed()),
            Err(EngineError::Refused(why)) if why.contains("waiting to start") => {
                Ok(futures::stream::empty().boxed())
            }
            Err(error) => Err(error),
        }
    }
}

fn params(options: &LogOptions) -> LogParams {
    let since = options.since.map(schema::ids::Timestamp::as_secs);
    LogParams {
        container: Some(CONTAINER.to_owned()),
        follow: options.follow,
        since_time: since.and_then(|seconds| Moment::from_second(seconds).ok()),
        tail_lines: options.tail.map(i64::from),
        timestamps: options.timestamps || options.since.is_some(),
        ..LogParams::default()
    }
}

/// The pieces of a log from a moment on.
fn since_moment(pieces: EngineStream<LogChunk>, lines: LinesSince) -> EngineStream<LogChunk> {
    let begun = Some((pieces, lines));
    let shown = futures::stream::unfold(begun, |reading| async move {
        let (mut pieces, mut lines) = reading?;
        let piece = |bytes| {
            Ok(LogChunk {
                stderr: false,
                bytes,
            })
        };
        loop {
            match pieces.next().await {
                Some(Ok(read)) => {
                    let bytes = lines.feed(read.bytes);
                    if !bytes.is_empty() {
                        return Some((piece(bytes), Some((pieces, lines))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let rest = lines.finish();
                    return (!rest.is_empty()).then(|| (piece(rest), None));
                }
            }
        }
    });
    shown.boxed()
}

/// The bytes of a log in bounded pieces; ends after the first error, or when nothing came for `idle`.
fn pieces(
    reader: impl AsyncBufRead + Send + 'static,
    idle: Option<Duration>,
) -> EngineStream<LogChunk> {
    let reader = Some(Box::pin(reader));
    let pieces = futures::stream::unfold(reader, move |reader| async move {
        let mut reader = reader?;
        let filled = match idle {
            Some(limit) => match tokio::time::timeout(limit, reader.fill_buf()).await {
                Ok(filled) => filled,
                Err(_) => return Some((Err(EngineError::Timeout(limit)), None)),
            },
            None => reader.fill_buf().await,
        };
        let bytes = match filled {
            Ok([]) => return None,
            Ok(bytes) => Bytes::copy_from_slice(bytes.get(..PIECE).unwrap_or(bytes)),
            Err(error) => return Some((Err(EngineError::Unavailable(Box::new(error))), None)),
        };
        reader.as_mut().consume(bytes.len());
        let piece = LogChunk {
            stderr: false,
            bytes,
        };
        Some((Ok(piece), Some(reader)))
    });
    pieces.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_log_comes_in_bounded_pieces() {
        let text = vec![b'x'; 1_000_000];
        let reader = futures::io::Cursor::new(text.clone());
        let read: Vec<_> = pieces(reader, None).collect().await;
        let read: Vec<Bytes> = read.into_iter().map(|piece| piece.unwrap().bytes).collect();
        assert!(read.iter().all(|piece| piece.len() <= PIECE));
        assert_eq!(read.concat(), text);
    }
}
