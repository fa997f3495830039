//! The commands, one folder or file each: arguments in, text or JSON out.

pub mod capture;
pub mod cpu;
pub mod custodian;
pub mod differential;
pub mod help;
pub mod inject;
pub mod keep;
pub mod kill;
pub mod maddr;
pub mod network;
pub mod packetdrill;
pub mod pf;
pub mod place;
pub mod profile;
pub mod proxy;
pub mod ps;
pub mod replay;
pub mod run;
pub mod sched;
pub mod serve;
pub mod set;
pub mod sim;
pub mod ss;
pub mod stat;
pub mod top;
pub mod up;
pub mod update;
pub mod vm;

pub use eft_text::print_table;

/// The role of a component of this name; several may have the same.
fn role_of(name: &str) -> Option<eft_messages::Role> {
    name.parse::<eft_messages::ComponentId>().ok().map(|id| id.role)
}

/// Which stack is meant.
#[derive(clap::Args, Debug)]
pub struct Stack {
    /// The stack's name
    #[arg(long, default_value = "eft")]
    pub name: String,
}
