use super::*;

#[test]
fn one_fast_and_one_slow() {
    let text = "name = 'x'\nphase = 'antiphase'\n[[core]]\ncpus = '0'\nclass = 'big'\n[[core]]\ncpus = '1'\nclass = 'little'\nspeed = '0.421'\n";
    let description = Description::parse(text).unwrap();
    assert_eq!(description.cpus().to_string(), "0-1");
    assert_eq!(description.cores.iter().filter(|core| core.is_slowed()).count(), 1);
}

#[test]
fn mistakes_are_errors_of_one_line() {
    let bad = [
        "",
        "name = 'x'\ncore = []",
        "name = 'x'\n[[core]]\ncpus = '1'\nspeed = '2'",
        "name = 'x'\n[[core]]\ncpus = '1'\n[[core]]\ncpus = '0-1'",
        "name = 'x'\n[[core]]\ncpus = '1'\nsped = '0.5'",
        "name = 'x'\n[[core]]\ncpus = '1-'",
        "name = 'x'\n[[core]]\ncpus = ''",
        "\u{0}",
    ];
    for text in bad {
        let error = Description::parse(text).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }
}
