//! Tests of finding guests.

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

/// A recorded /proc with one QEMU and its threads.
fn recorded(command: &str, cgroup: &str, threads: &[(i32, &str)]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let process = dir.path().join("proc/100");
    std::fs::create_dir_all(&process).unwrap();
    std::fs::write(process.join("cmdline"), command.replace(' ', "\0")).unwrap();
    std::fs::write(process.join("cgroup"), cgroup).unwrap();
    for (tid, name) in threads {
        let task = process.join(format!("task/{tid}"));
        std::fs::create_dir_all(&task).unwrap();
        let stat = format!(
            "{tid} ({name}) S 1 1 1 0 -1 4194560 0 0 0 0 5 5 0 0 20 0 9 0 777 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0"
        );
        std::fs::write(task.join("stat"), &stat).unwrap();
        if *tid == 100 {
            std::fs::write(process.join("stat"), stat).unwrap();
        }
    }
    let tree = Tree::at(dir.path());
    (dir, tree)
}

#[test]
fn a_libvirt_guest_is_named_by_its_cgroup_and_its_threads_told_apart() {
    let (_dir, tree) = recorded(
        "/usr/bin/qemu-system-x86_64 -accel kvm",
        "0::/machine.slice/machine-qemu\\x2d3\\x2dweb\\x2d1.scope/libvirt/emulator\n",
        &[
            (100, "qemu-system-x86"),
            (101, "CPU 0/KVM"),
            (102, "CPU 1/KVM"),
            (103, "IO mon_iothread"),
            (104, "vhost-100"),
        ],
    );
    let (guests, notes) = discover(&tree, &Wanted::default(), &[]);
    assert_eq!(notes, Vec::<String>::new());
    let roles: Vec<Role> = guests[0].threads.iter().map(|thread| thread.role).collect();
    assert_eq!(roles, [Role::Emulator, Role::Vcpu(0), Role::Vcpu(1), Role::Io, Role::Vhost]);
    assert!(guests[0].kvm && guests[0].by == "thread names");
    assert_eq!(guests[0].name, "web-1");
}

#[test]
fn names_come_from_the_command_line_libvirt_or_proxmox() {
    let name = |command: &str, cgroup: &str| {
        let (_dir, tree) = recorded(command, cgroup, &[(100, "x"), (101, "CPU 0/TCG")]);
        discover(&tree, &Wanted::default(), &[]).0[0].name.clone()
    };
    assert_eq!(name("qemu-system-x86_64 -name guest=db,debug-threads=on", ""), "db");
    assert_eq!(name("qemu-system-x86_64 -name db", ""), "db");
    assert_eq!(name("/usr/bin/kvm -id 100", "0::/qemu.slice/100.scope"), "100");
    assert_eq!(name("qemu-system-x86_64 x", "0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope"), "web");
    assert_eq!(name("qemu-system-x86_64 x", ""), "qemu-100");
}

#[test]
fn guests_that_are_not_named_are_left_alone() {
    let (_dir, tree) = recorded("qemu-system-x86_64 -name db", "", &[(100, "x"), (101, "CPU 0/TCG")]);
    let named =
        |name: &str| discover(&tree, &Wanted { only: vec![name.into()], ..Wanted::default() }, &[]).0.len();
    assert_eq!((named("db"), named("web")), (1, 0));
}

#[test]
fn guests_without_thread_names_are_reported_and_other_programs_ignored() {
    let (_dir, tree) = recorded("qemu-system-x86_64 -m 64", "", &[(100, "qemu"), (101, "qemu")]);
    let (guests, notes) = discover(&tree, &Wanted::default(), &[]);
    assert!(guests.is_empty() && notes[0].contains("cannot be told apart"), "{notes:?}");
    let (_dir, tree) = recorded("vim qemu-system-x86_64", "", &[(100, "CPU 0/KVM")]);
    assert!(discover(&tree, &Wanted::default(), &[]).0.is_empty());
}

#[test]
fn control_sockets_are_found_on_the_command_line() {
    let socket = |text: &str| qmp_socket(&words(text)).map(|path| path.display().to_string());
    assert_eq!(socket("q -qmp unix:/run/a.sock,server=on,wait=off").as_deref(), Some("/run/a.sock"));
    let chardev =
        "q -chardev socket,id=qmp,path=/var/run/qemu-server/100.qmp,server=on -mon chardev=qmp,mode=control";
    assert_eq!(socket(chardev).as_deref(), Some("/var/run/qemu-server/100.qmp"));
    let libvirt =
        "q -chardev socket,id=m,path=/var/lib/libvirt/qemu/m.sock -mon chardev=m,id=monitor,mode=control";
    assert_eq!(socket(libvirt), None, "libvirt holds it");
    assert_eq!(socket("q -qmp stdio"), None);
}

