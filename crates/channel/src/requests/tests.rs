use super::*;

#[test]
fn stale_and_foreign_ids_are_refused() {
    let mut r = Requests::new(3, 0);
    let a = r.insert('a').unwrap();
    let b = r.insert('b').unwrap();
    let c = r.insert('c').unwrap();
    assert_eq!(r.insert('d'), Err('d'));
    assert_eq!(r.remove(b), Some('b'));
    assert_eq!(r.remove(b), None);
    let d = r.insert('d').unwrap();
    assert_eq!(d.index, b.index);
    assert_eq!(r.get(b), None);
    assert_eq!(r.remove(RequestId { index: 99, generation: 1 }), None);
    assert_eq!(r.iter().map(|(_, v)| *v).collect::<alloc::string::String>(), "acd");
    assert_eq!((r.remove(a), r.remove(c), r.remove(d)), (Some('a'), Some('c'), Some('d')));
    assert!(r.is_empty());
}

#[test]
fn an_answer_to_a_predecessor_answers_nothing() {
    let mut lives: Vec<Requests<u32>> = (1..100).map(|life| Requests::new(8, life)).collect();
    for life in 0..lives.len() {
        for use_ in 0..1000 {
            let id = lives[life].insert(use_).unwrap();
            if life + 1 < lives.len() {
                lives[life + 1].insert(0).unwrap();
                assert_eq!(lives[life + 1].remove(id), None, "life {life}, use {use_}");
                let ids = lives[life + 1].ids();
                ids.into_iter().for_each(|id| assert!(lives[life + 1].remove(id).is_some()));
            }
            assert_eq!(lives[life].remove(id), Some(use_));
        }
    }
}

#[test]
fn requests_that_wait_for_whole_rounds_are_overdue() {
    let mut r = Requests::new(8, 1);
    let lost = r.insert('a').unwrap();
    assert_eq!(r.next_round(8), []);
    assert_eq!(r.next_round(8), [lost]);
    let (later, last) = (r.insert('b').unwrap(), r.insert('c').unwrap());
    r.remove(later);
    assert_eq!(r.next_round(8), [lost]);
    assert_eq!(r.next_round(8), [lost, last]);
    r.renew();
    assert_eq!(r.next_round(8), []);
    r.remove(lost);
    assert_eq!((r.next_round(8), r.len()), (vec![last], 1));
}

#[test]
fn requests_that_are_never_answered_do_not_keep_others_from_being_repeated() {
    let mut r = Requests::new(8, 1);
    let all: Vec<RequestId> = "abcde".chars().map(|c| r.insert(c).unwrap()).collect();
    assert_eq!(r.next_round(2), []);
    assert_eq!(r.next_round(2), all[..2]);
    assert_eq!(r.next_round(2), all[2..4]);
    let newer = r.insert('f').unwrap();
    assert_eq!(r.next_round(2), [all[4], all[0]]);
    assert_eq!(r.next_round(2), [all[1], all[2]]);
    assert_eq!(r.next_round(2), [all[3], all[0]]);
    let by_patience = [all[4], newer, all[1], all[2], all[0], all[3]];
    assert_eq!(r.next_round(8), by_patience, "those first that have waited longest since they were repeated");
}
