#[derive(clap::Args)]
pub struct ReconfigureArguments {}
pub fn run(_: &ReconfigureArguments) -> Result<(), String> {
    Err("later".into())
}
