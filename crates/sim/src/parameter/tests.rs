use super::*;

#[test]
fn what_is_assumed_has_a_range_and_everything_a_source() {
    let good =
        Parameter { value: 5, low: Some(4), high: Some(6), tag: Tag::Assumed, source: "a book".into() };
    assert!(good.check().is_ok());
    assert!(Parameter { low: None, ..good.clone() }.check().is_err());
    assert!(Parameter { low: None, tag: Tag::Datasheet, ..good.clone() }.check().is_ok());
    assert!(Parameter { source: String::new(), ..good.clone() }.check().is_err());
    assert!(Parameter { value: 7, ..good }.check().is_err());
}
