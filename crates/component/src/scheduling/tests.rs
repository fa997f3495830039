use super::*;
use alloc::string::ToString;
use eft_machine::CpuId;

#[test]
fn each_mistake_is_named() {
    let wrong = |change: &dyn Fn(&mut Scheduling)| {
        let mut s = Scheduling::default();
        s.check().unwrap();
        change(&mut s);
        s.check().unwrap_err().to_string()
    };
    assert!(wrong(&|s| s.floor = Share(1.5)).contains("scheduling.floor is 1.5"));
    assert!(wrong(&|s| s.floor = Share(f64::NAN)).contains("floor"));
    assert!(wrong(&|s| s.latency_max = Some(Latency(-1.0))).contains("latency_us_max is -1"));
    assert!(wrong(&|s| s.period_ms = 0).contains("period_ms"));
    assert!(wrong(&|s| s.policy = PolicyName::Adaptive).contains("scheduling.managed names none"));
    let profile = |s: &mut Scheduling| {
        s.managed = [1].into_iter().map(CpuId).collect();
        s.policy = PolicyName::Profile;
    };
    assert!(wrong(&profile).contains("scheduling.profiles"));
}
