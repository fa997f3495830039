use super::*;

#[test]
fn settings_of_the_kernel_become_options_of_the_stack() {
    let of = |script| {
        let settings = Settings::of(Version::Ipv4, script);
        (settings.ecn, settings.fastopen)
    };
    assert_eq!(of("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"), ("off", "both"));
    assert_eq!(of("`sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_fastopen=0x402`"), ("ask", "server"));
    assert_eq!(
        of("`../common/set_sysctls.py /proc/sys/net/ipv4/tcp_fastopen=0x5 ../tcp_ecn=2`"),
        ("off", "client")
    );
    assert_eq!(of("sysctl -q net.ipv4.tcp_ecn=0; sysctl -q net.ipv4.tcp_fastopen=\"0\""), ("off", "off"));
    assert_eq!(of("net.ipv4.tcp_ecn=; net.ipv4.tcp_fastopen=no"), ("off", "both"), "no numbers");
}
