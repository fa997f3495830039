use super::*;

#[test]
fn resolv_conf_is_read_as_libc_does() {
    let text = "# x\nnameserver 10.0.0.1\nnameserver ::1\nnameserver 10.0.0.2\n\
             search a.example b.example.\noptions ndots:2 timeout:1 attempts:99 rotate\n";
    assert_eq!(parse(text, true).servers.len(), 3);
    let c = parse(text, false);
    assert_eq!(c.servers.len(), 2);
    assert_eq!((c.dots, c.timeout_ms, c.attempts), (2, 1000, 5));
    assert_eq!(c.candidates("w"), ["w.a.example", "w.b.example", "w"]);
    assert_eq!(c.candidates("x.y.z")[0], "x.y.z");
    assert_eq!(c.candidates("x."), ["x"]);
}
