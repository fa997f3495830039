use super::*;
use alloc::format;

fn error(from: &str, to: &str) -> String {
    assert!(DEFAULT.contains(from), "{from}");
    Topology::parse(&DEFAULT.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn shipped_topologies_are_sound() {
    let t = Topology::parse(DEFAULT).unwrap();
    assert_eq!(t.peers(1).len(), 6);
    let t = Topology::parse(include_str!("../../../../topologies/no-filter.toml")).unwrap();
    assert!(!t.has("filter"));
    let t = Topology::parse(include_str!("../../../../topologies/adaptive.toml")).unwrap();
    assert_eq!(t.scheduling.unwrap().managed.to_string(), "0-1");
}

#[test]
fn errors_name_what_is_wrong() {
    assert!(error("name = \"udp\"", "name = \"upd\"").contains("unknown component `upd`"));
    assert!(error("[\"ip\", \"filter\"]", "[\"tcp\", \"filter\"]").contains("forbidden"));
    assert!(error("[\"ip\", \"filter\"]", "[\"ip\", \"tcp\"]").contains("twice"));
    assert!(error("[\"ip\", \"filter\"]", "[\"ip\", \"foo\"]").contains("`foo`"));
    assert!(error("capacity = 1024", "capacity = 1000").contains("power of two"));
    assert!(error("name = \"filter\"", "name = \"filter\"\nfoo = 1").contains("foo"));
    assert!(error("name = \"filter\"", "name = \"filter\"\ndedicated = true").contains("no `cpu`"));
}

#[test]
fn a_standby_is_for_a_whole_process() {
    let has = |text: &str| {
        let t = Topology::parse(text).unwrap();
        let mut names: Vec<_> =
            t.component.iter().filter(|c| t.has_standby(c)).map(|c| c.name.clone()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(has(DEFAULT), "");
    assert_eq!(has(&DEFAULT.replacen("name = \"tcp\"", "name = \"tcp\"\nstandby = true", 1)), "tcp");
    assert_eq!(has(&EDGE.replacen("name = \"ip\"", "name = \"ip\"\nstandby = true", 1)), "filter ip nic");
    assert_eq!(has(include_str!("../../../../topologies/standby.toml")), "filter ip nic sockets tcp udp");
    assert!(error("name = \"tcp\"", "name = \"tcp\"\nstandby = 1").contains("standby"));
}

#[test]
fn components_of_one_process_are_checked_together() {
    let edge = Topology::parse(EDGE).unwrap();
    let process = |name: &str| edge.component.iter().find(|c| c.name == name).unwrap().process.as_deref();
    assert_eq!([process("nic"), process("ip"), process("filter")], [Some("edge"); 3]);
    assert_eq!((process("tcp"), edge.shares_processes()), (None, true));
    let together = |text: &str| {
        let t = Topology::parse(text).unwrap();
        let mut names: Vec<_> = t.component.into_iter().filter_map(|c| c.process.map(|_| c.name)).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(together(DEFAULT), "");
    assert_eq!(together(EDGE), "filter ip nic");
    assert_eq!(together(STACK), "filter ip nic tcp udp");
    assert_eq!(together(WHOLE), "filter ip nic sockets tcp udp");
    let filter = |more: &str| error("name = \"filter\"", &format!("name = \"filter\"\n{more}"));
    for bad in ["", "Edge", "a b", &"x".repeat(33)] {
        assert!(filter(&format!("process = \"{bad}\"")).contains("not a name of a process"), "{bad}");
    }
    assert!(error("name = \"cores\"", "name = \"cores\"\nprocess = \"a\"").contains("runs alone"));
    let apart = DEFAULT.replacen("name = \"ip\"", "name = \"ip\"\nprocess = \"a\"\ncpu = 1", 1);
    let apart = apart.replacen("name = \"filter\"", "name = \"filter\"\nprocess = \"a\"\ncpu = 0", 1);
    assert!(Topology::parse(&apart).unwrap_err().to_string().contains("give them the same `cpu`"));
    assert!(filter("process = \"a\"\nprocess = \"b\"").contains("process"), "two processes of one component");
    assert!(filter("process = [\"a\", \"b\"]").contains("process"), "two processes of one component");
    let twice = "name = \"filter\"\nprocess = \"a\"\n[[component]]\nname = \"filter\"\nprocess = \"b\"";
    assert!(error("name = \"filter\"", twice).contains("twice"), "{}", error("name = \"filter\"", twice));
    let placed = DEFAULT.replacen("name = \"ip\"", "name = \"ip\"\nprocess = \"a\"", 1);
    let placed = format!("{placed}\n[scheduling]\npolicy = \"adaptive\"\nmanaged = \"0-1\"\n");
    assert!(Topology::parse(&placed).unwrap_err().to_string().contains("without `process`"));
}

#[test]
fn a_second_tcp_is_a_second_name() {
    let tcp1 = r#"
        [[component]]
        name = "tcp1"
        [[edge]]
        between = ["sockets", "tcp1"]
        [[edge]]
        between = ["ip", "tcp1"]
        capacity = 64
    "#;
    let sockets = |text: &str| Topology::parse(text).unwrap().limits.sockets_per_domain;
    assert_eq!(sockets(DEFAULT), SOCKETS_PER_DOMAIN);
    assert_eq!(sockets(&format!("{DEFAULT}{tcp1}")), DIRTY_SLOTS / 3);
    for (asked, says) in [("90000", "from 1 to 87381"), ("0", "at least 1")] {
        let text = format!("{DEFAULT}{tcp1}\n[limits]\nsockets_per_domain = {asked}\n");
        let error = Topology::parse(&text).unwrap_err().to_string();
        assert!(error.contains("sockets_per_domain must be ") && error.contains(says), "{error}");
    }
    let fewer = format!("{DEFAULT}{tcp1}\n[limits]\nsockets_per_domain = 2048\n");
    let t = Topology::parse(&fewer).unwrap();
    let second = ComponentId::new(Role::Tcp, 1);
    assert_eq!(t.transports(), [ComponentId::TCP, second, ComponentId::UDP]);
    assert_eq!(t.capacity(second, ComponentId::IP), Some(64));
    assert_eq!(t.capacity(second, ComponentId::UDP), None);
    let unconnected = fewer.replacen("\"ip\", \"tcp1\"", "\"ip\", \"tcp2\"", 1);
    assert!(Topology::parse(&unconnected).unwrap_err().to_string().contains("no component `tcp2`"));
    for unknown in ["tcp0", "ip1", "nic1", "tcp01"] {
        let error = Topology::parse(&fewer.replace("tcp1", unknown)).unwrap_err();
        assert_eq!(error, TopologyError::UnknownComponent(unknown.into()));
        let error = error.to_string();
        assert!(error.contains(&format!("unknown component `{unknown}`")), "{error}");
    }
    assert!(Topology::parse(&fewer.replace("tcp1", "tcp8")).unwrap_err().to_string().contains("may be 8"));
}

#[test]
fn scheduling_is_checked_with_the_rest() {
    let with = |table: &str| Topology::parse(&format!("{DEFAULT}\n[scheduling]\n{table}\n"));
    let t =
        with("policy = \"adaptive\"\nobjective = \"least-power\"\nfloor = 0.9\nmanaged = \"0-1\"").unwrap();
    assert_eq!(t.peers(1).len(), 6, "cores moves no packets");
    assert_eq!(t.scheduling.unwrap().managed.to_string(), "0-1");
    assert!(with("policy = \"adaptve\"").unwrap_err().to_string().contains("adaptve"));
    assert!(with("objective = \"speed\"").unwrap_err().to_string().contains("speed"));
    assert!(with("floor = 2.0").unwrap_err().to_string().contains("floor is 2"));
    assert!(with("managed = \"1-\"").unwrap_err().to_string().contains("managed"));
    let without = DEFAULT.replacen("[[component]]\nname = \"cores\"\n", "", 1);
    let alone = Topology::parse(&format!("{without}\n[scheduling]\n"));
    assert!(alone.unwrap_err().to_string().contains("add [[component]]"));
}

#[test]
fn several_transports_are_numbered_without_a_gap() {
    let spread = include_str!("../../../../topologies/spread.toml");
    let names: Vec<String> =
        Topology::parse(spread).unwrap().transports().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["tcp", "tcp1", "udp", "udp1"]);
    let gap = TopologyError::Gap { name: "tcp2".into(), lower: "tcp1".into() };
    assert_eq!(Topology::parse(&spread.replace("tcp1", "tcp2")).unwrap_err(), gap);
    let only_second = DEFAULT.replace("\"udp\"", "\"udp1\"");
    assert!(Topology::parse(&only_second).unwrap_err().to_string().contains("there is no `udp`"));
}
