//! The engine in its loop, with a world that records its effects.

use super::*;
use crate::history::Outcome;
use crate::sample::{ComponentSample, CpuSample, QueueSample};
use alloc::vec;
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::status::Status;
use eft_component::{Server, World};
use eft_machine::CpuId;
use serde_json::{Value, json};

const STACK: [ComponentId; 3] = [ComponentId::TCP, ComponentId::IP, ComponentId::nic(0)];
const MS: u64 = 1_000_000;

#[derive(Default)]
struct Noting {
    now: Instant,
    effects: Vec<Effect>,
}

impl World for Noting {
    type Effect = Effect;

    fn now(&mut self) -> Instant {
        self.now
    }

    fn wake(&mut self, _: ComponentId, _: Wake, _: &Doorbell) {}

    fn perform(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn accuse(&mut self, _: ComponentId) {}
}

struct Bench {
    server: Server<Cores>,
    world: Noting,
}

fn view(peer: ComponentId, cpu: Option<CpuId>, moving: bool) -> MemberView {
    MemberView {
        peer,
        name: peer.to_string(),
        generation: 1,
        pid: None,
        running: true,
        cpu,
        dedicated: false,
        alone: false,
        moving,
    }
}

/// `[scheduling]` with two managed CPUs, of which an idle stack needs the first and parks the other.
fn settings(policy: &str) -> Scheduling {
    let settings = json!({ "policy": policy, "managed": "1-2", "unneeded": "park" });
    serde_json::from_value(settings).unwrap()
}

fn survey() -> Box<Survey> {
    let machine = Machine { managed: "1-2".parse().unwrap(), ..Machine::of_equals(3) };
    Box::new(Survey { machine, duty_levels: Some(vec![]), profiles: Profiles::default() })
}

/// Of an idle stack.
fn idle(at_ns: u64) -> Sample {
    let component = |peer: &ComponentId| ComponentSample {
        name: peer.to_string(),
        generation: 1,
        running: true,
        heartbeat: at_ns / MS,
        accounted_to: Instant(at_ns),
        sleeping: Duration::from_nanos(at_ns),
        queues: vec![QueueSample { from: "x".into(), capacity: 64, ..QueueSample::default() }],
        ..ComponentSample::default()
    };
    let cpu = |cpu: CpuId| CpuSample {
        cpu,
        online: true,
        managed: cpu > CpuId(0),
        speed: Share::ALL,
        idle: Duration::from_nanos(at_ns),
        ..CpuSample::default()
    };
    Sample {
        at: Instant(at_ns),
        components: STACK.iter().map(component).collect(),
        cpus: (0..3).map(CpuId).map(cpu).collect(),
        energy: None,
    }
}

impl Bench {
    /// Configured up to `Begin`, with every component placed anywhere.
    fn new(settings: Scheduling, in_force: Wanted) -> Bench {
        let server = Server::new(Cores::default(), Status::heap(), 1);
        let mut bench = Bench { server, world: Noting { now: Instant(MS), ..Noting::default() } };
        bench.hear(Event::Settings(Ok(settings)));
        let anywhere = Place { cpu: None, dedicated: false };
        let places = STACK.iter().map(|peer| (peer.to_string(), anywhere)).collect();
        bench.hear(Event::Topology(Ok(places)));
        bench.hear(Event::InForce(in_force));
        for peer in STACK {
            bench.hear(Event::Member(view(peer, None, false)));
        }
        bench.hear(Event::Begin);
        bench
    }

    /// The effects after an event.
    fn tell(&mut self, event: Event) -> Vec<Effect> {
        self.hear(event);
        self.turn()
    }

    fn hear(&mut self, event: Event) {
        self.server.event(self.world.now, event);
    }

    fn turn(&mut self) -> Vec<Effect> {
        self.server.step(&mut self.world, 1);
        core::mem::take(&mut self.world.effects)
    }

    fn sample(&mut self, purpose: Purpose) -> Vec<Effect> {
        let sample = Box::new(idle(self.world.now.0));
        self.tell(Event::Sample { purpose, sample, cost: Cost::default() })
    }

    fn ask(&mut self, question: Value) -> Vec<Effect> {
        self.tell(Event::Asked { key: "k".into(), question: question.to_string().into_bytes() })
    }

    fn engine(&self) -> &Cores {
        self.server.component()
    }

    fn outcomes(&self) -> Vec<String> {
        self.engine().history().entries().map(|kept| kept.outcome.to_string()).collect()
    }

    /// Runs until the components have been told where to move.
    fn arranging(mut self) -> (Bench, Vec<Effect>) {
        assert!(matches!(self.turn()[..], [Effect::Survey { profiles: None, .. }]));
        let asked = self.tell(Event::Surveyed(Ok(survey())));
        assert!(matches!(asked[..], [Effect::Sample(Purpose::Begin { key: None })]));
        let asked = self.sample(Purpose::Begin { key: None });
        (self, asked)
    }