#[test]
fn groups_are_read() {
    let group = |text: &str| text.parse::<GroupSpec>();
    assert_eq!(group("a=12,34").unwrap().members, Members::Processes(vec![12, 34]));
    assert_eq!(group("/sys/fs/cgroup/x").unwrap().name, "/sys/fs/cgroup/x");
    for bad in ["", "a=", "a=x", "a=-1", "=12", "a=1,,2"] {
        assert!(group(bad).is_err(), "{bad}");
    }
    let spec = GroupSpec { name: "me".into(), members: Members::Processes(vec![std::process::id() as i32]) };
    let wanted = Wanted { groups: vec![spec], groups_only: true, ..Wanted::default() };
    assert!(discover(&Tree::live(), &wanted, &[]).0[0].vcpus().count() >= 1);
}

#[test]
fn threads_without_names_are_told_apart_by_libvirts_cgroups() {
    let (dir, tree) = recorded(
        "/usr/bin/qemu-system-x86_64 -accel kvm",
        "0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt/emulator\n",
        &[(100, "qemu"), (101, "qemu"), (102, "qemu"), (103, "qemu")],
    );
    let scope = "0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt";
    // The last one as cgroup v1 shows it.
    let places = [
        (100, format!("{scope}/emulator")),
        (101, format!("{scope}/vcpu0")),
        (102, "4:cpuset:/machine/qemu-3-web.libvirt-qemu/vcpu1\n2:cpu:/".to_string()),
        (103, format!("{scope}/iothread1")),
    ];
    for (tid, place) in places {
        std::fs::write(dir.path().join(format!("proc/100/task/{tid}/cgroup")), place).unwrap();
    }
    let (guests, notes) = discover(&tree, &Wanted::default(), &[]);
    let roles: Vec<Role> = guests[0].threads.iter().map(|thread| thread.role).collect();
    assert_eq!(roles, [Role::Emulator, Role::Vcpu(0), Role::Vcpu(1), Role::Io]);
    assert_eq!((guests[0].by, guests[0].name.as_str(), notes.len()), ("libvirt cgroups", "web", 0));
}

#[test]
fn a_guest_whose_monitor_is_held_keeps_what_was_known_of_its_threads() {
    let (_dir, tree) = recorded("qemu-system-x86_64 -name db", "", &[(100, "qemu"), (101, "qemu")]);
    let thread = |tid: i32, started: u64, role: Role| Thread {
        id: TaskId { tid, started },
        process: 100,
        name: "qemu".into(),
        role,
    };
    let mut before = Guest {
        name: "db".into(),
        by: "qmp",
        process: Some(100),
        is_paused: true,
        kvm: false,
        threads: vec![thread(100, 777, Role::Emulator), thread(101, 777, Role::Vcpu(3))],
    };
    let (guests, notes) = discover(&tree, &Wanted::default(), std::slice::from_ref(&before));
    assert_eq!((&guests, notes.len()), (&vec![before.clone()], 0));
    // Another process has got its id meanwhile.
    before.threads.iter_mut().for_each(|thread| thread.id.started = 5);
    assert!(discover(&tree, &Wanted::default(), &[before]).0.is_empty());
}

#[test]
fn hardware_virtualisation_is_told_by_threads_and_options_not_by_paths() {
    let kvm = |command: &str, thread: &str| {
        let (_dir, tree) = recorded(command, "", &[(100, "x"), (101, thread)]);
        discover(&tree, &Wanted::default(), &[]).0[0].kvm
    };
    assert!(kvm("qemu-system-x86_64 -accel kvm -accel tcg", "CPU 0/KVM"));
    assert!(!kvm("qemu-system-x86_64 -accel kvm -accel tcg", "CPU 0/TCG"));
    assert!(!kvm("qemu-system-x86_64 -name kvm1 -hda /srv/kvm/disk.img", "CPU 0/TCG"));
    let by_options = |text: &str| uses_kvm(&words(text), &[]);
    for yes in ["/usr/bin/kvm -m 1", "q -enable-kvm", "q -accel kvm,thread=multi", "q -machine q35,accel=kvm"]
    {
        assert!(by_options(yes), "{yes}");
    }
    for no in ["q -accel tcg", "q -hda /srv/kvm/disk.img", "q -machine q35"] {
        assert!(!by_options(no), "{no}");
    }
}
