use super::*;

#[test]
fn three_that_poll_on_two_cpus_take_two() {
    let load = ComponentLoad {
        busy: Share(0.1),
        polling: Share(0.9),
        cpu_share: Share(2.0 / 3.0),
        ..ComponentLoad::default()
    };
    let time = Time::of(&load);
    assert!((3.0 * (time.busy + time.polling + time.waiting) - 2.0).abs() < 1e-9);
    assert!((time.ready.0 - 1.0 / 3.0).abs() < 1e-9);
    // The kernel's account is coarse: it must not reduce or raise the share of a component that had the CPU.
    let load = ComponentLoad {
        busy: Share(0.1),
        sleeping: Share(0.9),
        cpu_share: Share(0.11),
        ..ComponentLoad::default()
    };
    assert_eq!((Time::of(&load).busy, Time::of(&load).ready), (Share(0.1), Share::NONE));
}
