//! Starts Cloudwit and nothing else.

fn main() -> std::process::ExitCode {
    cloudwit::start()
}
