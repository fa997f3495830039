//! The web server: what it still has to write of its answers.

use super::profile::Web;
use crate::batch::servers::scaled;
use crate::batch::transport::Streams;
use crate::hardware::Work;

/// What tcp tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    Accepted,
    Request,
    /// There is room in the ring again.
    Room,
    Closed,
}

pub struct Program {
    /// Of each connection's answer, bytes that are not in its ring.
    left: Vec<u64>,
}

/// What it did: its own work, bytes that went into the ring, and whether it closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deed {
    pub work: Work,
    pub copying: Work,
    pub written: u64,
    pub closes: bool,
}

impl Program {
    pub fn new(count: usize) -> Self {
        Self { left: vec![0; count] }
    }

    pub fn hear(&mut self, web: &Web, streams: &mut Streams, stream: usize, notice: Notice) -> Deed {
        let mut deed = Deed::default();
        match notice {
            Notice::Accepted => deed.work += web.program.accept,
            Notice::Closed => {
                deed.work += web.program.close;
                deed.closes = true;
            }
            Notice::Request => {
                deed.work += web.program.request;
                self.left[stream] += web.of_client(stream).answer_bytes;
            }
            Notice::Room => {}
        }
        while self.left[stream] > 0 {
            let bytes = self.left[stream].min(web.stack.write_bytes);
            let put = streams.fill(&web.stack, stream, bytes);
            self.left[stream] -= put;
            deed.written += put;
            if put < bytes {
                break;
            }
        }
        deed.copying = scaled(web.program.copy_kib, deed.written);
        deed.work += deed.copying;
        deed
    }
}
