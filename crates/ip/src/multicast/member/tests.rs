use super::*;

fn a(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

fn record(kind: Kind, sources: &[u8]) -> Record {
    Record { kind, group: group(), sources: sources.iter().map(|n| a(*n)).collect() }
}

fn group() -> IpAddr {
    IpAddr::from([239, 1, 2, 3])
}

fn filter(exclude: bool, sources: &[u8]) -> Filter {
    Filter { exclude, sources: sources.iter().map(|n| a(*n)).collect() }
}

#[test]
fn a_change_of_mode_is_reported_as_often_as_the_querier_wants() {
    let mut m = Member::new();
    m.wanted = Filter::new(true);
    for left in [2, 1, 0] {
        assert_eq!(m.changes(group(), 3), [record(Kind::ToExclude, &[])]);
        assert_eq!(m.is_reported(), left == 0);
    }
    m.wanted = Filter::default();
    assert_eq!(m.changes(group(), 1), [record(Kind::ToInclude, &[])]);
    assert!(m.is_reported() && m.is_over());
}

#[test]
fn changes_of_sources_are_reported_each_as_often() {
    let mut m = Member::new();
    m.wanted = filter(false, &[1, 2]);
    assert_eq!(m.changes(group(), 2), [record(Kind::Allow, &[1, 2])]);
    // One goes and one comes before the first change was reported twice.
    m.wanted = filter(false, &[2, 3]);
    assert_eq!(m.changes(group(), 2), [record(Kind::Allow, &[2, 3]), record(Kind::Block, &[1])]);
    assert!(!m.is_reported());
    assert_eq!(m.changes(group(), 2), [record(Kind::Allow, &[3]), record(Kind::Block, &[1])]);
    assert!(m.is_reported());
}

#[test]
fn what_excludes_blocks_what_it_lists() {
    let mut m = Member::new();
    m.wanted = Filter::new(true);
    m.changes(group(), 1);
    m.wanted = filter(true, &[4]);
    assert_eq!(m.changes(group(), 1), [record(Kind::Block, &[4])]);
    m.wanted = Filter::new(true);
    assert_eq!(m.changes(group(), 1), [record(Kind::Allow, &[4])]);
    // The mode and the list change: the list is in the report of the mode.
    m.wanted = filter(false, &[5]);
    assert_eq!(m.changes(group(), 1), [record(Kind::ToInclude, &[5])]);
}

#[test]
fn a_query_about_sources_is_answered_by_those_that_are_wanted() {
    let now = Instant::from_millis(5);
    let mut m = Member::new();
    m.wanted = filter(true, &[1]);
    m.hear(now, vec![a(1), a(2)]);
    m.hear(now, vec![a(3)]);
    assert_eq!(m.answer(group()), Some(record(Kind::IsInclude, &[2, 3])));
    m.hear(now, vec![a(1)]);
    assert_eq!(m.answer(group()), None);
    // One about the group takes its place (RFC 9776 §5.2, rule 4).
    m.hear(now, vec![a(1)]);
    m.hear(now, vec![]);
    m.hear(now, vec![a(9)]);
    assert_eq!(m.answer(group()), Some(record(Kind::IsExclude, &[1])));
}

#[test]
fn queries_about_many_sources_become_one_about_the_group() {
    let now = Instant::from_millis(5);
    let mut m = Member::new();
    m.wanted = Filter::new(true);
    for high in 0..200 {
        m.hear(now, (0..4).map(|low| IpAddr::from([10, 0, high, low])).collect());
        assert!(m.asked.len() <= SOURCES_MAX);
    }
    assert_eq!(m.answer(group()), Some(record(Kind::IsExclude, &[])));
}
