use super::*;

#[test]
fn settings_of_the_kernel_become_options_of_the_stack() {
    let of = |script| {
        let settings = Settings::of(Version::Ipv4, None, script);
        (settings.ecn.name(), settings.fastopen.to_string(), settings.timestamps.name())
    };
    let common = "client,server,all-listeners".to_string();
    assert_eq!(of("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"), ("off", common.clone(), "on"));
    assert_eq!(
        of("`sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_fastopen=0x402`"),
        ("ask", "server,all-listeners".into(), "on")
    );
    assert_eq!(
        of("`../common/set_sysctls.py /proc/sys/net/ipv4/tcp_fastopen=0x5 ../tcp_ecn=2`"),
        ("off", "client,client-no-cookie".into(), "on")
    );
    assert_eq!(
        of("sysctl -q net.ipv4.tcp_ecn=0; sysctl -q net.ipv4.tcp_fastopen=\"0\""),
        ("off", "off".into(), "on")
    );
    assert_eq!(
        of("net.ipv4.tcp_ecn=; net.ipv4.tcp_fastopen=no"),
        ("off", common.clone(), "on"),
        "no numbers"
    );
    let twice = "/proc/sys/net/ipv4/tcp_timestamps=0`\n 0 socket(…) = 3 `sysctl -q net.ipv4.tcp_fastopen=0`";
    assert_eq!(of(twice), ("off", common, "off"), "how it begins");
}

#[test]
fn the_key_of_cookies_is_taken_from_the_script() {
    let of = |script| Settings::of(Version::Ipv4, None, script).fastopen_key.to_string();
    assert_eq!(of(""), FAST_OPEN_KEY);
    assert_eq!(
        of("/proc/sys/net/ipv4/tcp_fastopen_key=00000000-00000000-00000000-00000000`"),
        "00000000-00000000-00000000-00000000"
    );
}

#[test]
fn large_segments_have_the_least_of_the_script() {
    let of = |script| {
        let options = Settings::of(Version::Ipv4, None, script).stack();
        let at = options.iter().position(|option| option == "--min-tso-segs").expect("it is told");
        options[at + 1].clone()
    };
    assert_eq!(of(""), "2");
    assert_eq!(of("`../set_sysctls.py /proc/sys/net/ipv4/tcp_min_tso_segs=10`"), "10");
}

#[test]
fn connections_are_paced_if_the_script_has_a_queue_that_paces() {
    let of = |script| Settings::of(Version::Ipv4, None, script).pacing;
    assert_eq!(of("`../common/defaults.sh\ntc qdisc replace dev tun0 root fq\nsysctl -q x=1`"), Pacing::On);
    assert_eq!(of("`tc qdisc replace dev tun0 root fq`"), Pacing::On);
    assert_eq!(of("`tc qdisc add dev tun0 root pfifo`"), Pacing::Auto);
    assert_eq!(of(" 0 socket(…) = 3\n`tc qdisc replace dev tun0 root fq`"), Pacing::Auto, "how it begins");
}

#[test]
fn idle_windows_and_mtu_probes_are_as_the_script_has_them() {
    let of = |script| {
        let settings = Settings::of(Version::Ipv4, None, script);
        (settings.after_idle, settings.mtu_probing)
    };
    assert_eq!(of(""), (SlowStartAfterIdle::Off, MtuProbing::Off));
    let set = "../set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=1 /proc/sys/net/ipv4/tcp_mtu_probing=2`";
    assert_eq!(of(set), (SlowStartAfterIdle::On, MtuProbing::Always));
}

#[test]
fn the_gateway_lies_in_the_network_of_the_address_that_the_script_has() {
    let of = |version, script| {
        let options = Settings::of(version, None, script).stack();
        let after = |name| {
            let at = options.iter().position(|option| option == name).expect("it is told");
            options[at + 1].clone()
        };
        (after("--address"), after("--gateway"))
    };
    let pair = |address: &str, gateway: &str| (address.to_string(), gateway.to_string());
    assert_eq!(of(Version::Ipv4, ""), pair("192.168.0.1/16", "192.168.255.254"));
    assert_eq!(of(Version::Mapped, "--local_ip=10.1.2.3"), pair("10.1.2.3/16", "10.1.255.254"));
    assert_eq!(of(Version::Ipv6, ""), pair("fd3d:a0b:17d6::1/64", "fd3d:a0b:17d6::ffff"));
    assert_eq!(of(Version::Ipv6, "--local_ip=fd::1"), pair("fd::1/64", "fd::ffff"));
}
