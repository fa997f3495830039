use super::*;
use eft_base::time::nanos;
use eft_channel::account::{Hints, Phase};
use eft_machine::CpuId;
use eft_messages::Role;

fn view(peer: ComponentId, generation: u32) -> MemberView {
    MemberView {
        peer,
        name: peer.to_string(),
        generation,
        pid: Some(std::process::id()),
        running: true,
        cpu: Some(CpuId(0)),
        dedicated: true,
        alone: true,
        moving: false,
    }
}

fn names(peer: ComponentId) -> &'static [&'static str] {
    match peer.role {
        Role::Tcp => &["connections_open", "sent_bytes", "pure_acks_sent"],
        Role::Ip => &["arp_in", "arp_out", "bytes_in"],
        _ => &[],
    }
}

fn sensor() -> (StackSensor, Status, Status) {
    let mut sensor = StackSensor::new(Tree::live(), names, &"0".parse().unwrap());
    let (tcp, ip) = (Status::heap(), Status::heap());
    sensor.update(view(ComponentId::TCP, 1), tcp.read_only());
    sensor.update(MemberView { pid: None, ..view(ComponentId::IP, 1) }, ip.read_only());
    (sensor, tcp, ip)
}

#[test]
fn a_sample_says_what_the_pages_say() {
    let (mut sensor, tcp, ip) = sensor();
    let start = clock::now();
    tcp.account().open(start);
    tcp.add(FRAME_COUNTERS.len() + 1, 5000);
    tcp.add(FRAME_COUNTERS.len() + 2, 7);
    tcp.set(FRAME_COUNTERS.len(), 3);
    ip.add(FRAME_COUNTERS.len(), 1);
    ip.add(FRAME_COUNTERS.len() + 1, 1);
    let mut queue = tcp.account().queue(ComponentId::IP.code(), 64);
    sensor.sample(start);
    tcp.account().enter(Phase::Sleeping, Instant(start.0 + 1000));
    tcp.account().batch(&mut queue, 40, 2);
    tcp.account().hint(Hints { receiver_behind: true, starved: false });
    tcp.account().hint(Hints::default());
    let sample = sensor.sample(Instant(start.0 + 3000));
    let [t, i] = &sample.components[..] else { panic!("{sample:?}") };
    assert_eq!((nanos(t.busy), nanos(t.sleeping), t.hint), (1000, 2000, Hint::ReceiverBehind));
    assert_eq!((t.traffic.sent_bytes, t.traffic.sent_empty_segments), (5000, 7));
    assert_eq!((t.traffic.connections_open, i.traffic.arp_packets), (3, 2));
    let q = &t.queues[0];
    assert_eq!((q.from.as_str(), q.capacity, q.overloads, q.low), ("ip", 64, 1, 2));
    assert!((40..48).contains(&q.high), "{}", q.high);
    assert!(t.cpu_time > Duration::ZERO && sample.cpus.iter().any(|c| c.online && c.managed));
    let after = sensor.sample(Instant(start.0 + 4000));
    assert_eq!(after.components[0].hint, Hint::None);
    assert_eq!((after.components[0].queues[0].high, nanos(after.components[0].sleeping)), (0, 3000));
}

#[test]
fn of_a_process_that_two_share_each_has_what_its_own_account_says() {
    let (mut sensor, tcp, ip) = sensor();
    sensor.update(view(ComponentId::IP, 1), ip.read_only());
    let start = clock::now();
    for (page, busy) in [(&tcp, 3000), (&ip, 1000)] {
        page.account().open(start);
        page.account().enter(Phase::Sleeping, Instant(start.0 + busy));
    }
    let sample = sensor.sample(Instant(start.0 + 9000));
    assert_eq!([0, 1].map(|i| nanos(sample.components[i].cpu_time)), [3000, 1000]);
}

#[test]
fn cpu_time_of_the_dead_is_kept_and_a_silent_page_keeps_its_last_word() {
    let (mut sensor, tcp, _) = sensor();
    let start = clock::now();
    tcp.account().open(start);
    tcp.account().enter(Phase::Busy, Instant(start.0 + 500));
    let before = sensor.sample(Instant(start.0 + 500)).components[0].clone();
    tcp.segment().write(1024, &[0xff; 64]).unwrap();
    sensor.update(MemberView { pid: None, running: false, ..view(ComponentId::TCP, 2) }, tcp.read_only());
    let dead = sensor.sample(Instant(start.0 + 900)).components[0].clone();
    assert_eq!((dead.busy, dead.cpu_time, dead.running), (before.busy, before.cpu_time, false));
}
