//! The wasmtime engine of the process, and its epoch ticker.
//!
//! Memory, tables and stacks of instances come from a pool of fixed size, so that hostile or many guests cannot make
//! the process grow without bound. A ticker thread of its own moves the epoch, at which running guests are checked.

use std::thread;
use std::time::Duration;

use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use crate::{HostError, HostOptions};

/// How often a running guest gives way to others and its CPU time is checked.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Deepest stack of a guest. Recursion beyond it traps.
const WASM_STACK: usize = 512 << 10;

/// Stack on which a guest and the host functions it calls run.
const ASYNC_STACK: usize = 2 << 20;

/// Core instances a component may consist of: its own module and the small ones around it.
const CORE_INSTANCES: u32 = 20;

/// Linear memories and tables a component may have. Rust components have one of each; composed ones have more.
const MEMORIES: u32 = 2;
const TABLES: u32 = 4;

/// Largest table of a guest, in elements; about one is used for each function whose address is taken.
pub(crate) const TABLE_ELEMENTS: usize = 20_000;

/// Builds the engine and starts its ticker.
pub(crate) fn start(options: &HostOptions) -> Result<Engine, HostError> {
    let engine = Engine::new(&config(options)).map_err(|error| HostError::Engine(format!("{error:#}")))?;
    start_ticker(&engine).map_err(|error| HostError::Engine(format!("no thread for the epoch ticker: {error}")))?;
    Ok(engine)
}

fn config(options: &HostOptions) -> Config {
    let mut config = compiling();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    config
}

/// All that compiled code depends on, for the process that compiles; it reserves no room for instances.
pub(crate) fn compiling() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // WASI 0.3 is another contract version; having it compiled in makes every call of 0.2 guests slower.
        .concurrency_support(false)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .cranelift_opt_level(OptLevel::Speed);
    config
}

fn pool(options: &HostOptions) -> PoolingAllocationConfig {
    let instances = options.pool_size;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(CORE_INSTANCES))
        .total_memories(instances.saturating_mul(MEMORIES))
        .total_tables(instances.saturating_mul(TABLES))
        .total_stacks(instances)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(options.max_memory_bytes);
    pool
}

/// Moves the epoch for as long as the engine lives. A thread of the operating system, since a guest that spins on all
/// of tokio's workers must not be able to stop it.
fn start_ticker(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new().name("epoch-ticker".into()).spawn(move || {
        loop {
            thread::sleep(TICK);
            let Some(engine) = engine.upgrade() else { break };
            engine.increment_epoch();
        }
    })?;
    Ok(())
}
