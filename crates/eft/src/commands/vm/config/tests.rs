use super::*;

#[test]
fn the_example_is_read() {
    let config = parse(include_str!("../../../../../../packaging/vm.toml")).unwrap();
    assert_eq!(config.policy, Some(Policy::AmpVm));
}

#[test]
fn mistakes_are_one_line() {
    let bad = [
        "polcy = 'amp-vm'",
        "policy = 'fast'",
        "cpus = '3-1'",
        "[guest.a]\nweight = 0",
        "[guest.a]\ncap = -1.0",
        "[guest.a]\nwait = 3",
        "\u{0}",
    ];
    for text in bad {
        let error = format!("{:#}", parse(text).unwrap_err());
        assert!(!error.contains('\n'), "{error}");
    }
}
