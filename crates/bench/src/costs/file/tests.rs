use super::*;

#[test]
fn a_parameter_has_value_range_tag_and_source() {
    let one = Parameter {
        name: "write_cycles",
        value: 812.4,
        low: 820.0,
        high: 1000.0,
        is_assumed: false,
        source: "counted by \"callgrind\"".into(),
    };
    let assumed = Parameter {
        name: "stall_percent",
        value: 20.0,
        low: 10.0,
        high: 30.0,
        is_assumed: true,
        ..one.clone()
    };
    assert_eq!(
        text("Two\nlines", &[one, assumed]),
        "# Two\n# lines\n\n[eft]\n\
         write_cycles = { value = 812, low = 812, high = 1000, tag = \"measured\", source = \"counted by 'callgrind'\" }\n\
         stall_percent = { value = 20, low = 10, high = 30, tag = \"assumed\", source = \"counted by 'callgrind'\" }\n"
    );
}
