use super::*;

#[test]
fn specs_name_what_is_wrong() {
    assert_eq!("tap:eft0".parse(), Ok(DeviceSpec::Tap("eft0".into())));
    assert_eq!("plain-tap:eft0".parse(), Ok(DeviceSpec::PlainTap("eft0".into())));
    assert_eq!("pair:/tmp/x".parse(), Ok(DeviceSpec::Pair("/tmp/x".into())));
    for bad in ["tap", "tap:", "tun:x", "plain-tap:", "tap:abcdefghijklmnop", "packet:a/b"] {
        assert!(bad.parse::<DeviceSpec>().is_err(), "{bad}");
    }
}
