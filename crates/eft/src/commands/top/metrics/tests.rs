use super::*;
use eft_cores::sample::CpuSample;
use eft_machine::CpuId;
use eft_machine::Microjoules;

#[test]
fn every_line_is_of_the_exposition_format() {
    let component = ComponentSample { name: "tcp".into(), running: true, ..ComponentSample::default() };
    let cpu = CpuSample { cpu: CpuId(3), stolen: Duration::from_millis(1500), ..CpuSample::default() };
    let (components, cpus) = (vec![component], vec![cpu]);
    let sample = Sample { components, cpus, energy: Some(Microjoules(2_500_000)), ..Sample::default() };
    let view = View { stack: "a\"b".into(), sample, ..View::default() };
    let page = page(&view);
    let mut typed = std::collections::BTreeSet::new();
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# ") {
            let name = head.split(' ').nth(1).unwrap();
            if head.starts_with("TYPE") {
                assert!(typed.insert(name.to_string()), "{name} is declared twice");
            }
            continue;
        }
        let (name, rest) = line.split_once('{').unwrap();
        assert!(typed.contains(name), "{line}");
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        assert!(labels.contains("stack=\"a\\\"b\"") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(page.contains("eft_energy_joules_total{stack=\"a\\\"b\"} 2.5"));
    assert!(page.contains("cpu=\"3\",mode=\"stolen\"} 1.5"));
}
