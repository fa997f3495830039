//! The table of functions that packetdrill has filled in: one for each system call of its scripts, and the wire.
//!
//! Its order is packetdrill's interface for shared objects. Those that C declares with variable arguments have one argument
//! more here: on x86-64 and AArch64 Linux it is passed as any other, and none of theirs is longer than a register.

use crate::Netdev;
use crate::calls::{self, Calls};
use core::ffi::{c_int, c_longlong, c_uint, c_ulong, c_void};
use libc::{epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, sockaddr, socklen_t, timeval, timezone};

type Data = *mut c_void;

#[repr(C)]
pub struct Interface {
    pub userdata: Data,
    pub free: unsafe extern "C" fn(Data),
    pub socket: unsafe extern "C" fn(Data, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub listen: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(Data, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    pub connect: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub read: unsafe extern "C" fn(Data, c_int, *mut c_void, usize) -> isize,
    pub readv: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> isize,
    pub recv: unsafe extern "C" fn(Data, c_int, *mut c_void, usize, c_int) -> isize,
    pub recvfrom:
        unsafe extern "C" fn(Data, c_int, *mut c_void, usize, c_int, *mut sockaddr, *mut socklen_t) -> isize,
    pub recvmsg: unsafe extern "C" fn(Data, c_int, *mut msghdr, c_int) -> isize,
    pub write: unsafe extern "C" fn(Data, c_int, *const c_void, usize) -> isize,
    pub writev: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> isize,
    pub send: unsafe extern "C" fn(Data, c_int, *const c_void, usize, c_int) -> isize,
    pub sendto:
        unsafe extern "C" fn(Data, c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> isize,
    pub sendmsg: unsafe extern "C" fn(Data, c_int, *const msghdr, c_int) -> isize,
    pub fcntl: unsafe extern "C" fn(Data, c_int, c_int, usize) -> c_int,
    pub ioctl: unsafe extern "C" fn(Data, c_int, c_ulong, usize) -> c_int,
    pub close: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub shutdown: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub getsockopt: unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt: unsafe extern "C" fn(Data, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: unsafe extern "C" fn(Data, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: unsafe extern "C" fn(Data, *const c_void, usize) -> c_int,
    pub netdev_receive: unsafe extern "C" fn(Data, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    pub usleep: unsafe extern "C" fn(Data, c_uint) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(Data, *mut timeval, *mut timezone) -> c_int,
    pub epoll_create: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(Data, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: unsafe extern "C" fn(Data, *mut c_int) -> c_int,
    pub splice: unsafe extern "C" fn(Data, c_int, *mut loff_t, c_int, *mut loff_t, usize, c_uint) -> isize,
}

/// The table with all in it. The calls are kept, for good.
pub fn filled(calls: Calls, userdata: Data, netdev: Netdev) -> Interface {
    calls::keep(calls);
    Interface {
        userdata,
        free: netdev.free,
        socket: calls::socket,
        bind: calls::bind,
        listen: calls::listen,
        accept: calls::accept,
        connect: calls::connect,
        read: calls::read,
        readv: calls::readv,
        recv: calls::recv,
        recvfrom: calls::recvfrom,
        recvmsg: calls::recvmsg,
        write: calls::write,
        writev: calls::writev,
        send: calls::send,
        sendto: calls::sendto,
        sendmsg: calls::sendmsg,
        fcntl: calls::fcntl,
        ioctl: calls::ioctl,
        close: calls::close,
        shutdown: calls::shutdown,
        getsockopt: calls::getsockopt,
        setsockopt: calls::setsockopt,
        poll: calls::poll,
        netdev_send: netdev.send,
        netdev_receive: netdev.receive,
        usleep: calls::usleep,
        gettimeofday: calls::gettimeofday,
        epoll_create: calls::epoll_create,
        epoll_ctl: calls::epoll_ctl,
        epoll_wait: calls::epoll_wait,
        pipe: calls::pipe,
        splice: calls::splice_of_words,
    }
}
