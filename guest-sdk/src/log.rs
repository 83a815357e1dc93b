//! Log macros with fields.
//!
//! [`trace!`](crate::trace), [`debug!`](crate::debug), [`info!`](crate::info), [`warn!`](crate::warn) and [`error!`](crate::error).
//!
//! Fields first, then a text as for `format!`: `info!(machine = id, "stopped for {seconds} s")`. When the level is off, neither
//! the text nor the fields are made. Never log a secret or a token.

use std::fmt::Display;

use crate::host;
use crate::types::Pair;

pub use crate::bindings::imports::cloudwit::provider::log::Level;

/// Hands a line to the host; for the macros.
#[doc(hidden)]
pub fn write(level: Level, message: String, fields: &[(&str, &dyn Display)]) {
    let fields: Vec<Pair> = fields
        .iter()
        .map(|(key, value)| Pair::new(*key, value.to_string()))
        .collect();
    host::log(level, &message, &fields);
}

/// Logs a line of the given [`Level`](crate::log::Level).
#[macro_export]
macro_rules! log {
    ($level:ident, $($key:ident = $value:expr,)* $text:literal $(, $argument:expr)* $(,)?) => {
        if $crate::__private::log_enabled($crate::log::Level::$level) {
            $crate::__private::write(
                $crate::log::Level::$level,
                ::std::format!($text $(, $argument)*),
                &[$((::std::stringify!($key), &$value)),*],
            );
        }
    };
}

/// Logs what is of interest only while searching for a mistake, step by step.
#[macro_export]
macro_rules! trace { ($($line:tt)+) => { $crate::log!(Trace, $($line)+) }; }

/// Logs what helps to follow a call.
#[macro_export]
macro_rules! debug { ($($line:tt)+) => { $crate::log!(Debug, $($line)+) }; }

/// Logs what an operator needs in normal operation.
#[macro_export]
macro_rules! info { ($($line:tt)+) => { $crate::log!(Info, $($line)+) }; }

/// Logs what an operator should act on.
#[macro_export]
macro_rules! warn { ($($line:tt)+) => { $crate::log!(Warn, $($line)+) }; }

/// Logs what failed.
#[macro_export]
macro_rules! error { ($($line:tt)+) => { $crate::log!(Error, $($line)+) }; }
