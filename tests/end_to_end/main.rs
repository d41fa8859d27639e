//! The whole program, as a process, on a real database and a real engine.
//!
//! Tests named `engine_…` need the test services (`make services-up`, `make run-tests`). Without them they fail; they never
//! skip. `AGENTYARD_TEST_LONG=1` makes them cover everything instead of a sample.

// Test code, although not every function bears the test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr)]

#[path = "../simulation/chance.rs"]
#[allow(dead_code)] // The simulation uses the rest.
mod chance;
#[path = "../conformance/mod.rs"]
mod conformance;
#[path = "../../reconcilers/tests/git/repository.rs"]
#[allow(dead_code)] // The tests of the driver use the rest of these three.
mod git_repository;
#[path = "../../reconcilers/tests/git/server.rs"]
#[allow(dead_code)]
mod git_server;
#[path = "../support/in_process.rs"]
#[allow(dead_code)] // The benchmarks use the rest.
mod in_process;
#[path = "../../reconcilers/tests/registry/mod.rs"]
#[allow(dead_code)] // The tests of pulls beside the reconcilers use the rest.
mod registry;
#[path = "../../reconcilers/tests/ldap/server.rs"]
#[allow(dead_code)]
mod slapd;
#[path = "../../reconcilers/tests/git/sshd.rs"]
#[allow(dead_code)]
mod sshd;
#[path = "../support/mod.rs"]
mod support;

mod adapter;
mod agent_config;
mod archive;
mod audit;
mod backup;
mod broken_users;
mod chart;
mod chat;
mod clock;
mod command_line;
mod console;
mod crash_loop;
mod data_dir;
mod database;
mod directory;
mod event_stream;
mod faults;
mod files;
mod fix_point;
mod foreign;
mod fresh_clone;
mod harness;
mod health;
mod homes;
mod images;
mod logging;
mod login;
mod main_job;
mod mcp;
mod mcp_agent;
mod mcp_executors;
mod mcp_isolation;
mod mcp_policy;
mod memory;
mod mode_switch;
mod monitoring;
mod network;
mod oidc;
mod operator;
mod outage;
mod replicas;
mod repositories;
mod rollouts;
mod scale;
mod secrets;
mod shutdown;
mod skills;
mod storage;
mod tls;
mod unprivileged;
mod watch;
mod watchdog;
mod workspaces;
