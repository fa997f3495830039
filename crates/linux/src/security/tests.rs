use super::*;

#[test]
fn the_kernel_tells_what_a_process_may_do() {
    let text =
        "Name:\teft\nPPid:\t7\nUid:\t0\t1000\t0\t0\nCapEff:\t0000004000200001\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    let found = Security::parse(text).unwrap();
    assert_eq!(found.row(), ["1000", "capability 0 sys_admin perfmon", "never", "listed", "none"]);
    let free =
        text.replace("4000200001", "0").replace("Privs:\t1", "Privs:\t0").replace("comp:\t2", "comp:\t0");
    assert_eq!(Security::parse(&free).unwrap().row(), ["1000", "none", "by setuid", "all", "none"]);
    assert_eq!(Security::parse("Name:\teft\n"), None);
    assert!(Security::of(std::process::id().into()).is_some());
}
