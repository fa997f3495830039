use super::*;

impl Queued for u32 {
    fn is_write(&self) -> bool {
        *self >= 100
    }
}

fn taken(inbox: &mut Inbox<u32>, server: Server, budget: usize, marks: usize) -> Vec<u32> {
    let mut taken = Vec::new();
    inbox.take(server, budget, marks, &mut taken);
    taken
}

#[test]
fn a_turn_takes_a_budget_of_each_source_and_leaves_the_rest() {
    let mut inbox = Inbox::default();
    (0..3).for_each(|message| inbox.put(Server::Ip, Some(Server::Tcp), message));
    inbox.put(Server::Ip, Some(Server::Driver), 7);
    assert_eq!(taken(&mut inbox, Server::Ip, 2, usize::MAX), [7, 0, 1]);
    assert!(!inbox.is_empty(Server::Ip));
    assert_eq!(taken(&mut inbox, Server::Ip, 2, usize::MAX), [2]);
    assert!(inbox.is_empty(Server::Ip) && taken(&mut inbox, Server::Ip, 2, usize::MAX).is_empty());
}

#[test]
fn tcp_sees_all_writes_of_programs_and_sees_them_first() {
    let mut inbox = Inbox::default();
    inbox.put(Server::Tcp, Some(Server::Ip), 1);
    (100..103).for_each(|message| inbox.put(Server::Tcp, None, message));
    assert_eq!(taken(&mut inbox, Server::Tcp, 1, usize::MAX), [100, 101, 102, 1]);
    inbox.put(Server::Tcp, Some(Server::Ip), 2);
    inbox.put(Server::Tcp, Some(Server::Front), 103);
    assert_eq!(inbox.from_outside(Server::Tcp).len(), 0);
    assert_eq!(taken(&mut inbox, Server::Tcp, 1, usize::MAX), [103, 2]);
}

#[test]
fn calls_are_messages_like_others_but_come_first() {
    let mut inbox = Inbox::default();
    inbox.put(Server::Tcp, Some(Server::Ip), 1);
    (100..103).for_each(|message| inbox.put(Server::Tcp, Some(Server::Front), message));
    assert_eq!(taken(&mut inbox, Server::Tcp, 1, 1), [100, 1]);
    assert_eq!(taken(&mut inbox, Server::Tcp, 2, 2), [101, 102]);
}
