//! A message's cost to each server, and its effects.

use super::profile::{System, Web};
use super::turn::{Control, Message, Of, State, Target, Turn, receive, send_touched};
use crate::batch::servers::Server;
use crate::hardware::Work;

fn tcp(web: &Web, state: &mut State, stream: usize, message: Message, turn: &mut Turn) {
    match message {
        Message::Frame(frame) => {
            turn.say(Server::Ip, stream, Message::Done);
            let (control, notice) = receive(web, state, stream, frame, turn);
            if let Some(control) = control {
                turn.owed += web.stack.tcp.segment;
                turn.say(Server::Ip, stream, Message::Control(control));
            }
            if let Some(notice) = notice {
                turn.say(Server::Front, stream, Message::Notice(notice));
            }
        }
        Message::Written => {
            turn.work += web.stack.write;
            state.streams.see(stream);
            turn.touch(stream);
        }
        Message::Close => {
            turn.work += web.stack.write + web.handshake;
            turn.owed += web.stack.tcp.segment;
            turn.say(Server::Ip, stream, Message::Control(Control::Fin));
        }
        Message::Piece(wait) => {
            state.streams.lose_patience(stream, wait);
            turn.touch(stream);
        }
        Message::Sent => turn.work += web.stack.tcp.sent,
        Message::Done | Message::Segment(_) | Message::Control(_) | Message::Notice(_) => {}
    }
    if !web.stack.flushes && !matches!(message, Message::Written | Message::Close) {
        flush(web, state, turn);
    }
}

fn flush(web: &Web, state: &mut State, turn: &mut Turn) {
    send_touched(web, state, turn, |turn, stream, bytes| {
        turn.owed += web.stack.tcp.segment;
        turn.say(Server::Ip, stream, Message::Segment(bytes));
    });
}

fn ip(web: &Web, stream: usize, message: Message, turn: &mut Turn) {
    let (costs, to) = match message {
        Message::Done => (Work::default(), Server::Driver),
        Message::Segment(_) | Message::Control(_) => (web.stack.ip.segment, Server::Driver),
        Message::Sent => (web.stack.ip.sent, Server::Tcp),
        _ => (web.stack.ip.acknowledgement, Server::Tcp),
    };
    turn.work += costs;
    turn.say(to, stream, message);
}

fn driver(web: &Web, stream: usize, message: Message, turn: &mut Turn) {
    if message == Message::Done {
        return;
    }
    if let Message::Frame(_) = message {
        turn.work += web.stack.driver.acknowledgement;
        turn.say(Server::Ip, stream, message);
        return;
    }
    // The device takes it at once; cleaning its descriptor up belongs to it.
    turn.work += web.stack.driver.segment + web.stack.driver.sent;
    turn.out.push((Target::Wire, (stream, message)));
    turn.say(Server::Ip, stream, Message::Sent);
}

fn program(web: &Web, state: &mut State, stream: usize, message: Message, turn: &mut Turn) {
    let Message::Notice(notice) = message else { return };
    let deed = state.program.hear(web, &mut state.streams, stream, notice);
    turn.work += deed.work;
    turn.copying += deed.copying;
    if deed.written > 0 {
        turn.say(Server::Tcp, stream, Message::Written);
    }
    if deed.closes {
        turn.say(Server::Tcp, stream, Message::Close);
    }
}

/// A whole batch.
pub fn serve(web: &Web, state: &mut State, server: Server, batch: impl Iterator<Item = Of>, turn: &mut Turn) {
    for (stream, message) in batch {
        match (web.system, server) {
            (System::Kernel { call }, _) => {
                super::kernel::handle(web, state, call, (server, stream, message), turn);
            }
            (_, Server::Front) => program(web, state, stream, message, turn),
            (_, Server::Ip) => ip(web, stream, message, turn),
            (_, Server::Driver) => driver(web, stream, message, turn),
            // The paper has none.
            (_, Server::Filter) => {}
            _ => tcp(web, state, stream, message, turn),
        }
    }
    if web.system == System::Servers {
        flush(web, state, turn);
    }
}
