//! The agent-config reconciler: its plan alone; with a real database, a real data directory and the engine in
//! memory; and with everything in memory, where each call can fail.

mod converge;
mod faults;
mod hostile;
mod remount;
