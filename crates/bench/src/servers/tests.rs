use super::*;

#[test]
fn what_the_clients_say_is_read() {
    let wrk = "Running 1s test @ http://10.79.1.2:8080/10\n  2 threads and 8 connections\n  Thread Stats   Avg\n\
        \x20 51234 requests in 1.10s, 12.14MB read\nRequests/sec:  46576.43\nTransfer/sec:     11.04MB\n";
    assert_eq!(web_rate(wrk).unwrap(), 46576.43);
    let failed = format!("{wrk}  Non-2xx or 3xx responses: 5\n");
    assert!(web_rate(&failed).unwrap_err().to_string().contains("responses: 5"));
    assert!(web_rate("unable to connect").is_err());
    let redis = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"74626.87\",\"0.342\"\n";
    assert_eq!(store_rate(redis).unwrap(), 74626.87);
    assert!(store_rate("\"SET\",\"1.0\"").is_err());
}
