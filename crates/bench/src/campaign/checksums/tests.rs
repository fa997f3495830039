use super::found_by_host;

#[test]
fn the_host_counts_by_protocol() {
    let snmp = "Tcp: InSegs InErrs OutRsts InCsumErrors\nTcp: 9 8 7 6\nUdp: InDatagrams InCsumErrors MemErrors\nUdp: 5 4 3\n";
    assert_eq!(found_by_host(snmp), 10);
    assert_eq!(found_by_host(""), 0);
}
