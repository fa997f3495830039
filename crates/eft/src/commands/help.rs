//! The end of the help texts: examples, the contents of `--json`, limits, variables.

use clap::Command;

/// A command, and the end of its help.
const ENDS: &[(&str, &str)] = &[
    ("up", "\
Examples:
  eft up --name web --device tap:eft0 --address 10.0.5.2/24 --host-address 10.0.5.1/24
  eft up --device packet:eth1 --address 192.0.2.7/24 --gateway 192.0.2.1 --nameserver 192.0.2.53
  eft up --device tap:eft0 --address fd05::2/64 --host-address fd05::1/64
  eft up --device packet:eth1 --address 192.0.2.7/24 --address slaac
  eft up --config /etc/eft/web.toml

--address: an address, or how to get one: slaac (from routers), dhcp4, dhcp6 (from servers), auto (in all ways).
`ready` does not wait for it; `eft addr` shows what was learnt, and for how long it holds. docs/addresses.md
Limits: the first --address belongs to the first device, and so on; further ones to the last. A host address is in the
network of the first TAP device. SIGTERM or Ctrl-C ends the stack. SIGUSR2 ends it, too, but connections wait for
another `eft up` of the name (--keep)."),
    ("run", "\
Examples:
  eft run --name web -- nginx -g 'daemon off;'
  eft run -- curl http://10.0.5.1/
  eft run --rootless sh -c 'redis-server & sleep 1; redis-benchmark -h 10.0.2.15'

--rootless: the stack has 10.0.2.15 and fd65:6674::15, and reaches only the kernel of its own namespace.
docs/rootless.md

Status: the program's own; 125: there is no such stack; 126: the program cannot be run, or not on a stack; 127:
it is not found.

Variables:
  EFT_UNSHIMMED=allow  programs that cannot load the library (static, setuid, musl) run on the kernel's
                       network instead of getting a proxy or being refused; so do those that the program starts
  LD_PRELOAD           libraries to load after eft's
  EFT_STACK            (set for the program) the stack's name

Limits: a program and its descendants have at most 100,000 sockets (a topology says how many), and no more than the
limit of open files of each server (`ulimit -Hn` where `eft up` runs) allows. Unix sockets, 127/8 and
::1 stay with the kernel, and so does IPv6 if the stack has no IPv6 address.
Socket options: docs/options.md. Other limits: crates/shim/src/lib.rs."),
    ("ps", "\
Examples:
  eft ps --name web
  eft ps --json | jq '.components[] | select(.deaths > 0)'

--json: {stack, components: [{component, pid, state, mode, generation, deaths, cpu, dedicated, alone, process,
cpu_ms, standby, recovery}]}; cpu is null if it may be any CPU. Components that name the same process share it
(docs/isolation.md); process is null for the others. standby: the PID of the process that waits to take this one's
place, or null. recovery: how the last death was overcome, or null: {took_us: time from when it was noticed until the
successor served, at_ns: when it served (CLOCK_MONOTONIC), state_bytes: memory that it took over}."),
    ("stat", "\
Examples:
  eft stat tcp
  eft stat --all --json | jq .udp

--json: {COMPONENT: {COUNTER: number}}, with the counters that are zero."),
    ("ss", "\
Examples:
  eft ss --name web
  eft ss --info
  eft ss --json | jq '.sockets[] | select(.state == \"ESTAB\")'

RECV-Q: bytes that the program has not read; for a listener, connections that wait. SEND-Q: bytes that the peer has
not acknowledged; for a listener, how many connections may wait.

--json: {stack, sockets: [{proto, state, recv_q, send_q, local, remote, domain, slot}]}, for tcp also cwnd, ssthresh
(null: unlimited), mss, rtt_us, rttvar_us, rto_us, retransmits, peer_window (all bytes or microseconds), timestamps,
sack and orphan. domain numbers the `eft run`s; slot is null for a connection without a socket."),
    ("set", "\
Examples:
  eft set --fastopen client,server
  eft set --fastopen-key 5ca1ab1e-5ca1ab1e-5ca1ab1e-5ca1ab1e,01234567-89abcdef-01234567-89abcdef
  eft set --timestamps off --ecn ask

What is set holds for connections from then on, and until the stack ends: the next `eft up` begins with its own.
With a key before the present one, cookies of both are good while clients learn new ones."),
    ("kill", "\
Examples:
  eft kill tcp
  eft kill nic:eft0

The supervisor starts the component again; connections survive."),
    ("inject", "\
Examples:
  eft inject tcp flip-heap
  eft inject ip loop --seed 7
  eft inject --list

For tests only, to find out how a damaged server affects others: use a stack that no program needs. The supervisor
restarts at once whatever dies of a fault, except that `failure` counts as the server's own: from the fourth in a row on
restarts wait, and the successor is recorded. A damaged server that survives stays damaged until `eft kill`. The command
needs the right to debug the servers (root, or the stack's user).

--json: {component, kind, pid, seed, what}"),
    ("update", "\
Examples:
  eft update tcp --binary /usr/local/bin/eft.new
  eft update --all

The new program is started beside the old one and examines what it would take over; only then does the old one end. If
it refuses, hangs, or dies within its first second, the old program serves on, and the command fails with the reason.
The supervisor itself is replaced by `eft up --take-over`, or `systemctl restart`."),
    ("move", "\
Examples:
  eft move tcp cpu=2 dedicated
  eft move tcp any

Limits: under the policies `adaptive` and `profile` the scheduler places components, too (`eft sched policy
fixed`)."),
    ("top", "\
Examples:
  eft top --name web
  eft top --json --count 1 | jq '.components[] | {name, busy}'
  eft top --metrics 127.0.0.1:9100

BUSY, POLL, READY and SLEEP make up a component's time: it works; it polls for work; it could work, but the CPU is
taken (or stolen); it sleeps. BUSY and POLL of all add up to at most 100% of each CPU; a CPU's own BUSY counts
every program. STATE says `behind` or `starved` if a component's queues are full or empty. The mean life is that of
connections that ended recently (Little's law); `-` while none ends.

--json: a line per sample: {stack, at_ns, period_ns, cpus: [{cpu, class, online, managed, parked, speed, busy, stolen,
applications, runs}], components: [{name, state, restarts, cpu, dedicated, busy, polling, waiting, ready, sleeping,
wake_ups_per_s, queue_high, queue_capacity, overloads, hint}], indicators, connections_open, received_bytes_per_s,
sent_bytes_per_s, power_w, power_is_modelled, scheduling}. Shares are from 0 to 1."),
    ("sched", "\
Examples:
  eft sched
  eft sched why
  eft sched policy adaptive --objective least-power

--json: the plain command prints {scheduling, state, last}: policy and objective, what the scheduler knows, its last
decision; `why` prints the decisions with their readings. `sample` always prints JSON. docs/scheduler-live.md"),
    ("profile", "\
Examples:
  eft profile sweep --name web -- iperf3 -c 10.0.5.2 -t 60
  eft profile list
  eft profile plot LOAD

--json: `list` {file, loads}, `show` {load, mix, outcomes}, `plot` {plots}, `sweep` {load, file, configurations},
`prune` {removed, left}. docs/scheduler.md"),
    ("addr", "\
Words: show [dev IF], add ADDRESS/PREFIX [dev IF], del ADDRESS/PREFIX [dev IF], flush [dev IF].

Examples:
  eft addr --name web
  eft addr --name web add 10.0.5.3/24 dev eft0
  eft addr add fd05::3/64

--json: {interfaces}: device, its MAC, MTU and addresses.

A stack's only device need not be named. Addresses stay until the stack ends, also over a --take-over by an `eft up`
with the addresses that it began with. Connections of an address that is removed end by their time-outs.
docs/addresses.md"),
    ("route", "\
Words: show [dev IF], add NETWORK|default [via GATEWAY] [dev IF] [metric N] [mtu N] [advmss N] [initcwnd N],
del NETWORK|default [via …] [dev …] [metric …], flush.

Examples:
  eft route --name web
  eft route add default via 10.0.5.1
  eft route add 10.9.0.0/16 via 10.0.5.7 metric 20
  eft route add 10.10.0.0/16 via 10.0.5.7 mtu 1400
  eft route add 10.11.0.0/16 via 10.0.5.7 advmss 1300 initcwnd 20
  eft route -6 del default

--json: {routes}: destination, gateway, device, metric, mtu, advmss, initcwnd, and of which address's network one is.

The longest prefix counts, then the lowest metric (by default 0, and 1024 for IPv6). No packet of a route is larger
than its MTU, in bytes (IPv4 from 576 on, IPv6 from 1280). TCP announces advmss (88 to 65495 bytes) there, and begins
with a window of initcwnd segments. docs/addresses.md"),
    ("maddr", "\
Examples:
  eft maddr
  eft maddr --json | jq '.memberships[].group'

MODE exclude: packets of all sources but SOURCES are wanted; include: those of SOURCES alone. docs/multicast.md

--json: {stack, memberships: [{interface, group, mode, sources, local, domain, slot}]}"),
    ("neigh", "\
Words: show [dev IF], add ADDRESS lladdr MAC [dev IF], del ADDRESS [dev IF], flush [dev IF].

Examples:
  eft neigh --name web add 10.0.5.7 lladdr 02:00:00:00:00:07
  eft neigh --name web

--json: {neighbours, found}: configured ones (address, MAC, device), and those that ARP and neighbour discovery have
found or look for: also state (reachable, stale, probe, incomplete, failed), and milliseconds since the last answer
(`confirmed_ms`) and since the last packet to it (`used_ms`).

Configured ones are `permanent`, and the only ones that del and flush remove. docs/addresses.md"),
    ("pf", "\
Examples:
  eft pf -f /etc/eft/pf.conf
  printf 'block in proto tcp to port 22\\npass all keep state\\n' | eft pf -f -
  eft pf -s states

Limits: no address translation, queues, anchors or sequence checks (crates/filter/src/lib.rs)."),
    ("capture", "\
Examples:
  eft capture --name web -w web.pcapng
  eft capture --count 100 | tcpdump -nr -

Limits: one device at a time; frames that arrive faster than they can be written are counted as lost."),
    ("replay", "\
Examples:
  eft up --record /var/tmp/web …; eft replay /var/tmp/web/tcp-1.eftrec
  eft replay /run/eft/web/crashes/tcp-3.eftrec

A life after a failure is recorded by itself. If it died when its recording was
full, the call in which it did is repeated alone.

docs/recordings.md"),
    ("differential", "\
Examples:
  eft differential --seeds 100
  eft differential --first 17 --seeds 1 --verbose

It wants root and a built libeft.so. What is compared, and what is known to differ:
docs/differential.md"),
    ("packetdrill", "\
Examples:
  eft packetdrill --program …/packetdrill tcp/close/*.pkt
  eft packetdrill --ip ipv6 --option=--tolerance_usecs=12000 script.pkt

packetdrill and libeft_packetdrill.so must be built before (`cargo build --release -p eft-packetdrill`).
docs/packetdrill.md"),
    ("cpu", "\
Examples:
  eft cpu list
  eft cpu --help

--json: what each command prints, with the kernel's own names and units in the keys. docs/cores.md"),
    ("vm", "\
Examples:
  eft vm watch
  eft vm run --policy adaptive-fair
  eft vm top --json
  eft vm restore

--json: what each command prints, as an object; commands that continue print one each time."),
    ("sim", "\
Examples:
  eft sim help
  eft sim paper asymmetric --placements 8 --draws 20 --figures report
  eft sim hunt --seeds 10000
  eft sim hosts"),
    ("bench", "\
Examples:
  eft bench bulk
  eft bench latency --json

Each measures against a baseline of the same run. --json: an object with the lines that are otherwise printed.
docs/performance.md"),
];

/// The end of the help of `eft` itself.
const ALL: &str = "\
Examples:
  eft up --name web --device tap:eft0 --address 10.0.5.2/24 --host-address 10.0.5.1/24 &
  eft run --name web -- nginx
  eft top --name web

`eft COMMAND --help` has examples, limits, variables and what --json holds. Errors are one line on standard error.";

/// Adds the end of its help to every command.
pub fn complete(command: Command) -> Command {
    ENDS.iter().fold(command.after_help(ALL), |all, (name, end)| {
        all.mut_subcommand(name, |command| command.after_help(*end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn takes_json(command: &Command) -> bool {
        command.get_arguments().any(|a| a.get_id() == "json") || command.get_subcommands().any(takes_json)
    }

    #[test]
    fn every_command_has_examples_and_says_what_json_holds() {
        let mut all = complete(crate::Arguments::command());
        all.build();
        for command in all.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
            let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(end.contains("Examples:\n  "), "`eft {}` has no example", command.get_name());
            assert!(!takes_json(command) || end.contains("--json:"), "{}", command.get_name());
            assert!(
                end.lines().all(|line| line.chars().count() <= 120),
                "{} is too wide",
                command.get_name()
            );
        }
    }
}
