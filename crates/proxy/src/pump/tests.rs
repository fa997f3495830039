use super::*;
use std::os::fd::OwnedFd;

/// A socket, its program's end, and who is at the other end of the connection.
struct Scene {
    socket: Socket,
    program: Option<OwnedFd>,
    peer: Option<OwnedFd>,
    buffer: Vec<u8>,
}

fn scene(state: State) -> Scene {
    let kind = if state == State::Datagrams { libc::SOCK_SEQPACKET } else { libc::SOCK_STREAM };
    let ((near, program), (far, peer)) = (sys::pair(kind).unwrap(), sys::pair(kind).unwrap());
    let socket = Socket::new(near, far, 1, state);
    Scene { socket, program: Some(program), peer: Some(peer), buffer: vec![0; BUFFER] }
}

impl Scene {
    fn program(&self) -> &OwnedFd {
        self.program.as_ref().unwrap()
    }

    fn peer(&self) -> &OwnedFd {
        self.peer.as_ref().unwrap()
    }

    fn pump(&mut self) -> Next {
        self.socket.hung_up |= sys::ready(&self.socket.near, 0) & libc::POLLHUP != 0;
        pump(&mut self.socket, &mut self.buffer)
    }
}

fn read_all(from: &OwnedFd) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = sys::receive(from, &mut buffer) {
        all.extend(&buffer[..n]);
    }
    all
}

const CONNECTED: State = State::Connected { told: true };

#[test]
fn bytes_pass_both_ways_and_none_is_taken_without_room() {
    let mut scene = scene(CONNECTED);
    let bytes: Vec<u8> = (0..4u32 << 20).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for up in [true, false] {
        let (mut sent, mut got, mut refused) = (0, Vec::new(), 0);
        while got.len() < bytes.len() {
            let (from, to) =
                if up { (scene.program(), scene.peer()) } else { (scene.peer(), scene.program()) };
            match sys::send(from, &bytes[sent..(sent + 50_000).min(bytes.len())]) {
                Ok(n) => sent += n,
                Err(_) => {
                    refused += 1;
                    got.extend(read_all(to));
                }
            }
            if sent == bytes.len() {
                got.extend(read_all(to));
            }
            scene.pump();
        }
        assert!(got == bytes, "up: {up}");
        assert!(refused > 0, "the other side must hold the sender up");
    }
}

#[test]
fn the_end_passes_after_all_bytes() {
    let mut scene = scene(CONNECTED);
    sys::send(scene.program(), b"last words").unwrap();
    scene.program = None;
    assert_eq!(scene.pump(), Next::Close);
    assert_eq!(read_all(scene.peer()), b"last words");
    assert_eq!(sys::receive(scene.peer(), &mut [0]), Ok(0));
}

#[test]
fn each_direction_ends_by_itself() {
    let mut scene = scene(CONNECTED);
    sys::shutdown(scene.program(), libc::SHUT_WR).unwrap();
    assert_eq!(scene.pump(), Next::Rest);
    assert_eq!(sys::receive(scene.peer(), &mut [0]), Ok(0));
    sys::send(scene.peer(), b"answer").unwrap();
    assert_eq!(scene.pump(), Next::Rest);
    assert_eq!(read_all(scene.program()), b"answer");
    sys::shutdown(scene.peer(), libc::SHUT_WR).unwrap();
    scene.pump();
    assert_eq!(sys::receive(scene.program(), &mut [0]), Ok(0));
    assert_eq!(scene.pump(), Next::Close);
}

#[test]
fn a_reset_is_seen_as_one_after_what_came_before() {
    let mut scene = scene(CONNECTED);
    sys::send(scene.peer(), b"before").unwrap();
    // A Unix socket resets its peer if it is closed before it has read all.
    sys::send(&scene.socket.far, b"unread").unwrap();
    assert_eq!(scene.pump(), Next::Rest);
    scene.peer = None;
    assert_eq!(scene.pump(), Next::Reset);
    reset(&scene.socket, scene.program.as_ref()).unwrap();
    let Scene { socket, program, .. } = scene;
    drop(socket);
    let (program, mut buffer) = (program.unwrap(), [0; 9]);
    assert_eq!(sys::receive(&program, &mut buffer), Ok(6));
    assert_eq!(sys::receive(&program, &mut buffer), Err(Errno(libc::ECONNRESET)));
}

#[test]
fn the_program_cannot_write_before_it_is_connected() {
    let mut scene = scene(State::Connecting);
    let program = scene.program.take().unwrap();
    scene.socket.plug(&program);
    assert_eq!(sys::ready(&program, libc::POLLOUT), 0);
    // The other end is there.
    scene.socket.check_attempt();
    assert_eq!(scene.socket.state, State::Connected { told: false });
    assert_eq!(sys::ready(&program, libc::POLLOUT), libc::POLLOUT);
    sys::send(&program, b"first").unwrap();
    scene.pump();
    assert_eq!(read_all(scene.peer()), b"first");
}

#[test]
fn datagrams_keep_their_borders() {
    let mut scene = scene(State::Datagrams);
    for datagram in [&b"one"[..], b"", b"three"] {
        sys::send(scene.program(), datagram).unwrap();
        sys::send(scene.peer(), datagram).unwrap();
    }
    assert_eq!(scene.pump(), Next::Rest);
    for want in [3, 0, 5] {
        assert_eq!(sys::receive(scene.peer(), &mut [0; 9]), Ok(want));
        assert_eq!(sys::receive(scene.program(), &mut [0; 9]), Ok(want));
    }
    sys::send(scene.program(), b"last").unwrap();
    scene.program = None;
    assert_eq!(scene.pump(), Next::Close);
    assert_eq!(sys::receive(scene.peer(), &mut [0; 9]), Ok(4));
}

#[test]
fn an_urgent_byte_passes_as_one_both_ways() {
    for up in [true, false] {
        let mut scene = scene(CONNECTED);
        if up {
            scene.socket.expect_urgent();
        }
        let ends = |scene: &Scene| {
            let both = (scene.program().try_clone().unwrap(), scene.peer().try_clone().unwrap());
            if up { both } else { (both.1, both.0) }
        };
        let (from, to) = ends(&scene);
        sys::send(&from, b"ab").unwrap();
        sys::send_urgent(&from, b'!').unwrap();
        sys::send(&from, b"cd").unwrap();
        scene.pump();
        let mut buffer = [0; 10];
        assert_eq!(sys::receive(&to, &mut buffer), Ok(2));
        assert!(sys::at_mark(&to) && sys::ready(&to, libc::POLLPRI) & libc::POLLPRI != 0);
        // SAFETY: the buffer is ours.
        let n = unsafe { libc::recv(to.as_raw_fd(), buffer.as_mut_ptr().cast(), 10, libc::MSG_OOB) };
        assert_eq!((n, buffer[0]), (1, b'!'));
        assert_eq!(read_all(&to), b"cd");
    }
}
