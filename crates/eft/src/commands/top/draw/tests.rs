use super::*;
use eft_machine::{CpuId, Watts};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

fn view(cpus: u32) -> View {
    let names = ["sockets", "tcp", "udp", "ip", "filter", "nic:eft0", "cores"];
    let component = |name: &&str| ComponentRow {
        name: name.to_string(),
        state: "running".into(),
        cpu: Some(CpuId(1)),
        busy: Share(0.42),
        queue_high: 300,
        queue_capacity: 1024,
        hint: Hint::ReceiverBehind,
        ..ComponentRow::default()
    };
    View {
        stack: "web".into(),
        cpus: (0..cpus)
            .map(|cpu| CpuRow {
                cpu: CpuId(cpu),
                online: true,
                speed: Share::ALL,
                stolen: Share(0.17),
                applications: cpu == 1,
                ..CpuRow::default()
            })
            .collect(),
        components: names.iter().map(component).collect(),
        sent: ByteRate(1.5e9),
        power: Some(Watts(17.25)),
        scheduling: json!({ "scheduling": { "policy": "adaptive", "objective": "throughput" },
                "last": { "number": 3, "reason": "overload: climbs to 2 cores", "outcome": "applied",
                          "readings": { "summary": "bulk as client" } } }),
        ..View::default()
    }
}

fn screen(view: &View, width: u16, height: u16) -> String {
    let mut history = History::default();
    (0..400).for_each(|_| history.add(view));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, &history)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol().to_string()).collect::<String>() + "\n")
        .collect()
}

#[test]
fn everything_has_its_place_at_80_by_24() {
    let text = screen(&view(2), 80, 24);
    for wanted in [
        "eft top - web - policy adaptive, throughput",
        "nic:eft0",
        "cores",
        "17% applications",
        "300/1024",
        "behind",
        "out 12.00 Gb/s",
        "mean life -",
        "17.2 W",
        "#3 overload: climbs to 2 cores -> applied [bulk as client]",
        "throughput",
        "power",
    ] {
        assert!(text.contains(wanted), "{wanted} is not on the screen:\n{text}");
    }
}

#[test]
fn no_line_is_cut_at_80_columns() {
    let mut view = view(4);
    view.cpus[1].runs = view.components.iter().map(|c| c.name.clone()).collect();
    for component in &mut view.components {
        let share =
            [&mut component.busy, &mut component.polling, &mut component.ready, &mut component.sleeping];
        share.into_iter().for_each(|share| *share = Share::ALL);
        (component.queue_high, component.wake_ups_per_s) = (1024, 1_234_567.0);
        (component.dedicated, component.hint) = (true, Hint::Starved);
    }
    view.components[5].name = "nic:eft-interface-15".into();
    (view.received, view.connections_open) = (ByteRate(99.99e9), 123_456);
    view.indicators = eft_cores::indicators::Indicators {
        segments_per_s: 12_345_678.0,
        mean_segment_bytes: 65_483.0,
        connections_per_s: 123_456.7,
        segments_per_connection: 1_234_567.0,
        mean_lifetime_s: 12_345.67,
        empty_share: Share::ALL,
        overhead_per_byte: 123.45,
        ..Default::default()
    };
    let text = screen(&view, 80, 24);
    let ends = [
        "+2",
        "starved",
        "1024/1024",
        "nic:eft-int…",
        "of headers",
        "sent are empty",
        "mean life 12345.67 s",
    ];
    for end in ends {
        assert!(text.contains(end), "{end} is not on the screen:\n{text}");
    }
    assert_eq!(text.matches("1024/1024").count(), view.components.len(), "{text}");
}

#[test]
fn many_cpus_are_summed_up_and_a_tiny_terminal_does_no_harm() {
    assert!(screen(&view(64), 80, 24).contains("and 59 more"));
    for (width, height) in [(1, 1), (10, 3), (200, 80)] {
        screen(&view(8), width, height);
    }
}
