use super::*;
use eft_machine::CpuId;

fn tree(names: &[(i32, &str, u64)]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for (pid, name, flags) in names {
        let at = dir.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("comm"), format!("{name}\n")).unwrap();
        let rest = "0 0 0 0 0 0 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0";
        std::fs::write(at.join("stat"), format!("{pid} ({name}) S 1 1 1 0 -1 {flags} {rest}")).unwrap();
    }
    let tree = Tree::at(dir.path());
    (dir, tree)
}

#[test]
fn only_the_kernels_threads_of_these_cpus_are_raised() {
    let kernel = 0x0020_0000;
    let (dir, tree) = tree(&[
        (7, "cpuhp/1", 0),
        (15, "rcu_preempt", kernel),
        (17, "rcu_exp_gp_kthread_worker", kernel),
        (19, "cpuhp/0", kernel),
        (20, "cpuhp/1", kernel),
        (22, "ksoftirqd/1", kernel),
        (30, "cpuhp/11", kernel),
        (40, "kworker/0:3-events", kernel),
        (41, "kworker/0:0H-events_highpri", kernel),
        (42, "kworker/1:3", kernel),
    ]);
    let at = dir.path().join("sys/devices/system/cpu");
    std::fs::create_dir_all(&at).unwrap();
    std::fs::write(at.join("online"), "0-1\n").unwrap();
    let tids: Vec<i32> = helpers(&tree, &CpuSet::one(CpuId(1))).iter().map(|id| id.tid).collect();
    assert_eq!(tids, [15, 17, 20, 22, 40]);
}
