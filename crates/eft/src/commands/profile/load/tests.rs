use super::*;

#[test]
fn the_last_line_tells() {
    let both = Reported { throughput: Some(Throughput(12.5)), latency: Some(Latency(30.0)) };
    assert_eq!(reported("throughput=1\nthroughput=12.5 latency_us=30 more=x\n\n").unwrap(), both);
    assert_eq!(reported("").unwrap(), Reported::default());
    assert_eq!(reported("throughput=7\ndone").unwrap(), Reported::default());
    for bad in ["throughput=", "latency_us=-1", "throughput=nan", "throughput=inf", "latency_us=3ms"] {
        assert!(reported(bad).unwrap_err().to_string().contains(bad), "{bad}");
    }
}
