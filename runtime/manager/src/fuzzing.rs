//! What the fuzz targets of `tests/fuzz-bodies` call.

pub use crate::flags::values::duration::GoDuration;
pub use crate::flags::values::go::{boolean, entries};
pub use crate::serving::access::proxy_headers::ProxyHeaders;
pub use crate::serving::access::user::User;
