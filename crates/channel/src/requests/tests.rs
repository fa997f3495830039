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
    assert_eq!(r.next_round(), []);
    assert_eq!(r.next_round(), [lost]);
    let (later, last) = (r.insert('b').unwrap(), r.insert('c').unwrap());
    r.remove(later);
    assert_eq!(r.next_round(), [lost]);
    assert_eq!(r.next_round(), [lost, last]);
    r.renew();
    assert_eq!(r.next_round(), []);
    r.remove(lost);
    assert_eq!((r.next_round(), r.len()), (vec![last], 1));
}
