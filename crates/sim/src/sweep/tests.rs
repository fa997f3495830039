use super::*;

#[test]
fn jobs_have_names_of_their_own_and_the_same_job_has_the_same_line() {
    let sweep = Sweep { stack: Stack::Newtos, load: Load::Web(100), seed: 1 };
    let all = jobs(1);
    assert_eq!(all.len(), 2 * (512 + 2));
    let mut names: Vec<String> = all.iter().map(|job| sweep.name(job)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len());
    let calibration = Calibration::e5520().unwrap();
    let (slow, fast) = (all[0], all[511]);
    assert_eq!(sweep.run(&calibration, &slow), sweep.run(&calibration, &slow));
    let rate = |job| sweep.run(&calibration, job).unwrap().mbps;
    assert!(rate(&fast) > rate(&slow));
}

#[test]
fn loads_are_read_as_they_are_written() {
    for text in ["bulk", "web:10", "web:10000000"] {
        assert_eq!(text.parse::<Load>().unwrap().to_string(), text);
    }
    for text in ["", "web", "web:0", "web:x", "web:100000001", "Bulk"] {
        assert!(text.parse::<Load>().unwrap_err().to_string().contains("web:BYTES"), "{text}");
    }
}
