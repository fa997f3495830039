use super::*;
use alloc::format;
use alloc::string::ToString;

const GOOD: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\"]\n\
        [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.77.0.1\"\n";

fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    let e = Config::parse(GOOD.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    assert_eq!(e.lines().count(), 1, "{e}");
    e
}

#[test]
fn good_and_empty() {
    assert_eq!(Config::parse(GOOD.as_bytes()).unwrap().route.len(), 1);
    assert_eq!(Config::parse(b"").unwrap(), Config::default());
}

#[test]
fn errors_are_one_clear_line() {
    assert!(error("10.77.0.1\"", "10.78.0.1\"").contains("no interface's network"));
    assert!(error("10.77.0.1\"", "10.77.0.2\"").contains("another host's"));
    assert!(error("10.77.0.2/24", "10.77.0.0/24").contains("network's own"));
    assert!(error("10.77.0.2/24", "10.77.0.2/33").contains("expected ADDRESS/PREFIX"));
    assert!(error("10.77.0.2/24", "224.0.0.1/24").contains("not the address of one host"));
    assert!(error("10.77.0.2/24\"", "10.77.0.2/24\", \"10.77.0.2/8\"").contains("twice"));
    assert!(error("index = 0", "index = 255").contains("below 255"));
    assert!(error("index = 0", "indx = 0").contains("line 2"));
    assert!(error("[[route]]", "[[route").contains("line"));
    assert!(error("gateway", "interface = \"eft9\"\ngateway").contains("no interface eft9"));
    assert!(error("gateway = \"10.77.0.1\"", "metric = 5").contains("needs a gateway or an interface"));
    let neighbour = |address: &str, mac: &str, interface: &str| {
        let table = format!(
            "[[neighbour]]\naddress = \"{address}\"\nmac = \"{mac}\"\ninterface = \"{interface}\"\n[[route]]"
        );
        error("[[route]]", &table)
    };
    assert!(neighbour("10.77.0.7", "02:00:00:00:00:07", "eft9").contains("no interface eft9"));
    assert!(neighbour("10.77.0.7", "03:00:00:00:00:07", "eft0").contains("one host's link address"));
    assert!(neighbour("10.77.0.7", "02:00:00:00:00", "eft0").contains("six bytes"));
    for nobody in ["10.77.0.2", "10.77.0.255", "224.0.0.1", "0.0.0.0"] {
        assert!(neighbour(nobody, "02:00:00:00:00:07", "eft0").contains("another host's"), "{nobody}");
    }
    assert!(error("gateway", "metric = -1\ngateway").contains("line"));
    assert!(
        error("gateway = \"10.77.0.1\"", "gateway = \"fe80::1\"\ninterface = \"eft0\"").contains("families")
    );
    assert_eq!(Config::parse(&[0xff]), Err(ConfigError::NotUtf8));
}
