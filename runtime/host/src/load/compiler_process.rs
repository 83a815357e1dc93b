//! Entry point of the compiler process that `compiler` starts.
//!
//! It limits itself, says so with a greeting, reads the component from stdin to its end, writes the compiled code to stdout. It has no settings,
//! no secrets and no network, and opens no file.

use std::io;
use std::process::ExitCode;

use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use wasmtime::Engine;

use crate::load::engine;

/// The first argument of the program. Not documented: for internal use.
pub(crate) const COMMAND: &str = "compile-component";

/// First bytes on stdout, once the limits hold.
pub(crate) const GREETING: &[u8; 12] = b"component?\r\n";

/// Exit code when the component is invalid; stdout says why.
pub(crate) const INVALID: i32 = 3;

/// Exit code when memory did not suffice and the compiler noticed.
pub(crate) const NO_MEMORY: i32 = 4;

/// Exit code when it could not begin.
const NOT_LIMITED: u8 = 5;

/// What the command line says.
struct CompileArgs {
    parent: i32,
    memory_bytes: u64,
    cpu_seconds: u64,
}

/// Does what a process of the same program asks for that compiles [apart](crate::Compiler::Apart), where that is what the command line is about.
/// To be called before anything else is started: `None` for every other command line.
pub fn compile_for_parent(args: impl IntoIterator<Item = String>) -> Option<ExitCode> {
    let asked = asked(args)?;
    Some(match limit(&asked) {
        Ok(()) => ExitCode::from(answer(io::stdin().lock(), io::stdout().lock())),
        Err(error) => {
            eprintln!("no limits could be set: {error}");
            ExitCode::from(NOT_LIMITED)
        }
    })
}

fn asked(args: impl IntoIterator<Item = String>) -> Option<CompileArgs> {
    let args: Vec<String> = args.into_iter().skip(1).collect();
    let [command, parent, memory_bytes, cpu_seconds] = args.as_slice() else {
        return None;
    };
    (command == COMMAND).then_some(())?;
    Some(CompileArgs {
        parent: parent.parse().ok()?,
        memory_bytes: memory_bytes.parse().ok()?,
        cpu_seconds: cpu_seconds.parse().ok()?,
    })
}

/// Ends with the parent, writes no file and no core dump, and uses no more than it may.
fn limit(asked: &CompileArgs) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(asked.parent) {
        return Err(io::Error::other("the parent is gone"));
    }
    let most = |resource, current: u64, maximum: u64| {
        // Only root may exceed the limits that the process was started with.
        let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(current.min(allowed)),
            maximum: Some(maximum.min(allowed)),
        };
        setrlimit(resource, limit)
    };
    most(Resource::Core, 0, 0)?;
    most(Resource::Fsize, 0, 0)?;
    most(Resource::Data, asked.memory_bytes, asked.memory_bytes)?;
    // The signal that names the reason comes at the lower one.
    most(Resource::Cpu, asked.cpu_seconds, asked.cpu_seconds.saturating_add(1))?;
    Ok(())
}

/// Greets, reads, compiles, writes; gives the exit code. An answer that cannot be written is dropped: the parent is gone.
fn answer(mut component: impl io::Read, mut code: impl io::Write) -> u8 {
    let mut talk = || -> io::Result<i32> {
        code.write_all(GREETING)?;
        code.flush()?;
        let mut bytes = Vec::new();
        component.read_to_end(&mut bytes)?;
        let (exit, answer) = match compile(&bytes) {
            Ok(code) => (0, code),
            Err(error) if is_out_of_memory(&error) => (NO_MEMORY, Vec::new()),
            Err(error) => (INVALID, format!("{error:#}").into_bytes()),
        };
        code.write_all(&answer)?;
        code.flush()?;
        Ok(exit)
    };
    match talk() {
        Ok(exit) => u8::try_from(exit).unwrap_or(u8::MAX),
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

/// The same code as the engine that runs it would compile: what code depends on is in `engine::compiling`, and wasmtime compares it again.
fn compile(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    Engine::new(&engine::compiling())?.precompile_component(component)
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<wasmtime::error::OutOfMemory>()
            || cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
    })
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use wasmtime::component::Component;

    use super::*;
    use crate::HostOptions;

    /// A component whose module does a little of everything that the engine's settings decide about: loops, memory, calls.
    const COMPONENT: &str = r#"(component (core module
        (memory 1)
        (table 4 funcref)
        (func $f (param i32) (result i32)
            (loop $again (i32.store (local.get 0) (i32.load offset=8 (local.get 0))) (br_if $again (local.get 0)))
            (call_indirect (param i32) (result i32) (local.get 0) (i32.const 1)))
        (func (export "g") (result i32) (call $f (i32.div_u (i32.const 1) (memory.size))))))"#;

    fn told(input: &[u8]) -> (u8, Vec<u8>) {
        let mut output = Vec::new();
        let exit = answer(input, &mut output);
        let rest = output.strip_prefix(GREETING).expect("it greets first");
        (exit, rest.to_vec())
    }

    #[test]
    fn both_ways_to_compile_give_the_same_code() {
        let component = wat::parse_str(COMPONENT).unwrap();
        let (exit, code) = told(&component);
        assert_eq!(exit, 0);
        let host = engine::start(&HostOptions::default()).unwrap();
        let here = Component::from_binary(&host, &component).unwrap();
        assert!(here.serialize().unwrap() == code, "the code differs");
    }

    #[test]
    fn both_engines_have_the_same_settings() {
        let hash = |engine: &Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        let host = engine::start(&HostOptions::default()).unwrap();
        assert_eq!(hash(&Engine::new(&engine::compiling()).unwrap()), hash(&host));
    }

    #[test]
    fn an_invalid_component_is_refused_in_the_same_words() {
        let mut component = wat::parse_str(COMPONENT).unwrap();
        component.truncate(component.len() - 3);
        let (exit, why) = told(&component);
        assert_eq!(i32::from(exit), INVALID);
        let host = engine::start(&HostOptions::default()).unwrap();
        let here = Component::from_binary(&host, &component).err().unwrap();
        assert_eq!(String::from_utf8(why).unwrap(), format!("{here:#}"));
    }

    #[test]
    fn only_its_own_command_line_is_answered() {
        let of = |line: &str| asked(line.split(' ').map(String::from));
        let known = of("cloudwit compile-component 7 1000 60").unwrap();
        assert_eq!((known.parent, known.memory_bytes, known.cpu_seconds), (7, 1000, 60));
        for line in [
            "cloudwit",
            "cloudwit --v=2 a b c",
            "cloudwit compile-component",
            "cloudwit compile-component 7 1000 60 x",
            "cloudwit compile-component 7 1000 soon",
        ] {
            assert!(of(line).is_none(), "{line}");
        }
    }
}
