use super::*;

#[test]
fn what_is_there_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/cpuinfo", "flags\t\t: fpu hfi sse\n");
    write("proc/sys/kernel/sched_itmt_enabled", "1\n");
    write("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n");
    write("sys/devices/system/cpu/cpu1/cpu_capacity", "500\n");
    let on: Vec<&str> =
        features(&Tree::at(dir.path())).into_iter().filter(|f| f.is_on).map(|f| f.name).collect();
    assert_eq!(on, ["itmt", "thread director", "capacity awareness"]);
}
