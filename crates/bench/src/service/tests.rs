use super::*;

#[test]
fn the_packaged_unit_says_how_a_supervisor_is_watched_and_started_again() {
    let rules = Rules::read(UNIT).unwrap();
    assert!(rules.pause < rules.watchdog);
    // The keeper waits 2 s for another supervisor if no server lives.
    assert!(rules.pause < Duration::from_secs(2));
}

#[test]
fn a_unit_without_a_watchdog_is_refused() {
    let unit = "Restart=on-failure\nRestartSec=500ms\nWatchdogSec=3s\n";
    let rules = Rules { watchdog: Duration::from_secs(3), pause: Duration::from_millis(500) };
    assert_eq!(Rules::read(unit).unwrap(), rules);
    for (old, new) in [("WatchdogSec=3s", ""), ("3s", "3"), ("500ms", "soon"), ("on-failure", "no")] {
        assert!(Rules::read(&unit.replace(old, new)).is_err(), "{old} became {new}");
    }
}
