//! Programs in containers, beside the agents.
//!
//! The API gives such a program no variables, so `env` of the image sets them: an image without it runs no programs. The exit code
//! comes at the end of the program's own connection, after its output.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use engine::{
    EngineError, EngineStream, Exec, ExecControl, ExecSettings, LogChunk, exec_variables,
};
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess, TerminalSize};
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::KubernetesEngine;
use super::convert::CONTAINER;
use super::logs::PIECE;
use super::reason::Progress;
use super::state::PodState;

/// Exit code of a program that could not be run.
const NOT_RUN: i64 = 126;

/// Terminal and end of a program.
#[derive(Debug)]
struct Control {
    size: Option<mpsc::Sender<TerminalSize>>,
    code: Arc<OnceLock<i64>>,
}

#[async_trait]
impl ExecControl for Control {
    async fn resize(&self, columns: u16, rows: u16) -> Result<(), EngineError> {
        let Some(mut size) = self.size.clone() else {
            return Ok(());
        };
        // It may have ended meanwhile.
        let _ = size
            .send(TerminalSize {
                width: columns,
                height: rows,
            })
            .await;
        Ok(())
    }

    async fn exit_code(&self) -> Result<Option<i64>, EngineError> {
        Ok(self.code.get().copied())
    }
}

impl KubernetesEngine {
    pub(crate) async fn run_program(
        &self,
        id: &str,
        settings: &ExecSettings,
    ) -> Result<Exec, EngineError> {
        let (_, template) = self.known_template(id).await?;
        let pod = self
            .own_pod(&template)
            .await?
            .as_ref()
            .and_then(PodState::of);
        let running = pod.filter(|pod| pod.progress == Progress::Running);
        let Some(pod) = running else {
            return Err(EngineError::Conflict(format!("{id} does not run")));
        };
        let params = AttachParams {
            container: Some(CONTAINER.to_owned()),
            stdin: settings.stdin,
            stdout: true,
            // A terminal has one output.
            stderr: !settings.tty,
            tty: settings.tty,
            max_stdin_buf_size: Some(PIECE),
            max_stdout_buf_size: Some(PIECE),
            max_stderr_buf_size: Some(PIECE),
        };
        let command = command(settings);
        let mut process = self
            .cluster
            .read(self.cluster.pods.exec(&pod.name, command, &params))
            .await?;
        let code = Arc::new(OnceLock::new());
        let control = Arc::new(Control {
            size: process.terminal_size(),
            code: Arc::clone(&code),
        });
        let input: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>> = match process.stdin() {
            Some(input) => Box::pin(input),
            None => Box::pin(tokio::io::sink()),
        };
        Ok(Exec {
            input,
            output: output(process, code),
            control,
        })
    }
}

/// The command line that sets the variables first.
fn command(settings: &ExecSettings) -> Vec<String> {
    let mut command = vec!["env".to_owned()];
    command.extend(exec_variables(settings));
    command.extend(settings.program.iter().cloned());
    command
}

/// Both outputs of a program; at their end its exit code is noted, and its words if it was not run.
fn output(mut process: AttachedProcess, code: Arc<OnceLock<i64>>) -> EngineStream<LogChunk> {
    let stdout = bytes(process.stdout(), false);
    let stderr = bytes(process.stderr(), true);
    let status = process.take_status();
    let end = async move {
        let status = match status {
            Some(status) => status.await,
            None => None,
        };
        // The connection is held until here.
        drop(process);
        let (ended_with, words) = exit(status.as_ref());
        let _ = code.set(ended_with);
        words.map(|words| {
            Ok(LogChunk {
                stderr: true,
                bytes: Bytes::from(words),
            })
        })
    };
    let end = futures::stream::once(end).filter_map(std::future::ready);
    futures::stream::select(stdout, stderr).chain(end).boxed()
}

fn bytes(
    reader: Option<impl AsyncRead + Send + Unpin + 'static>,
    stderr: bool,
) -> EngineStream<LogChunk> {
    match reader {
        Some(reader) => ReaderStream::with_capacity(reader, PIECE)
            .map(move |read| match read {
                Ok(bytes) => Ok(LogChunk { stderr, bytes }),
                Err(error) => Err(EngineError::Unavailable(Box::new(error))),
            })
            .boxed(),
        None => futures::stream::empty().boxed(),
    }
}

/// The exit code that the end of the connection tells, and words to be shown where no program ran.
fn exit(status: Option<&Status>) -> (i64, Option<String>) {
    let Some(status) = status else {
        return (
            NOT_RUN,
            Some("the connection to the container broke off\n".to_owned()),
        );
    };
    if status.status.as_deref() == Some("Success") {
        return (0, None);
    }
    let causes = status
        .details
        .iter()
        .flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse().ok());
    match code {
        Some(code) => (code, None),
        None => {
            let words = status
                .message
                .as_deref()
                .unwrap_or("the program was not run");
            (NOT_RUN, Some(format!("{words}\n")))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};

    use super::*;

    fn failure(cause: Option<&str>) -> Status {
        let causes = cause.map(|code| {
            vec![StatusCause {
                reason: Some("ExitCode".to_owned()),
                message: Some(code.to_owned()),
                field: None,
            }]
        });
        Status {
            status: Some("Failure".to_owned()),
            message: Some("no such program".to_owned()),
            details: Some(StatusDetails {
                causes,
                ..StatusDetails::default()
            }),
            ..Status::default()
        }
    }

    #[test]
    fn exit_code_is_read_from_the_status() {
        let success = Status {
            status: Some("Success".to_owned()),
            ..Status::default()
        };
        assert_eq!(exit(Some(&success)), (0, None));
        assert_eq!(exit(Some(&failure(Some("3")))), (3, None));
        let (code, words) = exit(Some(&failure(None)));
        assert_eq!((code, words.as_deref()), (126, Some("no such program\n")));
        assert_eq!(exit(None).0, 126);
    }

    #[test]
    fn variables_come_before_the_program() {
        let settings = ExecSettings {
            program: vec!["sh".to_owned(), "-c".to_owned()],
            environment: vec!["TERM=xterm".to_owned()],
            stdin: false,
            tty: true,
            mark: "m1".to_owned(),
        };
        let expected = ["env", "TERM=xterm", "AGENTYARD_EXEC=m1", "sh", "-c"];
        assert_eq!(command(&settings), expected);
    }
}
