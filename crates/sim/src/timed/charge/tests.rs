use super::*;

#[test]
fn a_turn_takes_what_waited_when_it_began_and_of_nobody_else() {
    let taken = Taken { of: vec![(ComponentId::IP, 3), (ComponentId::SOCKETS, 1)], frames: 2 };
    let of = |budget: &dyn Budget, from| budget.messages(from);
    assert_eq!((of(&taken, ComponentId::IP), of(&taken, ComponentId::SOCKETS)), (3, 1));
    assert_eq!((of(&taken, ComponentId::UDP), taken.polled(), taken.messages()), (0, 2, 6));
    let steps: Vec<Taken> = taken.one_by_one().collect();
    let counts = steps.iter().map(|one| (of(one, ComponentId::IP), of(one, ComponentId::SOCKETS)));
    assert_eq!(counts.collect::<Vec<_>>(), [(1, 1), (1, 0), (1, 0)]);
    assert_eq!(
        Taken::default().one_by_one().count(),
        1,
        "writes and deadlines have a turn without messages, too"
    );
}
