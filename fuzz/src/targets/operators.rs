//! What operators say to a supervisor, and what a journal says to the eft that finds it.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use eft_host::journal;
use eft_linux::supervisor::request;

pub struct OperatorRequests {
    examples: Examples,
}

impl OperatorRequests {
    pub fn new() -> OperatorRequests {
        let texts = [
            r#"{ "op": "ps" }"#,
            r#"{ "op": "kill", "component": "tcp" }"#,
            r#"{ "op": "place", "component": "ip", "cpu": 1, "dedicated": true }"#,
            r#"{ "op": "place", "component": "ip", "cpu": null, "dedicated": false }"#,
            r#"{ "op": "pf-load", "rules": "pass in\nblock return out \"x\"" }"#,
            r#"{ "op": "pf-show", "what": "states" }"#,
            r#"{ "op": "capture", "interface": 255 }"#,
            r#"[[[[[[[[ { "op": { "op": 1e400 , "stop" : -1 } } ]]]]]]]]"#,
        ];
        OperatorRequests { examples: Examples::of_texts(&texts, 4000) }
    }
}

impl Target for OperatorRequests {
    fn feed(&mut self, source: &mut Source) {
        let bytes = match source.below(200) {
            // Deeper than any parser may recurse.
            0 => vec![b"[{"[source.below(2) as usize]; 1 << 16],
            1..100 => self.examples.mutated(source),
            _ => self.examples.mutated_text(source).into_bytes(),
        };
        match request::parse(&bytes) {
            Ok(r) => {
                let text = serde_json::to_vec(&r).expect("a request is JSON");
                assert_eq!(request::parse(&text).as_ref(), Ok(&r), "{bytes:?}");
            }
            Err(e) => assert!(!e.to_string().chars().any(char::is_control), "an error is one line: {e:?}"),
        }
    }
}

pub struct JournalText {
    examples: Examples,
}

impl JournalText {
    pub fn new() -> JournalText {
        let owner = r#""owner":{"tid":77,"started":12345}"#;
        let task = r#"{"process":9,"id":{"tid":9,"started":3},"old":"0-3","new":"0"}"#;
        let changes = [
            r#""change":"write","path":"/sys/a","old":"1","new":"0""#.to_string(),
            r#""change":"make-cgroup","path":"/sys/fs/cgroup/eft""#.to_string(),
            format!(r#""change":"masks","tasks":[{task},{task}]"#),
            format!(r#""change":"offline","cpu":1,"cpusets":[["/a","0-1"]],"tasks":[{task}]"#),
            r#""change":"expedite""#.to_string(),
            r#""change":"msr","cpu":1,"register":410,"old":0,"new":18446744073709551615"#.to_string(),
        ];
        let line = |(i, change): (usize, &String)| format!("{{\"id\":{},{owner},{change}}}\n", i + 1);
        let lines: Vec<String> = changes.iter().enumerate().map(line).collect();
        let mut texts = vec![lines.concat(), lines.concat() + "{\"done\":2}\n{\"done\":5}\n"];
        texts.extend(lines);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for text in &texts {
            assert!(!journal::read(text.as_bytes()).0.is_empty(), "{text}");
        }
        JournalText { examples: Examples::of_texts(&texts, 8000) }
    }
}

impl Target for JournalText {
    fn feed(&mut self, source: &mut Source) {
        let mut text = match source.chance(0.5) {
            true => self.examples.mutated(source),
            false => self.examples.mutated_text(source).into_bytes(),
        };
        let (entries, next) = journal::read(&text);
        assert!(entries.iter().all(|e| e.id < next), "a number would be given twice");
        // What is read can be written and read again.
        let mut written = Vec::new();
        for e in &entries {
            written.extend(serde_json::to_vec(e).expect("an entry is JSON"));
            written.push(b'\n');
        }
        assert_eq!(journal::read(&written).0, entries);
        // Whatever the text is, undoing everything leaves nothing to be undone.
        text.push(b'\n');
        for e in &entries {
            text.extend(format!("{{\"done\":{}}}\n", e.id).bytes());
        }
        assert_eq!(journal::read(&text).0, []);
    }
}
