use super::*;

fn of(line: &str) -> Settings {
    meaning(&line.split(' ').map(String::from).collect::<Vec<_>>())
}

#[test]
fn variables_that_the_stack_has_change_there() {
    let settings = of("sysctl -q net.ipv4.tcp_timestamps=0 net.ipv4.tcp_fastopen=0x70403 net.ipv4.tcp_ecn=2");
    assert_eq!((settings.timestamps, settings.ecn), (Some(Timestamps::Off), Some(Ecn::Answer)));
    assert_eq!(settings.fastopen, Some(FastOpen::of_linux(0x403)));
    assert_eq!(of("sysctl -q net.ipv4.tcp_fastopen_key=1-2-3-4").fastopen_key, "1-2-3-4".parse().ok());
    assert_eq!(of("tc qdisc replace dev tun0 root fq").pacing, Some(Pacing::On));
    let settings = of("sysctl -q net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_mtu_probing=2");
    assert_eq!(settings.slow_start_after_idle, Some(SlowStartAfterIdle::Off));
    assert_eq!(settings.mtu_probing, Some(MtuProbing::Always));
    assert_eq!(of("sysctl -q net.ipv4.tcp_early_retrans=0").tail_probes, Some(TailProbes::Off));
    assert_eq!(of("sysctl -q net.ipv4.tcp_early_retrans=3").tail_probes, Some(TailProbes::On));
    assert!(of("ip tcp_metrics flush all").forget_servers);
}

#[test]
fn others_have_no_effect() {
    for line in [
        "sysctl -q net.ipv4.tcp_sack=1",
        "ip link show",
        "tc qdisc add dev tun0 root pfifo",
        "tc qdisc show dev fq",
        "sysctl net.ipv4.tcp_ecn",
    ] {
        assert_eq!(of(line), Settings::default(), "{line}");
    }
}
