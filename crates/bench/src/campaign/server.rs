//! The campaign's program on the stack: sends, takes or returns what each connection asks for by its first byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::content::{self, CHUNK};
use crate::progress::Progress;

pub const PORT: u16 = 7400;
/// What a connection's first byte asks for.
pub const SEND: u8 = b'd';
/// Each of these is counted in a file of its own.
pub const TAKE: [u8; 2] = *b"uv";
pub const RETURN: u8 = b'e';
/// Between two chunks, so that bulk data leave the others something of a machine of few cores.
pub const PAUSE: Duration = Duration::from_micros(200);

/// The file that counts what was taken by the `n`th of [`TAKE`].
pub fn taken(n: usize) -> String {
    format!("taken-{n}")
}

/// Bytes that were taken, and those of all that were others than were sent.
struct Taken {
    bytes: [Progress; TAKE.len()],
    damaged: Progress,
}

/// Serves until it is killed. The counts lie in files of `folder`.
pub fn run(address: &str, folder: &Path) -> Result<()> {
    let taken = Arc::new(Taken {
        bytes: [Progress::open(&folder.join(taken(0)))?, Progress::open(&folder.join(taken(1)))?],
        damaged: Progress::open(&folder.join("damaged"))?,
    });
    serve(address, &taken).context("campaign")
}

fn serve(address: &str, taken: &Arc<Taken>) -> std::io::Result<()> {
    let listener = TcpListener::bind((address, PORT))?;
    let datagrams = UdpSocket::bind((address, PORT))?;
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            if let Ok((n, from)) = datagrams.recv_from(&mut buffer) {
                let _ = datagrams.send_to(&buffer[..n], from);
            }
        }
    });
    println!("listening");
    std::io::stdout().flush()?;
    loop {
        // One that ended before it was accepted is no reason to end.
        let Ok((stream, _)) = listener.accept() else { continue };
        let taken = taken.clone();
        std::thread::spawn(move || drop(one(stream, &taken)));
    }
}

fn one(mut stream: TcpStream, taken: &Taken) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut what = [0];
    stream.read_exact(&mut what)?;
    let mut buffer = [0; CHUNK];
    let mut place = 0;
    loop {
        match (what[0], TAKE.iter().position(|take| *take == what[0])) {
            (SEND, _) => {
                content::fill(&mut buffer, place);
                stream.write_all(&buffer)?;
                place += CHUNK as u64;
                std::thread::sleep(PAUSE);
            }
            (_, Some(n_taken)) => {
                let n = stream.read(&mut buffer)?;
                if n == 0 {
                    return Ok(());
                }
                let (damaged, came) = content::follow(&buffer[..n], place);
                taken.damaged.add(damaged);
                taken.bytes[n_taken].add(n as u64);
                place += came;
            }
            _ => {
                let n = stream.read(&mut buffer)?;
                if n == 0 {
                    return Ok(());
                }
                stream.write_all(&buffer[..n])?;
            }
        }
    }
}