    fn arrive(&mut self, cpu: CpuId) -> Vec<Effect> {
        for peer in STACK {
            assert!(self.turn().iter().all(|effect| matches!(effect, Effect::QuickSample)));
            self.hear(Event::Member(view(peer, Some(cpu), false)));
        }
        self.turn()
    }
}

fn answer(effects: &[Effect]) -> Value {
    let [Effect::Answer { key, value }] = effects else { panic!("{effects:?}") };
    assert_eq!(key, "k");
    serde_json::from_slice(value).unwrap()
}

#[test]
fn a_plan_is_applied_step_by_step_and_remembered_before_room_is_taken_away() {
    let (mut bench, asked) = Bench::new(settings("adaptive"), Wanted::default()).arranging();
    let [Effect::Arrange(places)] = &asked[..] else { panic!("{asked:?}") };
    assert!(places.iter().all(|(_, place)| *place == Place { cpu: Some(CpuId(1)), dedicated: false }));
    assert_eq!((places.len(), bench.outcomes()), (3, vec!["under way".into()]));
    // No room is taken away while a component is moving.
    assert!(bench.tell(Event::Member(view(STACK[0], Some(CpuId(1)), true))).is_empty());
    let asked = bench.arrive(CpuId(1));
    let [Effect::Remember(applied), Effect::Change { ticket, change }] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((change.park.to_string().as_str(), change.unpark.is_empty()), ("2", true));
    assert!(bench.engine().applied().places.is_empty());
    assert!(bench.tell(Event::Changed { ticket: *ticket, result: Ok(()) }).is_empty());
    assert_eq!((applied, bench.outcomes()), (bench.engine().applied(), vec!["applied".into()]));
    assert_eq!(applied.parked, [CpuId(2)].into());
    // At the end the host is as it was, and that is remembered for a successor.
    let asked = bench.tell(Event::End);
    let [Effect::Change { ticket, change }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((change.unpark.to_string().as_str(), change.park.is_empty()), ("2", true));
    let asked = bench.tell(Event::Changed { ticket: *ticket, result: Ok(()) });
    assert!(matches!(&asked[..], [Effect::Remember(nothing)] if *nothing == Wanted::default()), "{asked:?}");
}

#[test]
fn who_does_not_arrive_holds_the_rest_up_for_a_fifth_of_a_second() {
    let (mut bench, _) = Bench::new(settings("adaptive"), Wanted::default()).arranging();
    bench.world.now += applying::ARRIVAL - Duration::from_millis(1);
    assert!(!bench.turn().iter().any(|effect| matches!(effect, Effect::Change { .. })));
    bench.world.now += Duration::from_millis(1);
    let asked = bench.turn();
    let [Effect::Remember(_), Effect::Change { ticket, .. }] = &asked[..] else { panic!("{asked:?}") };
    bench.tell(Event::Changed { ticket: *ticket, result: Ok(()) });
    assert_eq!(bench.outcomes(), [Outcome::AppliedLate.to_string()]);
}

#[test]
fn what_cannot_be_carried_out_is_taken_back_with_one_line() {
    let (mut bench, _) = Bench::new(settings("adaptive"), Wanted::default()).arranging();
    let asked = bench.arrive(CpuId(1));
    let [Effect::Remember(_), Effect::Change { ticket, .. }] = &asked[..] else { panic!("{asked:?}") };
    let asked = bench
        .tell(Event::Changed { ticket: *ticket, result: Err(EngineError::Host("CPU 2 is busy".into())) });
    let [Effect::Complain(line), Effect::Change { ticket: back, change }, Effect::Remember(left)] =
        &asked[..]
    else {
        panic!("{asked:?}")
    };
    assert_eq!(*left, Wanted::default());
    assert_eq!(line, "the plan was not carried out: CPU 2 is busy");
    assert_eq!(change.unpark.to_string(), "2");
    assert_eq!(bench.outcomes(), ["not carried out: CPU 2 is busy"]);
    assert_eq!(answer(&bench.ask(json!({ "what": "status" })))["trouble"], "CPU 2 is busy");
    // Nothing is in force, and nothing is remembered as in force.
    assert!(bench.tell(Event::Changed { ticket: *back, result: Ok(()) }).is_empty());
    assert_eq!(*bench.engine().applied(), Wanted::default());
    // The supervisor's refusal is told as well.
    let (mut bench, _) = Bench::new(settings("adaptive"), Wanted::default()).arranging();
    bench.tell(Event::Refused("there is no CPU 7".into()));
    assert_eq!(bench.outcomes(), ["not carried out: there is no CPU 7"]);
}

#[test]
fn room_is_made_before_anybody_moves_and_the_operator_is_answered_then() {
    let place = Place { cpu: Some(CpuId(1)), dedicated: false };
    let places = STACK.iter().map(|peer| (peer.to_string(), place)).collect();
    let in_force = Wanted { places, parked: [CpuId(2)].into(), ..Wanted::default() };
    let mut bench = Bench::new(settings("adaptive"), in_force.clone());
    bench.turn();
    bench.tell(Event::Surveyed(Ok(survey())));
    // It goes on from its predecessor's plan.
    assert!(bench.sample(Purpose::Begin { key: None }).is_empty());
    assert_eq!((bench.engine().applied(), bench.outcomes()), (&in_force, vec!["the plan stays".into()]));
    let asked = bench.ask(json!({ "what": "policy", "policy": "fixed" }));
    let [Effect::Change { ticket, change }, told] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(change.unpark.to_string(), "2");
    assert_eq!(answer(core::slice::from_ref(told))["scheduling"]["policy"], "fixed");
    let asked = bench.tell(Event::Changed { ticket: *ticket, result: Ok(()) });
    let [Effect::Arrange(places), Effect::Remember(applied)] = &asked[..] else { panic!("{asked:?}") };
    assert!(places.iter().all(|(_, place)| place.cpu.is_none()) && applied.parked.is_empty());
    // Now nothing is observed.
    assert_eq!(bench.server.component().deadline(), None);
}

#[test]
fn a_policy_that_cannot_be_had_changes_nothing_and_the_next_one_waits_for_its_turn() {
    let mut bench = Bench::new(settings("adaptive"), Wanted::default());
    bench.turn();
    // Two choices before the first one's survey has come.
    assert!(
        bench.ask(json!({ "what": "policy", "policy": "adaptive", "objective": "least-power" })).is_empty()
    );
    assert!(bench.ask(json!({ "what": "policy", "policy": "guess" })).is_empty());
    let asked = bench.tell(Event::Surveyed(Err(EngineError::Host("sysfs: nothing there".into()))));
    let [Effect::Complain(line), Effect::Survey { .. }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(line, "sysfs: nothing there; everything stays as it is");
    let asked = bench.tell(Event::Surveyed(Ok(survey())));
    let [Effect::Sample(Purpose::Begin { key: Some(_) }), refusal] = &asked[..] else { panic!("{asked:?}") };
    assert!(answer(core::slice::from_ref(refusal))["error"].as_str().unwrap().contains("guess"));
    let asked = bench.sample(Purpose::Begin { key: Some("k".into()) });
    let [Effect::Arrange(_), told] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(answer(core::slice::from_ref(told))["scheduling"]["objective"], "least-power");
    for question in ["[", "{}", "{\"what\": \"weather\"}"] {
        let asked = bench.tell(Event::Asked { key: "k".into(), question: question.as_bytes().to_vec() });
        assert!(answer(&asked)["error"].is_string(), "{question}");
    }
}

#[test]
fn a_quick_sample_each_period_and_a_whole_one_when_there_is_something_to_see() {
    let (mut bench, _) = Bench::new(settings("adaptive"), Wanted::default()).arranging();
    bench.arrive(CpuId(1));
    let (mut quick_samples, mut samples, mut beats) = (0, 0, 0);
    for period in 0..200 {
        bench.world.now = Instant(bench.world.now.0 + 10 * MS);
        let asked = bench.turn();
        if asked.iter().any(|effect| matches!(effect, Effect::QuickSample)) {
            quick_samples += 1;
            beats += if period < 20 { 100 } else { 0 };
            let asked = bench.tell(Event::QuickSample(QuickSample { beats, ..QuickSample::default() }));
            if asked.iter().any(|effect| matches!(effect, Effect::Sample(Purpose::Decision))) {
                samples += 1;
                bench.sample(Purpose::Decision);
            }
        }
    }
    // Each period at first; at rest every fourth, and every eighth of these takes a whole sample.
    assert!(
        (60..100).contains(&quick_samples) && (20..60).contains(&samples),
        "{quick_samples} quick samples, {samples} whole ones"
    );
    let asked = bench.ask(json!({ "what": "why" }));
    let decisions = answer(&asked)["decisions"].clone();
    assert_eq!(decisions[0]["reason"], "the plan that it begins with");
    assert_eq!((&decisions[0]["number"], &decisions[0]["policy"]), (&json!(1), &json!("adaptive")));
    assert!(
        decisions[0]["age_s"].as_f64().unwrap() > 1.0 && decisions[0]["plan"]["places"]["tcp"]["cpu"] == 1
    );
    let asked = bench.ask(json!({ "what": "sample" }));
    assert!(matches!(&asked[..], [Effect::Sample(Purpose::Show { .. })]), "{asked:?}");
    assert!(answer(&bench.sample(Purpose::Show { key: "k".into() }))["components"].is_array());
}

#[test]
fn without_managed_cpus_a_plan_that_needs_them_is_refused() {
    let mut settings = settings("adaptive");
    settings.managed = CpuSet::new();
    let (bench, asked) = Bench::new(settings, Wanted::default()).arranging();
    assert!(
        matches!(&asked[..], [Effect::Complain(line)] if line.contains("no CPU is managed")),
        "{asked:?}"
    );
    assert_eq!(bench.outcomes().len(), 1);
}
