//! A [`Web`] from a calibration file.

use super::profile::{Group, Program, System, Web};
use crate::batch::calibrated::{Ablation, Reader, read};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::{PS_PER_NS, Work};

/// Which stack the web server is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Of the paper.
    Newtos,
    Eft,
    /// Linux of the paper's time.
    Kernel,
}

impl Stack {
    fn tables(self) -> [&'static str; 2] {
        match self {
            Self::Newtos => ["newtos_buffers", "newtos"],
            Self::Eft => ["web_eft", "eft"],
            Self::Kernel => ["web_kernel", "newtos"],
        }
    }
}

/// With so many connections at once; files are of so many bytes.
pub fn web(
    calibration: &Calibration,
    stack: Stack,
    connections: usize,
    file_bytes: u64,
    ablation: Ablation,
) -> Result<Web, CalibrationError> {
    let [system, base] = stack.tables();
    let from = Reader { calibration, system, base };
    let server = Reader { calibration, system: "web_server", base: "web_server" };
    let mut profile = read(&from, ablation)?;
    profile.streams = connections;
    profile.initial_window_bytes = from.system("initial_window_bytes")?.min(profile.window_bytes);
    // Web servers switch it off.
    profile.nagle = false;
    // Servers outside of the stack answer most calls, so nothing is fitted.
    let call = from.system("program_call_cycles")?;
    let calls = |name: &str| server.system(name).map(|count| Work::cycles(call * count));
    let cycles = |name: &str| server.system(name).map(Work::cycles);
    let copies = from.system("file_copies")?;
    let copy_stall_ps =
        if ablation.no_memory_stalls { 0 } else { server.system("copy_stall_ns")? * PS_PER_NS * copies };
    Ok(Web {
        stack: profile,
        system: if stack == Stack::Kernel {
            System::Kernel { call: Work::cycles(call) }
        } else {
            System::Servers
        },
        program: Program {
            accept: cycles("accept_cycles")? + calls("calls_of_connection")?,
            request: cycles("request_cycles")?
                + calls("calls_of_request")?
                + Work::cycles(call * from.system("socket_calls_of_request")?),
            close: cycles("close_cycles")?,
            copy_kib: Work { cycles: server.system("copy_cycles")? * copies, stall_ps: copy_stall_ps },
        },
        handshake: from.message("handshake_cycles")?,
        groups: vec![Group {
            clients: connections,
            requests: server.system("requests")?,
            answer_bytes: file_bytes + server.system("header_bytes")?,
        }],
        client_ps: server.system("client_ns")? * PS_PER_NS,
    })
}
