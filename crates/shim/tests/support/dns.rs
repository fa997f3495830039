//! The fake network's name server: A records for a few names, one behind a CNAME.

/// Answers a query that came as a datagram; `None` if it is not a query.
pub fn answer_datagram(query: &[u8]) -> Option<Vec<u8>> {
    let mut reply = answer(query)?;
    if reply.len() > 300 {
        reply.truncate(query.len());
        reply[2] |= 2;
        reply[7] = 0;
    }
    Some(reply)
}

/// Answers a query; `None` if it is not one.
pub fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut name = String::new();
    loop {
        let len = *query.get(at)? as usize;
        at += 1;
        if len == 0 {
            break;
        }
        name.push_str(std::str::from_utf8(query.get(at..at + len)?).ok()?);
        name.push('.');
        at += len;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    let question = query.get(12..at + 4)?;
    let mut records: Vec<Vec<u8>> = Vec::new();
    let a = |ip: [u8; 4]| {
        let mut record = vec![0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
        record.extend(ip);
        record
    };
    let mut code = 0;
    match (name.as_str(), kind) {
        ("web.test.", 1) => records.push(a([10, 78, 0, 2])),
        ("many.test.", 1) => {
            records.push(a([10, 78, 0, 2]));
            records.push(a([10, 78, 0, 3]));
        }
        ("alias.test.", 1) => {
            // alias.test CNAME web.test, then web.test A.
            let target = b"\x03web\x04test\x00";
            let mut cname = vec![0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, target.len() as u8];
            cname.extend(target);
            records.push(cname);
            let mut record = target.to_vec();
            record.extend([0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 78, 0, 2]);
            records.push(record);
        }
        // More than a datagram may hold: cut short there, whole over TCP.
        ("big.test.", 1) => records.extend((0..20).map(|i| a([10, 78, 1, i]))),
        ("2.0.78.10.in-addr.arpa.", 12) => {
            let target = b"\x03web\x04test\x00";
            let mut record = vec![0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 60, 0, target.len() as u8];
            record.extend(target);
            records.push(record);
        }
        ("web.test." | "alias.test." | "many.test." | "big.test.", _) => {}
        _ => code = 3,
    }
    let mut reply = query.get(..2)?.to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
    reply.extend(question);
    records.iter().for_each(|r| reply.extend(r));
    Some(reply)
}
