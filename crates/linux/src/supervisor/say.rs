//! What the supervisor says: lines to its operator, and news to who started it.

use std::io::Write;

/// For who started the supervisor, such as a service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Every server runs, and interfaces have their addresses, or have waited for them; said once.
    Ready,
    /// The supervisor is at its work; said again and again.
    Alive,
}

/// Prints a line to standard error. Nobody may be there any more to read it (a journal that was restarted), which is no reason
/// to end, as it would be for `eprintln!`.
macro_rules! say {
    ($($line:tt)*) => {
        $crate::supervisor::say::print(&format!("{}\n", format_args!($($line)*)))
    };
}
pub(crate) use say;

/// Prints in one piece: each is a system call.
pub fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
