//! Agents that answer for as long as they run and do not hang.

use std::time::Duration;

use async_trait::async_trait;
use reconcilers::drivers::agent_probe::AgentProbe;
use tokio::time::{Instant, sleep};

use super::FakeEngine;

#[async_trait]
impl AgentProbe for FakeEngine {
    async fn is_ready(&self, address: &str, _port: u16, _path: &str, limit: Duration) -> bool {
        let now = Instant::now();
        let found = self.world().agent_at(address, now);
        match found {
            Some(is_hung) => {
                if is_hung {
                    sleep(limit).await;
                }
                !is_hung
            }
            None => false,
        }
    }
}
