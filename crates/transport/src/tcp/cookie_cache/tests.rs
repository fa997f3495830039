use super::*;
use core::net::IpAddr;

const ASK: Offer = Offer::Ask { experimental: false, mss: MSS_UNKNOWN };

fn server(n: u32) -> WireAddress {
    let [_, b, c, d] = n.to_be_bytes();
    IpAddr::from([10, b, c, d]).into()
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn cache() -> (CookieCache, Cookie) {
    (CookieCache::new(Key([1, 2])), Cookie::parse(&[7; 8]).unwrap())
}

#[test]
fn an_unknown_server_is_asked_for_a_cookie() {
    let (mut cache, cookie) = cache();
    assert_eq!(cache.offer(at(1), server(1)), ASK);
    cache.learn(at(1), server(1), cookie, 1400);
    assert_eq!(cache.offer(at(9), server(1)), Offer::Data { cookie: Some(cookie), mss: 1400 });
    assert_eq!(cache.offer(at(9), server(2)), ASK);
    cache.clear();
    assert_eq!(cache.offer(at(9), server(1)), ASK);
}

/// One may be chance.
#[test]
fn after_the_first_each_failure_avoids_a_server_for_longer() {
    let (mut cache, cookie) = cache();
    cache.learn(at(0), server(1), cookie, 1400);
    cache.fail(at(0), server(1), 1300);
    assert_eq!(cache.offer(at(0), server(1)), Offer::Data { cookie: Some(cookie), mss: 1300 });
    let mut now = 0;
    for pause in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
        cache.fail(at(now), server(1), 1300);
        assert_eq!(cache.offer(at(now + pause - 1), server(1)), Offer::Nothing);
        assert_eq!(cache.offer(at(now + pause), server(1)), Offer::Ask { experimental: false, mss: 1300 });
        now += pause;
    }
    cache.learn(at(now), server(1), cookie, 1400);
    cache.fail(at(now), server(1), 1400);
    assert_eq!(cache.offer(at(now), server(1)), Offer::Data { cookie: Some(cookie), mss: 1400 });
    cache.succeed(at(now), server(1), 1400);
    cache.fail(at(now), server(1), 1400);
    assert_ne!(cache.offer(at(now), server(1)), Offer::Nothing, "not in a row");
}

/// As Linux's clients: the standard option, once the experimental one, and then the standard one for good.
#[test]
fn a_server_that_gives_no_cookie_is_asked_in_the_other_option_once() {
    let (mut cache, cookie) = cache();
    let mut asked = Vec::new();
    for _ in 0..4 {
        match cache.offer(at(1), server(1)) {
            Offer::Ask { experimental, .. } => asked.push(experimental),
            other => panic!("{other:?}"),
        }
        cache.refuse(at(1), server(1), 1400);
    }
    assert_eq!(asked, [false, true, false, false]);
    let cookie = cookie.in_option(true);
    cache.learn(at(1), server(1), cookie, 1400);
    cache.refuse(at(1), server(1), 1400);
    assert_eq!(cache.offer(at(1), server(1)), Offer::Data { cookie: Some(cookie), mss: 1400 });
}

#[test]
fn the_oldest_makes_room() {
    let (mut cache, cookie) = cache();
    for n in 0..SERVERS_MAX as u32 {
        cache.learn(at(n as u64), server(n), cookie, 1400);
    }
    cache.succeed(at(5000), server(0), 1300);
    cache.learn(at(5001), server(5000), cookie, 1400);
    assert_eq!(cache.0.len(), SERVERS_MAX);
    assert_eq!(cache.offer(at(5001), server(0)), Offer::Data { cookie: Some(cookie), mss: 1300 });
    assert_eq!(cache.offer(at(5001), server(1)), ASK);
}
