//! Compiles `proto/pluginregistration.proto`, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/pluginregistration.proto");
    let files = protox::compile(["proto/pluginregistration.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .compile_fds(files)?;
    Ok(())
}
