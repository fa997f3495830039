use super::*;

#[test]
fn the_stacks_name_server_comes_first_and_once() {
    let first = IpAddr::from([10, 0, 0, 53]);
    let host = "search x.test\nnameserver 192.0.2.1\nnameserver 10.0.0.53\noptions ndots:2";
    let seen = "nameserver 10.0.0.53\nsearch x.test\nnameserver 192.0.2.1\noptions ndots:2\n";
    let names = Names { servers: &[first], search: &[] };
    assert_eq!(resolv_conf(host, &names), seen);
    assert_eq!(resolv_conf("", &names), "nameserver 10.0.0.53\n");
    // A search list of the stack's own, and a second server.
    let search = ["lab.example".into(), "example".into()];
    let names = Names { servers: &[first, IpAddr::from([192, 0, 2, 1])], search: &search };
    let seen = "nameserver 10.0.0.53\nnameserver 192.0.2.1\nsearch lab.example example\noptions ndots:2\n";
    assert_eq!(resolv_conf(host, &names), seen);
}

#[test]
fn hosts_come_from_files_and_dns() {
    let host = "passwd: files\nhosts: mymachines resolve [!UNAVAIL=return] files\n# end";
    let seen = "passwd: files\n# end\nhosts: files dns\n";
    assert_eq!(nsswitch_conf(host, &Names { servers: &[], search: &[] }), seen);
}
