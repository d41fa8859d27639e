//! Users and groups of a directory, wherever the service is killed, whichever call of the database fails, and
//! whatever the directory says.

mod faults;
mod removal;
mod requests;
mod support;
