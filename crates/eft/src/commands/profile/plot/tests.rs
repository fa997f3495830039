use super::*;
use eft_cores::plan::Seat;
use eft_machine::CpuId;
use eft_machine::Watts;

fn load(outcomes: &[(f64, f64, u32)]) -> LoadProfile {
    let outcome = |(throughput, watts, cpu): &(f64, f64, u32)| {
        let seat = |cpu| Seat { cpu, dedicated: false };
        let seats = [("ip".to_string(), seat(CpuId(0))), ("tcp".to_string(), seat(CpuId(*cpu)))].into();
        let plan = Plan { seats, ..Plan::default() };
        Outcome { throughput: Throughput(*throughput), power: Watts(*watts), plan, ..Outcome::default() }
    };
    LoadProfile {
        name: "<a & b>".into(),
        outcomes: outcomes.iter().map(outcome).collect(),
        ..LoadProfile::default()
    }
}

#[test]
fn the_text_marks_the_best() {
    let plot = text(&load(&[(100e6, 30.0, 1), (97e6, 20.0, 0), (50e6, 10.0, 0)]));
    let count =
        |mark| plot.lines().filter(|l| l.contains('|')).flat_map(str::chars).filter(|c| *c == mark).count();
    assert_eq!((count('T'), count('P'), count('1'), count('s')), (1, 1, 2 + 1, 0), "{plot}");
}

#[test]
fn degenerate_profiles_can_be_drawn() {
    for outcomes in [&[][..], &[(0.0, 0.0, 0)], &[(5.0, 7.0, 0), (5.0, 7.0, 1)]] {
        let load = load(outcomes);
        text(&load);
        let picture = svg(&[&load, &load]);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        assert!(picture.contains("&lt;a &amp; b&gt;") && !picture.contains("<a &"));
    }
}
