//! Programs in users' containers, for the admin socket.

use std::sync::Arc;
use std::time::Duration;

use api::ports::{ContainerExec, ExecControl, ExecSettings, Execution, PortError};
use async_trait::async_trait;
use engine::{ContainerState, Containers, EngineError, mark_variable};
use futures::StreamExt;
use schema::ids::Uid;
use tokio::time::{sleep, timeout};

use super::ports::{Ports, live, port_error};

/// Time limit of sending a signal, and of its effect.
const SIGNAL: Duration = Duration::from_secs(3);
/// Time limit of the engine to report the end of a program that has closed its output.
const REPORT: Duration = Duration::from_secs(5);
/// Interval of asking it.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Sends signal `$2` to all processes whose environment holds the variable `$1`. The engine cannot end a program by itself.
const KILL: &str = r#"for p in /proc/[0-9]*; do
if grep -q "$1" "$p/environ" 2>/dev/null; then kill -s "$2" "${p#/proc/}" 2>/dev/null; fi
done; :"#;

#[async_trait]
impl ContainerExec for Ports {
    async fn is_running(&self, user: &Uid) -> Result<bool, PortError> {
        let container = live(self.container(user)).await?;
        Ok(container.is_some_and(|found| found.state == ContainerState::Running))
    }

    async fn start(
        &self,
        user: &Uid,
        settings: &ExecSettings,
    ) -> Result<Option<Execution>, PortError> {
        let engine = Arc::clone(&self.view.compute().containers);
        let container = live(self.container(user)).await?;
        let running = container.filter(|found| found.state == ContainerState::Running);
        let Some(container) = running else {
            return Ok(None);
        };
        let started = live(async {
            match engine.exec(&container.id, settings).await {
                Ok(started) => Ok(Some(started)),
                Err(EngineError::NotFound(_) | EngineError::Conflict(_)) => Ok(None),
                Err(error) => Err(port_error(error)),
            }
        });
        let Some(exec) = started.await? else {
            return Ok(None);
        };
        let control = Control {
            engine,
            container: container.id,
            exec: exec.control,
            mark: settings.mark.clone(),
            tty: settings.tty,
        };
        let output = exec.output.map(|piece| match piece {
            Ok(piece) => Ok((piece.stderr, piece.bytes)),
            Err(error) => Err(port_error(error)),
        });
        Ok(Some(Execution {
            input: exec.input,
            output: output.boxed(),
            control: Arc::new(control),
        }))
    }
}

struct Control {
    engine: Arc<dyn Containers>,
    container: String,
    exec: Arc<dyn engine::ExecControl>,
    mark: String,
    tty: bool,
}

impl Control {
    /// The code of the program, as soon as the engine reports its end.
    async fn wait(&self, limit: Duration) -> Result<Option<i64>, EngineError> {
        let asking = async {
            loop {
                if let Some(code) = self.exec.exit_code().await? {
                    return Ok(Some(code));
                }
                sleep(ASK_EVERY).await;
            }
        };
        timeout(limit, asking).await.unwrap_or(Ok(None))
    }

    async fn signal(&self, signal: &str) {
        let program = ["sh", "-c", KILL, "sh", &mark_variable(&self.mark), signal];
        let settings = ExecSettings {
            program: program.map(str::to_owned).to_vec(),
            environment: Vec::new(),
            stdin: false,
            tty: false,
            // Not that of the program, or it would end itself.
            mark: "signal".to_owned(),
        };
        let sent = async {
            if let Ok(mut exec) = self.engine.exec(&self.container, &settings).await {
                while exec.output.next().await.is_some() {}
            }
        };
        let _ = timeout(SIGNAL, sent).await;
    }
}

#[async_trait]
impl ExecControl for Control {
    async fn resize(&self, columns: u16, rows: u16) {
        if !self.tty || columns == 0 || rows == 0 {
            return;
        }
        // The engine refuses it while the program is being started.
        for _ in 0..10 {
            match timeout(SIGNAL, self.exec.resize(columns, rows)).await {
                Ok(Err(EngineError::Conflict(_) | EngineError::Internal(_))) => {
                    sleep(ASK_EVERY).await;
                }
                _ => return,
            }
        }
    }

    async fn exit_code(&self) -> Result<i64, PortError> {
        let code = self.wait(REPORT).await.map_err(port_error)?;
        code.ok_or_else(|| {
            let text = "the program closed its output, and the engine reports that it still runs";
            PortError::Failed(text.into())
        })
    }

    async fn end(&self) -> bool {
        for signal in ["HUP", "KILL"] {
            self.signal(signal).await;
            if !matches!(self.wait(SIGNAL).await, Ok(None)) {
                return true;
            }
        }
        false
    }
}
