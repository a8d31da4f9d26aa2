//! DO: listeners, sessions, tiers, telemetry and the control socket.

pub mod control;
pub mod settings;
pub mod telemetry;
