//! Runs a program on the tests' fake stack: `cargo run --example fake -- PROGRAM ARGS…`.

#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    let mut args = std::env::args_os().skip(1);
    let Some(program) = args.next() else {
        eprintln!("usage: fake PROGRAM ARGS…");
        std::process::exit(2);
    };
    let fake = support::Fake::start();
    let domain = fake.domain();
    let status = domain.command(program).args(args).status();
    match status {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("fake: {error}");
            std::process::exit(127);
        }
    }
}
