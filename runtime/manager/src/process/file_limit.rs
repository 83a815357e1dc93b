//! Raises the limit of open files to the hard limit.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open files; none for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised {
    /// As the process found it.
    pub from: Option<u64>,
    /// As it is now.
    pub to: Option<u64>,
}

/// Raises the limit of this process to its hard limit. For the one thread there is at the start.
pub fn raise() -> io::Result<Raised> {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: found.maximum,
        maximum: found.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(Raised {
        from: found.current,
        to: getrlimit(Resource::Nofile).current,
    })
}

/// Logs what became of it.
pub fn log(raised: &io::Result<Raised>) {
    match raised {
        Ok(Raised { from, to }) => tracing::info!(
            open_files = to.unwrap_or(u64::MAX),
            was = from.unwrap_or(u64::MAX),
            "limit of open files raised to the hard limit"
        ),
        Err(error) => tracing::warn!(%error, "failed to raise the limit of open files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_raised_to_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum;
        let raised = raise().unwrap();
        assert_eq!(raised.to, hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }
}
