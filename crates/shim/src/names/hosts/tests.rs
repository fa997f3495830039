use super::*;

#[test]
fn names_are_found_whatever_their_case() {
    let text = "127.0.0.1 localhost\n::1 localhost ip6-localhost # six\n10.1.2.3\tweb www.x\n";
    let (found, canonical) = find_addresses(text, "WWW.X.").unwrap();
    assert_eq!(found, ["10.1.2.3".parse::<IpAddr>().unwrap()]);
    assert_eq!(canonical, "web");
    let (found, _) = find_addresses(text, "localhost").unwrap();
    assert_eq!(found.len(), 2);
    assert!(find_addresses(text, "six").is_none());
    assert!(find_addresses("", "localhost").is_some());
}
