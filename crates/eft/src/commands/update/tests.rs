use super::*;

#[test]
fn who_comes_after_whom() {
    let names = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let all = names("sockets tcp udp ip filter nic:eth0 nic:eth1 cores");
    assert_eq!(in_order(&all), names("nic:eth0 nic:eth1 ip filter udp tcp sockets cores"));
}
