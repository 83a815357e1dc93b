//! What a provider needs that does without Rust's standard library: [`without_std!`](crate::without_std).
//!
//! std brings its own memory allocator, environment, standard streams and the printing of backtraces along, 30 KB of a component, and none
//! of it is of use in an instance that lives for one call. A provider with std works just as well.

#[cfg(target_family = "wasm")]
use self::prelude::*;
#[cfg(target_family = "wasm")]
use crate::host;
#[cfg(target_family = "wasm")]
use crate::log::Level;

/// Lets the crate do without std inside the component: `without_std!();` beside `register_provider!`, and at the top of `lib.rs`
///
/// ```text
/// #![cfg_attr(target_family = "wasm", no_std)]
/// extern crate alloc;
/// ```
///
/// and, in `.cargo/config.toml`, the C library for comparing memory. It has to come last: the memory of arguments is Rust's then, not C's.
///
/// ```toml
/// [target.wasm32-wasip2]
/// rustflags = ["-Clink-arg=-lc"]
/// ```
///
/// `String`, `Vec`, `format!` and their like come from the SDK's prelude then, the rest from `core` and `alloc`. A panic ends the call as
/// ever; its text goes to the log as an error. Native tests have std.
#[macro_export]
macro_rules! without_std {
    () => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[global_allocator]
            static MEMORY: $crate::__private::Memory = $crate::__private::Memory::new();

            #[panic_handler]
            fn panicked(panic: &::core::panic::PanicInfo<'_>) -> ! {
                $crate::__private::panicked(panic)
            }
        };
    };
}

/// What std's own prelude has beyond core's.
pub mod prelude {
    pub use alloc::borrow::ToOwned;
    pub use alloc::boxed::Box;
    pub use alloc::string::{String, ToString};
    pub use alloc::vec::Vec;
    pub use alloc::{format, vec};
}

/// The allocator: taking and giving back cost the same however much is in use, and in two kilobytes of code.
#[cfg(target_family = "wasm")]
pub type Memory = rlsf::GlobalTlsf;

/// Says why, and ends the call.
#[cfg(target_family = "wasm")]
pub fn panicked(panic: &core::panic::PanicInfo<'_>) -> ! {
    // Without this, memory for the host's arguments would be another allocator's.
    wit_bindgen_rt::maybe_link_cabi_realloc();
    host::log(Level::Error, &panic.to_string(), &[]);
    core::arch::wasm32::unreachable()
}
