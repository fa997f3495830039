use super::*;

#[test]
fn scripts_and_old_files_read_times_as_whole_nanoseconds() {
    let cpu = CpuSample { busy: Duration::from_micros(3), ..CpuSample::default() };
    let sample = Sample { at: Instant::from_millis(2), cpus: alloc::vec![cpu], ..Sample::default() };
    let text = serde_json::to_value(&sample).unwrap();
    assert_eq!((&text["at_ns"], &text["cpus"][0]["busy_ns"]), (&2_000_000.into(), &3_000.into()));
    assert_eq!(serde_json::from_value::<Sample>(text).unwrap(), sample);
}
