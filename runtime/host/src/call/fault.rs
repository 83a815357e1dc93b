//! Maps an error inside a call to the kind and message of its `ProviderFault`.

use cloudwit_model::FaultKind;
use wasmtime::{PoolConcurrencyLimitError, Trap};
use wasmtime_wasi::I32Exit;

use crate::call::limiter::Exceeded;
use crate::contract::adapter::CallError;
use crate::limits::Limits;

/// What went wrong, as kind and sentence.
pub(crate) fn explain(error: &CallError, limits: &Limits) -> (FaultKind, String) {
    match error {
        CallError::InvalidResponse(invalid) => (FaultKind::BadAnswer, invalid.0.clone()),
        CallError::NotExported(interface) => (
            FaultKind::NotExported,
            format!("its component does not export `{interface}`"),
        ),
        CallError::Guest(error) => explain_guest(error, limits),
    }
}

fn explain_guest(error: &wasmtime::Error, limits: &Limits) -> (FaultKind, String) {
    if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
        return (FaultKind::Memory, exceeded.to_string());
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return explain_trap(*trap, limits);
    }
    if error.is::<I32Exit>() {
        let text = "it ended its process (`process::exit`); a provider answers with a failure instead";
        return (FaultKind::Trap, text.into());
    }
    if let Some(full) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return (FaultKind::Host, format!("no room for the instance: {full}"));
    }
    let cause = error.root_cause();
    if format!("{cause:?}") == COPY_LIMIT {
        let text = format!(
            "it handed more than {} bytes to the host at once (limits.answerBytes)",
            limits.answer_bytes
        );
        return (FaultKind::BadAnswer, text);
    }
    (FaultKind::Trap, cause.to_string())
}

/// Name of wasmtime's error for an answer that is too large. The type is private there, so it cannot be downcast to; its derived `Debug` is its name,
/// and no text that a guest has a say in. A test below makes wasmtime return it.
const COPY_LIMIT: &str = "HostcallFuelExhausted";

fn explain_trap(trap: Trap, limits: &Limits) -> (FaultKind, String) {
    match trap {
        Trap::Interrupt => {
            let text = format!("it used more than {:?} of CPU time (limits.cpuTime)", limits.cpu_time);
            (FaultKind::Deadline, text)
        }
        Trap::UnreachableCodeReached => (FaultKind::Trap, "it panicked or aborted".into()),
        Trap::StackOverflow => (
            FaultKind::Trap,
            "it used up its stack, most likely by endless recursion".into(),
        ),
        // Rust puts the stack at the start of memory, below which there is nothing.
        Trap::MemoryOutOfBounds => (
            FaultKind::Trap,
            "it reached outside of its memory, for example by endless recursion".into(),
        ),
        other => (FaultKind::Trap, format!("it trapped: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::answer::InvalidResponse;

    /// What wasmtime returns for an answer beyond the limit.
    fn too_large_answer() -> wasmtime::Error {
        const COMPONENT: &str = r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "f") (result i32) (i32.store (i32.const 4) (i32.const 1000)) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func (export "f") (result string) (canon lift (core func $i "f") (memory (core memory $i "memory")))))"#;
        let engine = wasmtime::Engine::default();
        let component = wasmtime::component::Component::new(&engine, wat::parse_str(COMPONENT).unwrap()).unwrap();
        let mut store = wasmtime::Store::new(&engine, ());
        store.set_hostcall_fuel(100);
        let linker = wasmtime::component::Linker::new(&engine);
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let function = instance.get_typed_func::<(), (String,)>(&mut store, "f").unwrap();
        function.call(&mut store, ()).unwrap_err()
    }

    #[test]
    fn answer_beyond_the_limit_is_known_by_its_type() {
        let limits = Limits::default();
        let (kind, text) = explain(&CallError::Guest(too_large_answer()), &limits);
        assert_eq!(kind, FaultKind::BadAnswer, "{text}");
        assert!(text.contains("limits.answerBytes"), "{text}");
        // A text alone, which a guest may have a say in, makes no error another one.
        let text = wasmtime::Error::msg("fuel allocated for hostcalls has been exhausted");
        let (kind, _) = explain(&CallError::Guest(text), &limits);
        assert_eq!(kind, FaultKind::Trap);
    }

    #[test]
    fn every_error_has_its_kind_even_below_context() {
        let limits = Limits::default();
        let guest = |error: wasmtime::Error| CallError::Guest(error.context("error while executing at wasm backtrace"));
        for (error, kind, part) in [
            (
                guest(Trap::Interrupt.into()),
                FaultKind::Deadline,
                "more than 5s of CPU time",
            ),
            (guest(Trap::UnreachableCodeReached.into()), FaultKind::Trap, "panicked"),
            (guest(Trap::StackOverflow.into()), FaultKind::Trap, "recursion"),
            (
                guest(Trap::MemoryOutOfBounds.into()),
                FaultKind::Trap,
                "outside of its memory",
            ),
            (
                guest(Exceeded::Memory { wanted: 2, limit: 1 }.into()),
                FaultKind::Memory,
                "requested 2 bytes",
            ),
            (
                guest(Exceeded::Table { wanted: 1 << 20 }.into()),
                FaultKind::Memory,
                "1048576 elements",
            ),
            (guest(I32Exit(1).into()), FaultKind::Trap, "process::exit"),
            (guest(wasmtime::Error::msg("odd")), FaultKind::Trap, "odd"),
            (
                CallError::InvalidResponse(InvalidResponse("empty id".into())),
                FaultKind::BadAnswer,
                "empty id",
            ),
            (CallError::NotExported("routes"), FaultKind::NotExported, "`routes`"),
        ] {
            let (found, text) = explain(&error, &limits);
            assert_eq!(found, kind, "{text}");
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
}
