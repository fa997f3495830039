//! `eft ss`: the sockets of a stack, read from the transports' arenas without disturbing them.

#[derive(clap::Args, Debug)]
pub struct SsArguments {
    #[command(flatten)]
    stack: super::Stack,
    #[arg(long)]
    json: bool,
}

pub fn run(_arguments: &SsArguments) -> Result<(), String> {
    Err("unfinished".into())
}
