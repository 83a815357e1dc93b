//! What the process needs of its system: signals, threads, files, memory.

pub mod file_limit;
pub mod file_look;
pub mod memory;
pub mod mirrored_file;
pub mod stop;
pub mod watchdog;
pub mod watched_files;
pub mod work_runtime;
