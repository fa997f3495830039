use super::*;
use eft_machine::KiloHertz;
use eft_machine::{CoreClass, Cpu, Frequency};
use eft_vcpu::survey::survey;

/// Two P cores with two threads each, and two E cores.
fn machine() -> Machine {
    let cpu = |number: u32| {
        let (class, khz) =
            if number < 4 { (CoreClass::Big, 5_000_000) } else { (CoreClass::Little, 4_000_000) };
        let siblings = if number < 4 {
            format!("{}-{}", number / 2 * 2, number / 2 * 2 + 1)
        } else {
            number.to_string()
        };
        Cpu {
            cpu: CpuId(number),
            online: true,
            class,
            siblings: siblings.parse().unwrap(),
            frequency: Some(Frequency { max: Some(KiloHertz(khz)), ..Frequency::default() }),
            ..Cpu::default()
        }
    };
    Machine { cpus: (0..6).map(cpu).collect(), ..Machine::of_equals(6) }
}

fn stat(busy: [u64; 6], all: u64) -> String {
    let line = |(cpu, busy): (usize, &u64)| format!("cpu{cpu} {busy} 0 0 {} 0 0 0 0 0 0\n", all - busy);
    "cpu  1 2 3 4 5 6 7 8 9 10\n".to_string()
        + &busy.iter().enumerate().map(line).collect::<String>()
        + "intr 1\n"
}

#[test]
fn a_class_has_busy_siblings_while_its_cores_run_two_threads() {
    let machine = machine();
    let (host, sets) = survey(&machine.cpus, &machine.online).unwrap();
    let mut siblings = Siblings::new(&host, &sets, &machine);
    assert_eq!(siblings.cores.len(), 2, "the second threads' group has no cores of its own");
    let mut after = |busy: [u64; 6]| {
        siblings.last.clear();
        siblings.add_stat(&stat([0; 6], 0));
        siblings.add_stat(&stat(busy, 200));
        (siblings.is_busy(0), siblings.is_busy(1))
    };
    assert_eq!(after([200, 0, 200, 0, 200, 200]), (false, false), "one thread a core");
    assert_eq!(after([100, 100, 100, 100, 0, 0]), (false, false), "one after the other");
    assert_eq!(after([200, 200, 200, 190, 200, 200]), (true, false), "side by side");
    assert_eq!(after([200, 200, 200, 0, 0, 0]), (true, false), "two of three threads do");
}

#[test]
fn nonsense_and_absent_cpus_are_no_busy_siblings() {
    let machine = machine();
    let (host, sets) = survey(&machine.cpus, &machine.online).unwrap();
    let mut siblings = Siblings::new(&host, &sets, &machine);
    for text in ["", "cpu0 1", "cpu0 9 9 9 9 9 9 9 9", "cpu9 1 1 1 1 1 1 1 1"] {
        siblings.add_stat(text);
        assert!(!siblings.is_busy(0) && !siblings.is_busy(200));
    }
    // Without hardware threads nothing is read.
    let plain = Machine::of_equals(2);
    let (host, sets) = survey(&plain.cpus, &plain.online).unwrap();
    let mut none = Siblings::new(&host, &sets, &plain);
    none.sample(&Tree::at("/nowhere"));
    assert!(none.cores.is_empty() && none.last.is_empty());
}
