//! Files for `eft replay`: damaged anywhere they are refused in one line, live again, or differ; nothing else.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use eft_base::Endpoint;
use eft_channel::Segment;
use eft_channel::socket::Geometry;
use eft_record::file;
use eft_record::replay::Failure;
use eft_sim::simulation::{Settings, address};
use eft_sim::{Conditions, Datagrams, Simulation};
use std::sync::OnceLock;
use std::time::Duration;

/// Memory of one pool at most; only what is written of it costs something.
const MEMORY_MAX: usize = 256 << 20;

/// A whole file, and the values in it.
type Whole = (Examples, Vec<Vec<u8>>);

pub struct Recordings {
    files: &'static [Whole],
}

/// A short stream and some datagrams, recorded on both sides.
fn files(seed: u64) -> Vec<Vec<u8>> {
    let conditions = Conditions { loss: 0.02, jitter: Duration::from_micros(200), ..Conditions::default() };
    let geometry = Geometry { slots: 8, send_len: 8192, receive_len: 8192 };
    let mut s = Simulation::new(seed, Settings { conditions, geometry, record: true, ..Settings::default() });
    s.serve(10_000, 10_000, 0);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    let to = Some(Endpoint::new(address(1).address, 53));
    s.applications[0].exchange(Datagrams { port: 0, to, count: 10, len_max: 3000, ..Datagrams::default() });
    s.stream(10_000, 10_000, 0);
    s.run(Duration::from_secs(600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    let lives = s.stacks.iter().flat_map(|k| &k.lives);
    lives.map(|life| file::to_bytes(life, usize::MAX).expect("it is written to memory")).collect()
}

impl Recordings {
    pub fn new(source: &mut Source) -> Recordings {
        let parts = |file: Vec<u8>| {
            let values = file::values(&file).expect("it is whole").into_iter().map(<[u8]>::to_vec).collect();
            assert_eq!(try_out(&file), Ok(()), "an undamaged file lives again");
            (Examples::new(vec![file], 1 << 24), values)
        };
        // A simulation takes longer than all inputs that a fuzzer makes of its files: some are made, once each.
        static MADE: [OnceLock<Vec<Whole>>; 4] = [const { OnceLock::new() }; 4];
        let seed = source.below(MADE.len() as u64);
        let made = MADE[seed as usize].get_or_init(|| files(seed).into_iter().map(parts).collect());
        Recordings { files: made }
    }
}

/// Replays a file; `Err` is the line with which it is refused.
fn try_out(bytes: &[u8]) -> Result<(), String> {
    let life = file::from_bytes(bytes).map_err(|why| why.to_string())?;
    let recording = life.recording.borrow();
    let memory = |len: usize| (len <= MEMORY_MAX).then(|| Segment::heap(len));
    match life.again_in(&recording, memory) {
        Err(failure @ (Failure::Differs { .. } | Failure::Survived { .. } | Failure::Outlived(_))) => {
            Err(failure.to_string().replace('\n', " "))
        }
        Err(Failure::Unusable(why)) => Err(why),
        Ok(()) => Ok(()),
    }
}

impl Target for Recordings {
    fn feed(&mut self, source: &mut Source) {
        let (whole, values) = &self.files[source.below(self.files.len() as u64) as usize];
        let bytes = if source.chance(0.3) {
            whole.mutated(source)
        } else {
            // Past the checksums: the head, often, or some entries.
            let mut values = values.clone();
            for _ in 0..1 + source.below(3) {
                let all = values.len() as u64;
                let i = if source.chance(0.2) { 0 } else { source.below(all) } as usize;
                if !values[i].is_empty() {
                    values[i] = Examples::new(vec![values[i].clone()], 1 << 20).mutated(source);
                }
            }
            file::of_values(&values)
        };
        if let Err(why) = try_out(&bytes) {
            assert!(!why.contains('\n'), "an error is one line: {why:?}");
        }
    }
}
