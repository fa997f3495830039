use super::*;
use alloc::string::ToString;

#[test]
fn policies_are_read_as_they_are_printed() {
    for text in ["amp-vm", "amp-vcpu", "amp-fair", "amp-fair:40", "adaptive-fair", "adaptive-fair:3"] {
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
    }
    assert_eq!("amp-fair:100".parse::<Policy>().unwrap(), Policy::AmpFair(100));
    for text in
        ["", "amp", "amp-fair:101", "amp-fair:-1", "amp-fair:", "amp-vm:3", "adaptive-fair:x", "AMP-VM"]
    {
        let error = text.parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("is no policy") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn times_out_of_order_are_refused() {
    assert_eq!(Options::default().check(), Ok(()));
    let bad = [
        Options { tick: Duration::ZERO, ..Options::default() },
        Options { turn: Duration::from_millis(5), ..Options::default() },
        Options { window: Duration::from_secs(3), ..Options::default() },
        Options { interval: Duration::from_secs(4000), ..Options::default() },
    ];
    assert!(bad.iter().all(|options| options.check().is_err()));
    assert_eq!(
        bad[2].check().unwrap_err().to_string(),
        "the interval of 2.5s is shorter than the window of 3s"
    );
}
