use super::*;

fn offers(available: &[u64], modulation: bool) -> Capabilities {
    let range = FrequencyRange {
        min: KiloHertz(800_000),
        max: KiloHertz(4_000_000),
        available: available.iter().copied().map(KiloHertz).collect(),
    };
    Capabilities { cpufreq: Some(range), clock_modulation: modulation, full: None }
}

#[test]
fn speeds_are_read() {
    assert_eq!("7/8".parse(), Ok(Speed::Share(Share(0.875))));
    assert_eq!("42.1%".parse(), Ok(Speed::Share(Share(42.1 / 100.0))));
    assert_eq!("1.2GHz".parse(), Ok(Speed::Clock(KiloHertz(1_200_000))));
    assert_eq!("800 mhz".parse(), Ok(Speed::Clock(KiloHertz(800_000))));
    for bad in ["0", "-1", "9/8", "1/0", "0/0", "nan", "inf", "fast", "", "1e99GHz", "%", "-3GHz"] {
        assert!(bad.parse::<Speed>().is_err(), "{bad}");
    }
}

#[test]
fn the_first_back_end_that_comes_near_is_taken() {
    let pick =
        |share, offers: &Capabilities| choose(Speed::Share(Share(share)), offers, None).unwrap().back_end;
    assert_eq!(pick(0.5, &offers(&[], true)), BackEnd::Cpufreq);
    assert_eq!(pick(0.125, &offers(&[], true)), BackEnd::Msr);
    assert_eq!(pick(0.125, &offers(&[], false)), BackEnd::Emulated);
    assert_eq!(pick(0.6, &offers(&[2_000_000, 4_000_000], true)), BackEnd::Msr);
    assert_eq!(pick(0.421, &Capabilities::default()), BackEnd::Emulated);
    let half =
        choose(Speed::Clock(KiloHertz(2_000_000)), &offers(&[2_080_000, 4_000_000], false), None).unwrap();
    assert_eq!((half.clock, half.back_end), (Some(KiloHertz(2_080_000)), BackEnd::Cpufreq));
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(choose(Speed::Share(Share(0.01)), &Capabilities::default(), None).is_err());
    assert!(choose(Speed::Clock(KiloHertz(1_000_000)), &Capabilities::default(), None).is_err());
    assert!(choose(Speed::Clock(KiloHertz(5_000_000)), &offers(&[], true), None).is_err());
    assert!(choose(Speed::Share(Share(0.5)), &Capabilities::default(), Some(BackEnd::Msr)).is_err());
    let named = choose(Speed::Share(Share(0.3)), &offers(&[], true), Some(BackEnd::Msr)).unwrap();
    assert_eq!(named.eighths, Some(2));
}
