use super::*;

#[test]
fn a_draw_repeats_and_moves_what_was_assumed_and_nothing_else() {
    let nominal = Calibration::e5520().unwrap();
    let (one, two) = (nominal.draw(3), nominal.draw(3));
    let mut moved = 0;
    for ((table, name, drawn), (_, _, before)) in one.parameters().zip(nominal.parameters()) {
        assert_eq!(drawn.value, two.get(table, name).unwrap());
        assert!(drawn.check().is_ok(), "{table}.{name}");
        assert!(drawn.tag == Tag::Assumed || drawn.value == before.value, "{table}.{name}");
        moved += usize::from(drawn.value != before.value);
    }
    assert!(moved > 40, "{moved}");
}

#[test]
fn a_file_that_hides_something_is_refused() {
    let of = |text: &str| Calibration::parse("x.toml", text).unwrap_err().to_string();
    assert_eq!(
        of("[a]\nb = { value = 1, tag = \"assumed\", source = \"s\" }"),
        "x.toml: a.b has no source or no range"
    );
    assert!(of("[a]\nb = { value = 1, tag = \"guessed\", source = \"s\" }").contains("guessed"));
    assert!(of("[a]\nb = { value = -1, tag = \"measured\", source = \"s\" }").starts_with("x.toml:"));
}
