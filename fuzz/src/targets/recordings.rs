//! Files for `eft replay`: damaged anywhere they are refused in one line, live again, or differ; nothing else.

use super::Target;
use crate::mutate::Corpus;
use eft_base::{Endpoint, Random};
use eft_channel::Segment;
use eft_channel::socket::Geometry;
use eft_record::file;
use eft_record::replay::Failure;
use eft_sim::simulation::{Settings, address};
use eft_sim::{Conditions, Datagrams, Simulation};
use std::time::Duration;

/// Memory of one pool at most; only what is written of it costs something.
const MEMORY_MAX: usize = 256 << 20;

pub struct Recordings {
    /// Whole files, and the values in them.
    files: Vec<(Corpus, Vec<Vec<u8>>)>,
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
    s.applications[0].exchange(Datagrams { port: 0, to, count: 10, len_max: 3000 });
    s.stream(10_000, 10_000, 0);
    s.run(Duration::from_secs(600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    let lives = s.stacks.iter().flat_map(|k| &k.lives);
    lives.map(|life| file::to_bytes(life, usize::MAX).expect("it is written to memory")).collect()
}

impl Recordings {
    pub fn new(random: &mut Random) -> Recordings {
        let parts = |file: Vec<u8>| {
            let values = file::values(&file).expect("it is whole").into_iter().map(<[u8]>::to_vec).collect();
            assert_eq!(try_out(&file), Ok(()), "an undamaged file lives again");
            (Corpus::new(vec![file], 1 << 24), values)
        };
        Recordings { files: files(random.next_u64()).into_iter().map(parts).collect() }
    }
}

/// What becomes of a file; `Err` is what it is refused with.
fn try_out(bytes: &[u8]) -> Result<(), String> {
    let life = file::from_bytes(bytes)?;
    let recording = life.recording.borrow();
    let memory = |len: usize| (len <= MEMORY_MAX).then(|| Segment::heap(len));
    match life.again_in(&recording, memory) {
        Err(failure @ Failure::Differs { .. }) => Err(failure.to_string().replace('\n', " ")),
        Err(Failure::Unusable(why)) => Err(why),
        Ok(()) => Ok(()),
    }
}

impl Target for Recordings {
    fn feed(&mut self, random: &mut Random) {
        let (whole, values) = &self.files[random.below(self.files.len() as u64) as usize];
        let bytes = if random.chance(0.3) {
            whole.mutated(random)
        } else {
            // Past the checksums: the head, often, or some entries.
            let mut values = values.clone();
            for _ in 0..1 + random.below(3) {
                let all = values.len() as u64;
                let i = if random.chance(0.2) { 0 } else { random.below(all) } as usize;
                if !values[i].is_empty() {
                    values[i] = Corpus::new(vec![values[i].clone()], 1 << 20).mutated(random);
                }
            }
            file::of_values(&values)
        };
        if let Err(why) = try_out(&bytes) {
            assert!(!why.contains('\n'), "an error is one line: {why:?}");
        }
    }
}
