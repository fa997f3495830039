use super::*;

fn is_write(message: &u32) -> bool {
    *message >= 100
}

#[test]
fn a_turn_takes_a_budget_of_each_source_and_leaves_the_rest() {
    let mut inbox = Inbox::default();
    (0..3).for_each(|message| inbox.put(Server::Ip, Some(Server::Tcp), message));
    inbox.put(Server::Ip, Some(Server::Driver), 7);
    assert_eq!(inbox.take(Server::Ip, 2, usize::MAX, is_write), [7, 0, 1]);
    assert!(!inbox.is_empty(Server::Ip));
    assert_eq!(inbox.take(Server::Ip, 2, usize::MAX, is_write), [2]);
    assert!(inbox.is_empty(Server::Ip) && inbox.take(Server::Ip, 2, usize::MAX, is_write).is_empty());
}

#[test]
fn tcp_sees_all_writes_of_programs_and_sees_them_first() {
    let mut inbox = Inbox::default();
    inbox.put(Server::Tcp, Some(Server::Ip), 1);
    (100..103).for_each(|message| inbox.put(Server::Tcp, None, message));
    assert_eq!(inbox.take(Server::Tcp, 1, usize::MAX, is_write), [100, 101, 102, 1]);
    inbox.put(Server::Tcp, Some(Server::Ip), 2);
    inbox.put(Server::Tcp, Some(Server::Front), 103);
    assert_eq!(inbox.from_outside(Server::Tcp).len(), 0);
    assert_eq!(inbox.take(Server::Tcp, 1, usize::MAX, is_write), [103, 2]);
}

#[test]
fn calls_are_messages_like_others_but_come_first() {
    let mut inbox = Inbox::default();
    inbox.put(Server::Tcp, Some(Server::Ip), 1);
    (100..103).for_each(|message| inbox.put(Server::Tcp, Some(Server::Front), message));
    assert_eq!(inbox.take(Server::Tcp, 1, 1, is_write), [100, 1]);
    assert_eq!(inbox.take(Server::Tcp, 2, 2, is_write), [101, 102]);
}
