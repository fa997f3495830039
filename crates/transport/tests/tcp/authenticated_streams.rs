//! Streams that TCP-AO protects, while keys, networks and servers change.

use crate::app::App;
use crate::authentication::key;
use crate::script::PORT;
use crate::streams::{bad, plan, run_to_end, seeds};
use crate::world::World;
use eft_base::Random;
use eft_channel::socket::signature_keys::algorithm;
use eft_channel::socket::{AuthenticationWishes, Opt, SignatureKey};
use std::time::Duration;

/// The same key for the other side of a world of two.
fn mirrored(id: u8) -> SignatureKey {
    SignatureKey { send_id: id + 100, receive_id: id, ..key(id) }
}

/// Whole streams between two of us, over bad networks, through crashes, while both change their keys.
#[test]
fn streams_arrive_whatever_happens_to_their_keys() {
    for seed in seeds(40) {
        let mut random = Random::new(seed ^ 0x5925);
        let mut conditions = bad(&mut random);
        conditions.crash = if random.below(2) == 0 { 0.0 } else { 0.002 };
        conditions.ip_crash = if random.below(2) == 0 { 0.0 } else { 0.002 };
        let (up, down) = (random.below(60_000), random.below(60_000));
        let excludes_options = random.below(2) as u8;
        if excludes_options == 0 {
            // Who strips options is found out.
            (conditions.strip_sack, conditions.strip_timestamps) = (false, false);
        }
        let mut world = World::new(seed, conditions);
        for side in 0..2 {
            let keys = [1, 2, 3].map(|id| if side == 0 { mirrored(id) } else { key(id) });
            let algorithm = |id| if id == 2 { algorithm::AES_CMAC } else { algorithm::HMAC_SHA1 };
            world.sides[side].app.keys = keys
                .map(|key| SignatureKey { excludes_options, algorithm: algorithm(key.send_id % 100), ..key })
                .to_vec();
        }
        // The client begins with the first of its keys.
        let mut first = AuthenticationWishes::default();
        first.choose(Some(101), Some(1));
        world.sides[0].app.options = vec![(Opt::Authentication, first.word())];
        App::listen(&mut world, 1, PORT, 16, plan(down, up));
        App::connect(&mut world, 0, PORT, plan(up, down));
        for _ in 0..random.below(6) {
            world.run_for(Duration::from_millis(random.below(400)));
            let (side, id) = (random.below(2) as usize, 1 + random.below(3) as u8);
            let Some(socket) = world.sides[side].app.streams.first().map(|stream| stream.socket) else {
                continue;
            };
            let page = world.sides[side].page(socket);
            let mut wishes = page.authentication_wishes();
            let next = if side == 0 { id } else { id + 100 };
            wishes.choose(None, Some(next));
            page.set_authentication_wishes(&wishes);
            world.dirty(side, socket);
        }
        run_to_end(&mut world);
        for side in 0..2 {
            let names = ["drop_unsigned", "drop_bad_signature", "drop_unknown_key"];
            let dropped = names.map(|name| world.sides[side].counter(name));
            assert_eq!(dropped, [0; 3], "seed {seed}");
        }
    }
}
