use super::*;
use eft_cores::indicators::Mix;
use eft_cores::profile::Outcome;
use eft_cores::throughput::Throughput;
use eft_machine::Watts;

fn complaint(path: &Path, machine: &Machine) -> String {
    format!("{:#}", read(path, machine).unwrap_err())
}

#[test]
fn what_is_written_is_read_and_damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/profiles.toml");
    let machine = Machine { online: "0-1".parse().unwrap(), ..Machine::default() };
    assert!(complaint(&path, &machine).contains("no profiles yet"));
    let mut profiles = Profiles::default();
    profiles.record(
        "bulk",
        Mix::default(),
        Outcome { throughput: Throughput(5.0), power: Watts(2.0), ..Outcome::default() },
    );
    write(&path, &profiles, &machine).unwrap();
    assert_eq!(read(&path, &machine).unwrap(), profiles);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a temporary file is left");
    let other = Machine { online: "0-3".parse().unwrap(), ..Machine::default() };
    assert!(complaint(&path, &other).contains("another machine"));
    let text = fs::read_to_string(&path).unwrap().replace("5.0", "6.0");
    fs::write(&path, text).unwrap();
    assert!(complaint(&path, &machine).contains("damaged"));
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(complaint(&path, &machine).contains("no UTF-8 text"));
}
