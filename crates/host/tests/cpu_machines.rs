//! Machines that are not at hand, as trees of files: what is read from each, and what is written to it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use eft_cores::duty::Phase;
use eft_cores::park::{Delays, ParkBackEnd};
use eft_cores::speed::{BackEnd, Speed};
use eft_host::actuators::clock_modulation::IA32_CLOCK_MODULATION;
use eft_host::actuators::hotplug::HotplugOptions;
use eft_host::actuators::parking::ParkOptions;
use eft_host::actuators::scope::Scope;
use eft_host::actuators::session::{Host, Session};
use eft_host::journal::Journal;
use eft_host::sensors::counters::{Target, core_types};
use eft_host::sensors::{Tree, observe, power};
use eft_machine::{CoreClass, CpuId, CpuSet, KiloHertz, Microseconds, Share, Watts};

struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    /// The part that all share: `count` CPUs, all online, in one package.
    fn new(count: u32, cpuinfo: &str) -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        let all = format!("0-{}", count - 1);
        machine.put("sys/devices/system/cpu/present", &all);
        machine.put("sys/devices/system/cpu/online", &all);
        machine.put("proc/cpuinfo", cpuinfo);
        machine.put("proc/stat", "cpu 0\n");
        for cpu in 0..count {
            machine.put_cpu(CpuId(cpu), "topology/physical_package_id", "0");
            machine.put_cpu(CpuId(cpu), "topology/core_id", &cpu.to_string());
            machine.put_cpu(CpuId(cpu), "topology/thread_siblings_list", &cpu.to_string());
            if cpu > 0 {
                machine.put_cpu(CpuId(cpu), "online", "1");
            }
        }
        machine
    }

    fn put(&self, path: &str, value: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{value}\n")).unwrap();
    }

    fn put_cpu(&self, cpu: CpuId, path: &str, value: &str) {
        self.put(&format!("sys/devices/system/cpu/cpu{cpu}/{path}"), value);
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.dir.path().join(path)).unwrap().trim().to_string()
    }

    fn cpufreq(&self, cpu: CpuId, driver: &str, min: u64, max: u64) {
        for (name, value) in [
            ("cpuinfo_min_freq", min),
            ("cpuinfo_max_freq", max),
            ("scaling_min_freq", min),
            ("scaling_max_freq", max),
        ] {
            self.put_cpu(cpu, &format!("cpufreq/{name}"), &value.to_string());
        }
        self.put_cpu(cpu, "cpufreq/scaling_driver", driver);
        self.put_cpu(cpu, "cpufreq/scaling_governor", "powersave");
        self.put_cpu(cpu, "cpufreq/scaling_cur_freq", &max.to_string());
        self.put_cpu(cpu, "cpufreq/related_cpus", &cpu.to_string());
    }

    fn tree(&self) -> Tree {
        Tree::at(self.dir.path())
    }

    fn host(&self, managed: &str) -> Host {
        let dir = self.dir.path().join("run");
        Host { tree: self.tree(), dir, managed: managed.parse().unwrap(), program: "/bin/false".into() }
    }

    fn session(&self, managed: &str) -> Session {
        Session::open(&self.host(managed)).unwrap()
    }

    fn classes(&self) -> Vec<CoreClass> {
        observe(&self.tree()).unwrap().cpus.iter().map(|cpu| cpu.class).collect()
    }
}

