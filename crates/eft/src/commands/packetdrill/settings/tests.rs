use super::*;

#[test]
fn settings_of_the_kernel_become_options_of_the_stack() {
    let of = |script| {
        let settings = Settings::of(Version::Ipv4, script);
        (settings.ecn, settings.fastopen, settings.timestamps)
    };
    assert_eq!(of("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"), ("off", "both", "on"));
    assert_eq!(of("`sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_fastopen=0x402`"), ("ask", "server", "on"));
    assert_eq!(
        of("`../common/set_sysctls.py /proc/sys/net/ipv4/tcp_fastopen=0x5 ../tcp_ecn=2`"),
        ("off", "client", "on")
    );
    assert_eq!(
        of("sysctl -q net.ipv4.tcp_ecn=0; sysctl -q net.ipv4.tcp_fastopen=\"0\""),
        ("off", "off", "on")
    );
    assert_eq!(of("net.ipv4.tcp_ecn=; net.ipv4.tcp_fastopen=no"), ("off", "both", "on"), "no numbers");
    assert_eq!(of("sysctl -q net.ipv4.tcp_timestamps=0"), ("off", "both", "off"));
    let twice = "/proc/sys/net/ipv4/tcp_timestamps=0` … `sysctl -q net.ipv4.tcp_timestamps=1`";
    assert_eq!(of(twice), ("off", "both", "off"), "how it begins");
}
