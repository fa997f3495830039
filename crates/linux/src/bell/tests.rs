use super::*;

#[test]
fn only_an_eventfd_is_a_bell() {
    assert!(is_bell(&create().unwrap()));
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap().into();
    assert!([reader, writer, set, file].iter().all(|fd| !is_bell(fd)));
}
