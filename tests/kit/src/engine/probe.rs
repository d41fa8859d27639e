//! Agents that answer for as long as they run and do not hang.

use std::time::Duration;

use async_trait::async_trait;
use reconcilers::drivers::agent_probe::{AgentProbe, Answer};
use tokio::time::{Instant, sleep};

use super::FakeEngine;

#[async_trait]
impl AgentProbe for FakeEngine {
    async fn ask(&self, address: &str, _port: u16, _path: &str, limit: Duration) -> Answer {
        let now = Instant::now();
        let found = self.world().agent_at(address, now);
        match found {
            Some(is_hung) => {
                if is_hung {
                    sleep(limit).await;
                }
                match is_hung {
                    true => Answer::NotReady,
                    false => Answer::Ready,
                }
            }
            None => Answer::NotReady,
        }
    }
}