fn intel_hybrid() -> Machine {
    let machine = Machine::new(4, "model name\t: 12th Gen\nvendor_id : GenuineIntel\nflags\t\t: fpu acpi");
    for cpu in 0..4 {
        machine.cpufreq(CpuId(cpu), "intel_pstate", 800_000, if cpu < 2 { 5_000_000 } else { 3_800_000 });
    }
    machine.put_cpu(CpuId(0), "topology/core_cpus_list", "0-1");
    machine.put_cpu(CpuId(1), "topology/core_cpus_list", "0-1");
    for (name, cpus, kind) in [("cpu_core", "0-1", "4"), ("cpu_atom", "2-3", "10")] {
        machine.put(&format!("sys/bus/event_source/devices/{name}/cpus"), cpus);
        machine.put(&format!("sys/bus/event_source/devices/{name}/type"), kind);
    }
    machine.put("sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    machine.put_cpu(CpuId(0), "thermal_throttle/core_throttle_count", "7");
    machine.put_cpu(CpuId(0), "cpuidle/state0/name", "C1E");
    machine.put_cpu(CpuId(0), "cpuidle/state0/latency", "2");
    machine.put_cpu(CpuId(0), "cpuidle/state0/residency", "4");
    for cpu in 0..4 {
        machine.put(&format!("dev/cpu/{cpu}/msr"), "");
        fs::write(machine.dir.path().join(format!("dev/cpu/{cpu}/msr")), vec![0u8; 0x400]).unwrap();
    }
    machine
}

#[test]
fn intel_hybrid_is_seen() {
    let machine = intel_hybrid();
    assert_eq!(machine.classes(), [CoreClass::Big, CoreClass::Big, CoreClass::Little, CoreClass::Little]);
    let seen = observe(&machine.tree()).unwrap();
    assert_eq!(seen.cpus[0].siblings.to_string(), "0-1");
    assert_eq!(seen.cpus[0].throttle.as_ref().unwrap().core_events, 7);
    assert_eq!(seen.cpus[0].idle_states[0].target_residency, Some(Microseconds(4)));
    let frequency = seen.cpus[2].frequency.as_ref().unwrap();
    assert_eq!(
        (frequency.boost, frequency.max, frequency.driver.as_deref()),
        (Some(true), Some(KiloHertz(3_800_000)), Some("intel_pstate"))
    );
    // One event set per core type for a thread, the CPU's own for a CPU.
    assert_eq!(core_types(&machine.tree(), Target::Thread(1)).len(), 2);
    assert_eq!(core_types(&machine.tree(), Target::Cpu(CpuId(3))), [("cpu_atom".to_string(), Some(10))]);
}

#[test]
fn speeds_go_to_cpufreq_then_to_the_msr_and_come_back() {
    let machine = intel_hybrid();
    let mut session = machine.session("1-3");
    let half =
        session.set_speeds(&[(CpuId(2), Speed::Share(Share(0.5)))], None, Phase::InPhase, None).unwrap();
    assert_eq!(half[0].1.back_end, BackEnd::Cpufreq);
    assert_eq!(machine.get("sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"), "1900000");
    let slow =
        session.set_speeds(&[(CpuId(1), Speed::Share(Share(0.125)))], None, Phase::InPhase, None).unwrap();
    assert_eq!((slow[0].1.back_end, slow[0].1.eighths), (BackEnd::Msr, Some(1)));
    let register = |cpu: CpuId| {
        let bytes = fs::read(machine.dir.path().join(format!("dev/cpu/{cpu}/msr"))).unwrap();
        bytes[IA32_CLOCK_MODULATION as usize]
    };
    assert_eq!(register(CpuId(1)), 0b1_0010);
    // Set again, from another process: undoing restores the first values.
    session
        .set_speeds(
            &[(CpuId(2), Speed::Clock(KiloHertz(1_200_000)))],
            Some(BackEnd::Cpufreq),
            Phase::InPhase,
            None,
        )
        .unwrap();
    drop(session);
    machine.session("").restore().unwrap();
    assert_eq!(register(CpuId(1)), 0);
    for (name, value) in [("scaling_min_freq", "800000"), ("scaling_max_freq", "3800000")] {
        assert_eq!(machine.get(&format!("sys/devices/system/cpu/cpu2/cpufreq/{name}")), value);
    }
}

#[test]
fn what_somebody_else_set_meanwhile_stays() {
    let machine = intel_hybrid();
    machine
        .session("2")
        .set_speeds(&[(CpuId(2), Speed::Share(Share(0.5)))], None, Phase::InPhase, None)
        .unwrap();
    machine.put_cpu(CpuId(2), "cpufreq/scaling_max_freq", "2500000");
    let (_, notes) = machine.session("").restore().unwrap();
    assert_eq!(machine.get("sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"), "2500000");
    assert!(notes.iter().any(|note| note.contains("another program")), "{notes:?}");
}

#[test]
fn amd_with_preferred_cores_is_not_asymmetric() {
    let machine = Machine::new(2, "model name\t: Ryzen\nvendor_id : AuthenticAMD\nflags\t\t: fpu acpi");
    machine.cpufreq(CpuId(0), "amd-pstate-epp", 400_000, 5_750_000);
    machine.cpufreq(CpuId(1), "amd-pstate-epp", 400_000, 5_500_000);
    machine.put("sys/devices/system/cpu/cpufreq/boost", "1");
    machine.put_cpu(CpuId(0), "acpi_cppc/nominal_freq", "4500");
    assert_eq!(machine.classes(), [CoreClass::Equal; 2]);
    let seen = observe(&machine.tree()).unwrap();
    assert_eq!(seen.cpus[0].frequency.as_ref().unwrap().base, Some(KiloHertz(4_500_000)));
    // No clock-modulation MSR on AMD, though the flag is there.
    let capabilities = machine.session("1").capabilities(CpuId(1));
    assert!(!capabilities.clock_modulation && capabilities.cpufreq.is_some());
    machine.put("sys/class/powercap/intel-rapl:0/name", "package-0");
    machine.put("sys/class/powercap/intel-rapl:0/energy_uj", "999000");
    machine.put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000");
    let before = power::read(&machine.tree()).unwrap();
    machine.put("sys/class/powercap/intel-rapl:0/energy_uj", "1000");
    let watts = power::between(&before, &power::read(&machine.tree()).unwrap(), Duration::from_millis(1));
    assert!((watts[0].power.0 - 2.0).abs() < 1e-9, "wrapped once: {watts:?}");
    // The burner of an emulated speed is charged to its own package, and to no more than there is.
    let mut watts = watts;
    power::charge_burners(&mut watts, &[(Some(0), Watts(0.5)), (Some(1), Watts(7.0))]);
    assert_eq!((watts[0].burner_modelled, watts[0].net()), (Watts(0.5), Watts(1.5)));
    power::charge_burners(&mut watts, &[(None, Watts(9.0))]);
    assert_eq!(watts[0].net(), Watts::ZERO);
}

#[test]
fn arm_big_little_is_seen_and_parked_by_a_v2_partition() {
    let machine = Machine::new(4, "processor : 0\nHardware\t: Exynos");
    for cpu in 0..4 {
        machine.put_cpu(CpuId(cpu), "cpu_capacity", if cpu < 2 { "382" } else { "1024" });
        machine.put_cpu(CpuId(cpu), "cpufreq/scaling_available_frequencies", "600000 1000000 1600000");
        machine.cpufreq(CpuId(cpu), "cpufreq-dt", 600_000, 1_600_000);
        machine.put_cpu(CpuId(cpu), "topology/physical_package_id", "-1");
    }
    machine.put("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0");
    machine.put("sys/fs/cgroup/cgroup.controllers", "cpu cpuset");
    machine.put("sys/fs/cgroup/cgroup.subtree_control", "cpu");
    assert_eq!(machine.classes(), [CoreClass::Little, CoreClass::Little, CoreClass::Big, CoreClass::Big]);
    let seen = observe(&machine.tree()).unwrap();
    assert_eq!((seen.cpus[0].package, seen.cpus[0].p_states.len()), (None, 3));
    let mut session = machine.session("2-3");
    let parked =
        session.park(&"2-3".parse().unwrap(), &options("2-3", None), Delays::default(), false).unwrap();
    assert_eq!(parked.set_up.unwrap().back_end, "v2");
    assert_eq!(machine.get("sys/fs/cgroup/eft-parked/cpuset.cpus"), "2-3");
    assert_eq!(machine.get("sys/fs/cgroup/eft-parked/cpuset.cpus.partition"), "isolated");
    session.unpark(&"3".parse().unwrap()).unwrap();
    assert_eq!(machine.get("sys/fs/cgroup/eft-parked/cpuset.cpus"), "2");
    session.unpark(&"2".parse().unwrap()).unwrap();
    assert!(!machine.dir.path().join("sys/fs/cgroup/eft-parked").exists());
}

fn options(managed: &str, back_end: Option<ParkBackEnd>) -> ParkOptions {
    ParkOptions {
        back_end,
        scope: Scope::All,
        spread: Vec::new(),
        managed: managed.parse().unwrap(),
        force: false,
    }
}

fn virtual_machine() -> Machine {
    let machine =
        Machine::new(4, "processor : 0\nmodel name\t: EPYC\nflags\t\t: fpu hypervisor\ncpu MHz : 2596.1");
    machine.put("proc/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0");
    machine.put("sys/fs/cgroup/cpuset/cpuset.mems", "0");
    machine.put("sys/fs/cgroup/cpuset/cgroup.procs", "100\n2");
    machine.put("sys/kernel/rcu_expedited", "0");
    machine.put("sys/kernel/rcu_normal", "0");
    machine.put("proc/irq/default_smp_affinity", "f");
    machine.put("proc/irq/24/smp_affinity_list", "0-3");
    let stat = |flags: u64| {
        format!("S 1 1 1 0 -1 {flags} 0 0 0 0 5 5 0 0 20 0 1 0 777 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0")
    };
    for (pid, flags) in [(100, 0u64), (2, 0x0020_0000)] {
        for path in [format!("proc/{pid}/stat"), format!("proc/{pid}/task/{pid}/stat")] {
            machine.put(&path, &format!("{pid} (work er) {}", stat(flags)));
        }
        machine.put(&format!("proc/{pid}/task/{pid}/status"), "Name: x\nCpus_allowed_list:\t1-2");
    }
    machine
}

#[test]
fn a_virtual_machine_without_cpufreq_offers_only_emulation() {
    let machine = virtual_machine();
    let seen = observe(&machine.tree()).unwrap();
    assert!(seen.virtual_machine && seen.cpus.iter().all(|cpu| cpu.p_states.is_empty()));
    assert_eq!(seen.cpus[0].frequency.as_ref().unwrap().now, Some(KiloHertz(2_596_100)));
    let set = machine
        .session("1")
        .set_speeds(&[(CpuId(1), Speed::Share(Share(0.421)))], None, Phase::InPhase, None)
        .unwrap();
    assert_eq!(set[0].1.back_end, BackEnd::Emulated);
    let refused = machine.session("1").set_speeds(
        &[(CpuId(1), Speed::Share(Share(0.5)))],
        Some(BackEnd::Cpufreq),
        Phase::InPhase,
        None,
    );
    assert!(refused.unwrap_err().to_string().contains("cpufreq"));
}

#[test]
fn parking_by_v1_attaches_interrupts_move_and_all_comes_back() {
    let machine = virtual_machine();
    let mut session = machine.session("1-3");
    let parked = session
        .park(&"1,3".parse().unwrap(), &options("1-3", Some(ParkBackEnd::V1)), Delays::default(), false)
        .unwrap();
    let set_up = parked.set_up.unwrap();
    assert_eq!(
        (set_up.processes_attached, set_up.interrupts.moved.as_slice()),
        (1, &[24][..]),
        "no kernel thread is attached"
    );
    assert_eq!(machine.get("sys/fs/cgroup/cpuset/eft/cpuset.cpus"), "0,2");
    assert_eq!(machine.get("proc/irq/24/smp_affinity_list"), "0");
    assert!(session.unpark(&"2".parse().unwrap()).unwrap_err().to_string().contains("not parked"));
    drop(session);
    machine.session("").restore().unwrap();
    assert!(!machine.dir.path().join("sys/fs/cgroup/cpuset/eft").exists());
    assert_eq!(machine.get("proc/irq/24/smp_affinity_list"), "0-3");
    assert_eq!(machine.get("proc/irq/default_smp_affinity"), "f");
}

#[test]
fn parking_by_affinity_gives_masks_back_in_parts() {
    let machine = virtual_machine();
    let mut session = machine.session("1-3");
    session
        .park(&"1-2".parse().unwrap(), &options("1-3", Some(ParkBackEnd::Affinity)), Delays::default(), false)
        .unwrap();
    let mask = || machine.get("proc/100/task/100/status").split('\t').nth(1).unwrap().to_string();
    assert_eq!(mask(), "0,3", "nothing of its mask is left, so it may run anywhere usable");
    session.unpark(&CpuSet::one(CpuId(2))).unwrap();
    assert_eq!(mask(), "2");
    session.unpark(&CpuSet::one(CpuId(1))).unwrap();
    assert_eq!(mask(), "1-2");
}

#[test]
fn the_kernels_bolt_takes_all_in_one_write_where_it_is_switched_on() {
    let machine = virtual_machine();
    let cpus: CpuSet = "2-3".parse().unwrap();
    let (online, offline) = ("sys/devices/system/cpu/bolt/online", "sys/devices/system/cpu/bolt/offline");
    machine.put(online, "");
    machine.put(offline, "");
    machine.put("proc/sys/kernel/cpu_bolt", "0");
    let mut session = machine.session("1-3");
    session.offline(&CpuSet::one(CpuId(1)), HotplugOptions::default()).unwrap();
    assert_eq!(machine.get(offline), "", "its operator has switched it off");
    assert_eq!(machine.get("sys/devices/system/cpu/cpu1/online"), "0");
    session.online(&CpuSet::one(CpuId(1)), HotplugOptions::default()).unwrap();

    machine.put("proc/sys/kernel/cpu_bolt", "1");
    // With rcu_normal set, expedited hotplug would say so: Bolt waits for no grace period.
    machine.put("sys/kernel/rcu_normal", "1");
    assert_eq!(session.offline(&cpus, HotplugOptions::default()).unwrap().1, None);
    assert_eq!(machine.get(offline), "2-3");
    assert_eq!(machine.get("sys/devices/system/cpu/cpu2/online"), "1", "not one by one");
    // What the kernel would have done.
    ["2", "3"].iter().for_each(|cpu| machine.put(&format!("sys/devices/system/cpu/cpu{cpu}/online"), "0"));
    session.unpark(&cpus).unwrap();
    assert_eq!(machine.get(online), "2-3", "parked by Bolt is offline, and unpark brings it back");
    assert_eq!(machine.get("proc/sys/kernel/cpu_bolt"), "1", "eft does not turn the switch");
}

#[test]
fn a_set_that_bolt_refuses_leaves_nothing_behind() {
    let machine = virtual_machine();
    // A directory: no write succeeds.
    machine.put("sys/devices/system/cpu/bolt/online", "");
    machine.put("sys/devices/system/cpu/bolt/offline/x", "");
    machine.put("proc/sys/kernel/cpu_bolt", "1");
    let mut session = machine.session("1-3");
    let refused =
        session.offline(&"1-3".parse().unwrap(), HotplugOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("Bolt"), "{refused}");
    assert_eq!(session.restore().unwrap().0, 0, "nothing is held");
}

#[test]
fn offlining_expedites_only_meanwhile_and_respects_others() {
    let machine = virtual_machine();
    let cpu = CpuSet::one(CpuId(3));
    let mut session = machine.session("1-3");
    session.offline(&cpu, HotplugOptions::default()).unwrap();
    assert_eq!(machine.get("sys/devices/system/cpu/cpu3/online"), "0");
    assert_eq!(machine.get("sys/kernel/rcu_expedited"), "0");
    session.online(&cpu, HotplugOptions::default()).unwrap();
    assert_eq!(machine.get("sys/devices/system/cpu/cpu3/online"), "1");
    machine.put("sys/kernel/rcu_normal", "1");
    let (_, note) = session.offline(&cpu, HotplugOptions::default()).unwrap();
    assert!(note.unwrap().contains("rcu_normal"));
    session.online(&cpu, HotplugOptions::default()).unwrap();
    machine.put("sys/fs/cgroup/cpuset/docker/cpuset.cpus", "3");
    assert!(
        session
            .offline(&cpu, HotplugOptions::default())
            .unwrap_err()
            .to_string()
            .contains("/sys/fs/cgroup/cpuset/docker")
    );
    assert!(
        session
            .park(&cpu, &options("1-3", None), Delays::default(), false)
            .unwrap_err()
            .to_string()
            .contains("docker")
    );
    assert_eq!(machine.get("sys/devices/system/cpu/cpu3/online"), "1");
    session.offline(&cpu, HotplugOptions { force: true, native: false }).unwrap();
    // A core that another program takes offline must not be parked.
    machine.put_cpu(CpuId(2), "online", "0");
    machine.put("sys/devices/system/cpu/online", "0-1");
    assert!(
        session
            .park(&CpuSet::one(CpuId(2)), &options("1-3", None), Delays::default(), false)
            .unwrap_err()
            .to_string()
            .contains("not by eft")
    );
}

#[test]
fn a_cpu_that_a_service_manager_names_is_left_to_it() {
    let machine = virtual_machine();
    machine.put("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0");
    machine.put("sys/fs/cgroup/cgroup.controllers", "cpuset");
    machine.put("sys/fs/cgroup/cgroup.subtree_control", "cpuset");
    machine.put("sys/fs/cgroup/system.slice/containerd.service/cpuset.cpus", "2-3");
    let mut session = machine.session("1-3");
    let both = "1,3".parse().unwrap();
    let refused =
        session.park(&both, &options("1-3", None), Delays::default(), false).unwrap_err().to_string();
    assert!(refused.contains("containerd.service") && refused.contains("--force"), "{refused}");
    assert!(
        session
            .offline(&both, HotplugOptions::default())
            .unwrap_err()
            .to_string()
            .contains("containerd.service")
    );
    assert_eq!(machine.get("sys/devices/system/cpu/cpu1/online"), "1", "not even the one that is free");
    assert!(!machine.dir.path().join("sys/fs/cgroup/eft-parked").exists());
    assert_eq!(machine.get("proc/irq/24/smp_affinity_list"), "0-3");
    drop(session);
    assert_eq!(fs::read_to_string(machine.dir.path().join("run/journal")).unwrap(), "");
}

#[test]
fn an_old_kernel_tells_less_and_that_is_all() {
    let machine = Machine::new(2, "model name : Pentium 4");
    machine.put_cpu(CpuId(0), "cpuidle/state0/name", "C1");
    machine.put_cpu(CpuId(0), "cpuidle/state0/latency", "1");
    let seen = observe(&machine.tree()).unwrap();
    assert_eq!(seen.cpus[0].idle_states[0].target_residency, None);
    assert_eq!(seen.cpus[0].frequency, None);
    assert!(!Path::new(&machine.dir.path().join("run")).exists(), "looking changes nothing");
    assert!(
        observe(&Tree::at("/nonexistent")).unwrap_err().to_string().contains("this kernel does not have it")
    );
}

#[test]
fn the_journal_survives_torn_lines_and_dead_owners() {
    let machine = virtual_machine();
    let dir = machine.dir.path().join("run");
    let path = "proc/irq/24/smp_affinity_list";
    {
        let mut journal = Journal::lock(&machine.tree(), &dir).unwrap();
        journal.own(eft_host::sensors::tasks::TaskId { tid: i32::MAX, started: 1 });
        journal.write(path, "0").unwrap();
        journal.write(path, "2").unwrap();
    }
    let text = fs::read_to_string(dir.join("journal")).unwrap();
    fs::write(dir.join("journal"), text + "{\"id\":99,\"owner\":{\"tid\":1,\"sta").unwrap();
    let mut journal = Journal::lock(&machine.tree(), &dir).unwrap();
    assert_eq!(journal.recover(), (1, Vec::new()));
    assert_eq!(machine.get(path), "0-3", "the first old value, not the one between");
    assert!(journal.entries().is_empty());
}
