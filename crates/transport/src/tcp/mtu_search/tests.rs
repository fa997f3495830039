use super::*;

const BOUNDS: Bounds = Bounds { headers: 40, ceiling: 1500 };

/// What a search over a path that takes packets of `mtu` finds, and with how many probes.
fn found(search: &mut MtuSearch, mut now: Instant, mtu: u16, bounds: Bounds) -> (u16, usize) {
    let mut probes = 0;
    while let Some(size) = search.next(now, bounds) {
        assert!(size > search.limit() && size <= bounds.ceiling, "{size} of a path of {mtu}");
        now += Duration::from_millis(10);
        probes += 1;
        search.on_sent(Range { start: 0, end: 1 }, size);
        assert_eq!(search.next(now, bounds), None, "one at a time");
        if size > mtu {
            search.on_lost(now);
        } else {
            assert!(!search.on_acknowledged(0));
            assert!(search.on_acknowledged(1));
        }
    }
    (search.limit(), probes)
}

#[test]
fn a_search_finds_what_each_path_takes() {
    for mtu in 1064..=1500 {
        let mut search = MtuSearch { mode: MtuProbing::Always, ..MtuSearch::default() };
        search.begin(Instant::ZERO, BOUNDS);
        assert_eq!(search.limit(), 1064);
        let (limit, probes) = found(&mut search, Instant::ZERO, mtu, BOUNDS);
        assert!(limit <= mtu && mtu - limit < NARROW && probes <= 8, "{mtu}: {limit} by {probes} probes");
    }
    let mut search = MtuSearch { mode: MtuProbing::Always, ..MtuSearch::default() };
    search.begin(Instant::ZERO, BOUNDS);
    assert_eq!(found(&mut search, Instant::ZERO, 1500, BOUNDS).0, 1500, "all of a good path is used");
}

#[test]
fn the_first_probe_is_the_middle_as_on_linux() {
    let mut search = MtuSearch { mode: MtuProbing::Always, ..MtuSearch::default() };
    search.start(Instant::ZERO, 552, BOUNDS);
    assert_eq!(search.next(Instant::ZERO, BOUNDS), Some(1026));
}

#[test]
fn a_black_hole_makes_segments_smaller_step_by_step() {
    let now = Instant::ZERO;
    let mut search = MtuSearch::default();
    search.begin(now, BOUNDS);
    assert_eq!((search.limit(), search.next(now, BOUNDS)), (u16::MAX, None), "not before one is found");
    let steps: Vec<(bool, u16)> =
        (0..7).map(|_| (search.on_black_hole(now, BOUNDS), search.limit() - 40)).collect();
    assert_eq!(steps[..5], [(true, 1024), (true, 512), (true, 256), (true, 128), (true, 64)]);
    assert_eq!(steps[5..], [(true, 48), (false, 48)]);
    let mut off = MtuSearch { mode: MtuProbing::Off, ..MtuSearch::default() };
    assert!(!off.on_black_hole(now, BOUNDS) && off.limit() == u16::MAX);
}

#[test]
fn segments_of_ipv6_are_as_large_as_every_link_takes() {
    let bounds = Bounds { headers: 60, ceiling: 1500 };
    let mut search = MtuSearch::default();
    assert!(search.on_black_hole(Instant::ZERO, bounds));
    assert_eq!(search.limit(), 1280);
    assert!(!search.on_black_hole(Instant::ZERO, bounds));
    assert_eq!(search.limit(), 1280);
}

#[test]
fn what_ip_says_bounds_the_search() {
    let mut search = MtuSearch { mode: MtuProbing::Always, ..MtuSearch::default() };
    search.begin(Instant::ZERO, BOUNDS);
    search.cap(1200);
    assert_eq!(search.next(Instant::ZERO, BOUNDS), Some(1132));
    search.cap(1000);
    assert_eq!((search.limit(), search.next(Instant::ZERO, BOUNDS)), (1000, None));
}

#[test]
fn a_path_is_tried_again_after_ten_minutes() {
    let mut search = MtuSearch { mode: MtuProbing::Always, ..MtuSearch::default() };
    search.begin(Instant::ZERO, BOUNDS);
    let (limit, _) = found(&mut search, Instant::ZERO, 1400, BOUNDS);
    assert!(limit <= 1400);
    assert_eq!(search.next(Instant::from_millis(590_000), BOUNDS), None);
    assert_eq!(found(&mut search, Instant::from_millis(700_000), 1500, BOUNDS).0, 1500);
}

#[test]
fn a_successor_goes_on_where_its_predecessor_was() {
    let mut search = MtuSearch::default();
    search.resume(Instant::ZERO, 1460, BOUNDS);
    assert_eq!(search.limit(), u16::MAX, "there was no search");
    search.resume(Instant::ZERO, 1024, BOUNDS);
    assert_eq!(search.limit(), 1064);
    assert_eq!(found(&mut search, Instant::ZERO, 1500, BOUNDS).0, 1500);
}
