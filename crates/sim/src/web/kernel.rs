//! A monolithic kernel: frames are handled where the device interrupts, and calls on the program's core, segments included.

use super::profile::Web;
use super::turn::{Control, Message, State, Target, Turn, receive, send_touched};
use crate::batch::servers::Server;
use crate::hardware::Work;

/// One message, on the core that is named after the driver, or on the program's.
pub(super) fn handle(
    web: &Web,
    state: &mut State,
    call: Work,
    (server, stream, message): (Server, usize, Message),
    turn: &mut Turn,
) {
    match (server, message) {
        (Server::Driver, Message::Frame(frame)) => {
            turn.work += web.stack.driver.acknowledgement + web.stack.ip.acknowledgement;
            let (control, notice) = receive(web, state, stream, frame, turn);
            if let Some(control) = control {
                transmit(web, stream, Message::Control(control), turn);
            }
            if let Some(notice) = notice {
                turn.out.push((Target::Server(Server::Front), (stream, Message::Notice(notice))));
            }
        }
        (Server::Driver, Message::Piece(wait)) => {
            state.streams.lose_patience(stream, wait);
            turn.touch(stream);
        }
        (Server::Front, Message::Notice(notice)) => {
            let deed = state.program.hear(web, &mut state.streams, stream, notice);
            // It asks for events, and handles them.
            turn.work += deed.work + call + call;
            turn.copying += deed.copying;
            if deed.written > 0 {
                turn.work += web.stack.write;
                state.streams.see(stream);
                turn.touch(stream);
            }
            if deed.closes {
                turn.work += web.handshake;
                transmit(web, stream, Message::Control(Control::Fin), turn);
            }
        }
        _ => {}
    }
    send_touched(web, state, turn, |turn, stream, bytes| {
        transmit(web, stream, Message::Segment(bytes), turn);
    });
}

/// Through the whole stack, on this core.
fn transmit(web: &Web, stream: usize, message: Message, turn: &mut Turn) {
    let stack = &web.stack;
    turn.work += stack.tcp.segment + stack.ip.segment + stack.driver.segment + stack.driver.sent;
    turn.out.push((Target::Wire, (stream, message)));
}
