use super::*;

#[test]
fn axes_have_round_marks_around_all_values() {
    let marks = |values: &[f64], from| {
        let scale = Scale::over(values.iter().copied(), from);
        scale.marks().map(|mark| (mark * 1000.0).round() / 1000.0).collect::<Vec<_>>()
    };
    assert_eq!(marks(&[1.0, 2.21], None), [1.0, 1.25, 1.5, 1.75, 2.0, 2.25]);
    assert_eq!(marks(&[0.0, 2.0, 12.0], None), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(marks(&[4.0], Some(0.0)), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(marks(&[1.0, f64::NAN], None).first(), Some(&1.0));
}

#[test]
fn stacks_say_their_totals_and_share_colours() {
    let bar = |name: &str, parts: &[(&str, f64)]| Stack {
        name: name.into(),
        parts: parts.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
    };
    let svg = stacks("t", "ms", &[bar("one", &[("a", 1.0), ("b", 2.5)]), bar("two", &[("b", 0.5)])]);
    assert!(svg.contains(">3.5</text>") && svg.contains(">0.5</text>"), "{svg}");
    // Two in the first stack, one in the second, and two in the legend.
    let of = |colour: usize| svg.matches(&format!("fill=\"{}\"", COLOURS[colour])).count();
    assert_eq!((of(0), of(1)), (2, 3));
}

#[test]
fn areas_lie_on_top_of_each_other() {
    let of = |name: &str, value: f64| Series { name: name.into(), points: vec![(0.0, value), (1.0, value)] };
    let svg = areas("t", ["x", "y"], &[of("fast", 1.0), of("slow", 3.0)], 4.0);
    let heights: Vec<&str> = svg.lines().filter(|line| line.contains("<polygon")).collect();
    assert_eq!(heights.len(), 2);
    assert!(heights[1].contains(&format!(",{TOP:.1} ")), "the second reaches the top: {}", heights[1]);
}
