use super::*;

#[test]
fn time_that_others_had_is_no_slowness() {
    // Chunks of 10 us; the burner has every second millisecond, others a fifth of all.
    let mut ends = vec![0u64];
    for millisecond in 0..1000u64 {
        let base = millisecond * 1_000_000;
        ends.extend((1..=40).filter(|_| millisecond % 5 != 0).map(|chunk| base + chunk * 10_000));
    }
    ends.push(1_000_000_000);
    let had = Had { loop_ns: 320_000_000, burner_ns: 500_000_000 };
    let seen = summarise(CpuId(1), &ends, had, Some(100_000.0), WakeDelay::default());
    assert!((seen.share.0 - 0.5).abs() < 0.001, "{}", seen.share);
    assert!((seen.share_seen.0 - 0.32).abs() < 0.001 && (seen.others.0 - 0.18).abs() < 1e-9);
}
