use super::*;
use crate::observation::ComponentLoad;

const PERIOD: Duration = Duration::from_millis(10);
const S: Duration = Duration::from_secs(1);

fn seen(at: Instant, tcp: ComponentLoad, cpus: Vec<CpuLoad>) -> Observation {
    let components = alloc::vec![tcp];
    Observation { at, period: PERIOD, components, cpus, ..Observation::default() }
}

/// Feeds samples for `length`; `busy` says how busy CPU 0 is at a sample, of which tcp takes `own`.
fn feed(
    them: &mut Applications,
    from: Instant,
    length: Duration,
    own: f64,
    busy: impl Fn(u32) -> f64,
) -> Instant {
    for step in 1..=length.div_duration_f64(PERIOD) as u32 {
        let cpu = |cpu: CpuId, busy: f64| CpuLoad {
            cpu,
            online: true,
            busy: Share(busy),
            accounted: PERIOD,
            ..CpuLoad::default()
        };
        let tcp = ComponentLoad {
            name: "tcp".into(),
            running: true,
            cpu: Some(CpuId(0)),
            cpu_share: Share(own),
            ..ComponentLoad::default()
        };
        let cpus = alloc::vec![cpu(CpuId(0), busy(step)), cpu(CpuId(1), 0.05)];
        them.note(&seen(from + step * PERIOD, tcp, cpus));
    }
    from + length
}

#[test]
fn what_the_stack_takes_is_not_somebody_elses() {
    let mut them = Applications::default();
    let now = feed(&mut them, Instant::ZERO, 5 * S, 0.85, |_| 0.95);
    assert!(them.cpus().is_empty(), "{}", them.cpus());
    feed(&mut them, now, 5 * S, 0.35, |_| 0.95);
    assert_eq!(them.cpus().to_string(), "0");
}

#[test]
fn an_account_that_is_read_at_every_tenth_sample_says_the_same_at_all_of_them() {
    // Seen live: the others' share alternated between 0.6 and nothing ten times a second.
    let mut them = Applications::default();
    for step in 1..200 {
        let accounted = if step % 10 == 0 { 10 * PERIOD } else { Duration::ZERO };
        let busy = if accounted > Duration::ZERO { 0.95 } else { 0.0 };
        let tcp = ComponentLoad {
            name: "tcp".into(),
            cpu: Some(CpuId(0)),
            cpu_share: Share(0.4),
            ..ComponentLoad::default()
        };
        let cpu = CpuLoad { cpu: CpuId(0), online: true, busy: Share(busy), accounted, ..CpuLoad::default() };
        them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu]));
        let share = them.share(CpuId(0));
        assert!(step < 10 || !share.differs(Share(0.55), Share(0.01)), "{share} at sample {step}");
    }
}

#[test]
fn what_may_be_the_stacks_own_is_taken_off_every_cpu() {
    let mut them = Applications::default();
    for step in 1..500 {
        let cpu = |cpu: CpuId| CpuLoad {
            cpu,
            busy: Share(0.4),
            accounted: PERIOD,
            online: true,
            ..CpuLoad::default()
        };
        let tcp = ComponentLoad { name: "tcp".into(), cpu_share: Share(0.35), ..ComponentLoad::default() };
        them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu(CpuId(0)), cpu(CpuId(1))]));
    }
    assert!(them.cpus().is_empty(), "{}", them.cpus());
}

#[test]
fn in_above_a_fifth_for_a_second_and_out_below_a_tenth() {
    let mut them = Applications::default();
    let now = feed(&mut them, Instant::ZERO, 3 * S, 0.0, |_| 0.02);
    // A burst of half a second does not count, nor does a load that crosses the threshold with a mean below it.
    let now = feed(&mut them, now, S / 2, 0.0, |_| 0.9);
    let now = feed(&mut them, now, 3 * S, 0.0, |step| if step % 2 == 0 { 0.25 } else { 0.01 });
    assert!(them.cpus().is_empty());
    let now = feed(&mut them, now, 4 * S, 0.0, |_| 0.3);
    assert_eq!(them.cpus().to_string(), "0");
    let now = feed(&mut them, now, 4 * S, 0.0, |_| 0.13);
    assert_eq!(them.cpus().to_string(), "0", "between the marks it stays");
    feed(&mut them, now, 4 * S, 0.0, |_| 0.05);
    assert!(them.cpus().is_empty());
}

#[test]
fn ticks_that_come_late_are_nobodys_load() {
    // The stack takes half of each period; the kernel accounts for it in whole ticks, in every other sample.
    let mut them = Applications::default();
    for step in 1..1000u32 {
        let busy = if step % 2 == 0 { 1.0 } else { 0.0 };
        let cpu = CpuLoad { cpu: CpuId(0), busy: Share(busy), accounted: PERIOD, ..CpuLoad::default() };
        let tcp = ComponentLoad { cpu: Some(CpuId(0)), cpu_share: Share(0.5), ..ComponentLoad::default() };
        them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu]));
        assert!(them.cpus().is_empty(), "sample {step}");
    }
}

#[test]
fn who_goes_to_and_fro_is_followed_ever_more_seldom() {
    let mut patience = Patience::default();
    let (mut held, mut followed) = (0, 0);
    // The applications move to the other package every 7 s, for ten minutes.
    for second in 0..600u32 {
        let now = second / 7 % 2;
        if patience.is_over(Instant::ZERO + second * S, &held, now) {
            (held, followed) = (now, followed + 1);
        }
    }
    assert_eq!(followed, 1);
    let calm = Instant::ZERO + 600 * S + 2 * WAIT_MIN * RESTED;
    assert!(!patience.is_over(calm, &held, 1 - held));
    assert!(patience.is_over(calm + WAIT_MIN, &held, 1 - held));
}
