use super::*;
use crate::batch::Seat;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::servers::Server;
use crate::calibration::Calibration;
use crate::hardware::Clock;

fn newtos() -> Profile {
    profile(&Calibration::e5520().unwrap(), "newtos", Ablation::default()).unwrap()
}

fn dedicated(tcp: u64, others: u64) -> Setting {
    let seat = |core, duty| Seat { core, thread: 0, clock: Clock { khz: 1_600_000, duty } };
    Setting::of([seat(0, 8), seat(1, tcp), seat(2, others), seat(3, others)])
}

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    let (profile, setting) = (newtos(), dedicated(2, 2));
    let one = run(&profile, &setting, 1, Span::default());
    assert_eq!(one, run(&profile, &setting, 1, Span::default()));
    assert_ne!(one, run(&profile, &setting, 2, Span::default()));
}

#[test]
fn turns_of_real_servers_cost_what_waits_for_them() {
    let outcome = run(&newtos(), &dedicated(1, 8), 1, Span::default());
    assert_eq!(outcome.busy_ppm[Server::Tcp as usize], 1_000_000, "tcp is the bottleneck at an eighth");
    assert!(outcome.busy_ppm[Server::Driver as usize] < 300_000);
    let more = run(&newtos(), &dedicated(2, 8), 1, Span::default());
    let ratio = more.kbps as f64 / outcome.kbps as f64;
    assert!((1.7..2.3).contains(&ratio), "{ratio}");
    let mut dear = newtos();
    dear.tcp.segment.cycles *= 20;
    assert!(
        run(&dear, &dedicated(1, 8), 1, Span::default()).kbps * 10 < outcome.kbps * 9,
        "segments that tcp sends are charged"
    );
    assert!((5_000..66_000).contains(&outcome.bytes_per_segment), "{outcome:?}");
}
