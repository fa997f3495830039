#!/usr/bin/env python3
"""The live tests: real programs on a real stack.

Without arguments all of them run, otherwise those whose names contain one of the arguments. EFT_LIVE_SECONDS sets how
long each program is under load. With --ipv6 first, stacks have IPv6 addresses in place of IPv4 ones; cases that would be
the same then are left out, and it is said why. They run in a network namespace of their own. If all are run, those that
mostly wait run beside the others, in a second one; their lines come at the end."""

import contextlib
import os
import subprocess
import sys
import tempfile

import addresses
import adoption
import arrivals
import authentication
import autoconf
import bbr
import budget
import checksums
import clocks
import coalescing
import crashes
import crowds
import datagrams
import discovery
import early
import far_ends
import groups
import guests
import handover
import hangups
import injections
import inputs
import instances
import ipv6
import isolation
import libuv
import marks
import options
import past
import paths
import poison
import programs
import proxied
import queues
import recordings
import redis_tests
import regroups
import returns
import rootless
import round_trips
import sandboxes
import scripts
import secure
import segments
import signatures
import servers
import sharing
import standbys
import stopped
import suites
import updates
import visits
import watchdog
from harness import ROOT, end, over_ipv6, run_all, share


# Their cases would be the same over IPv6.
OWN_ADDRESSES = {
    autoconf: "it is about addresses from the network, of the version that it names",
    groups: "its groups and broadcasts have addresses of both versions, or of IPv4 alone",
    guests: "it has no network",
    discovery: "it is about IPv6",
    ipv6: "it is about IPv6",
    libuv: "libuv's tests name their addresses",
    redis_tests: "redis's tests name their addresses",
    rootless: "a stack of its own has addresses of both versions",
    suites: "Python's tests name their addresses, of both versions",
}


def same_over_ipv6(case):
    """Why a case would be no other one then, or None."""
    for module, reason in OWN_ADDRESSES.items():
        if case in module.CASES:
            return reason
    return getattr(case, "of_one_version", None)


def cases_over_ipv6(cases, wanted):
    """The cases, over IPv6; says which of those that are wanted are left out, and why."""
    left = [case for case in cases if not case.__name__.endswith("_over_ipv6")]
    for case in left:
        reason = same_over_ipv6(case)
        if reason and (not wanted or any(w in case.__name__ for w in wanted)):
            print(f"left out {case.__name__}: {reason}", flush=True)
    return [over_ipv6(case) for case in left if not same_over_ipv6(case)]


# Modules whose cases mostly wait: for leases, for time limits, for successors, for programs' own tests.
WAITING = [addresses, adoption, authentication, autoconf, discovery, handover, hangups, isolation, libuv, options, paths, poison, proxied, redis_tests, returns, rootless, sandboxes, scripts, signatures, stopped, suites]


INSIDE = {"EFT_LIVE_INSIDE": "yes"}


def waits(case):
    return any(case in module.CASES for module in WAITING)


def in_own_network(*options):
    """A command that runs this program in a network namespace of its own."""
    return [str(ROOT / "scripts/own-network"), sys.executable, __file__, *options]


@contextlib.contextmanager
def waiting_ones_beside(flags):
    """Meanwhile the cases that wait run in another process. Gives a function that awaits its end, shows what it said, and
    returns its status."""
    with tempfile.TemporaryFile("w+") as said:
        beside = subprocess.Popen(in_own_network("--waiting", *flags), env=os.environ | INSIDE, stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=subprocess.STDOUT)

        def finish():
            status = beside.wait()
            said.seek(0)
            print("beside the others:", said.read(), sep="\n", end="", flush=True)
            return status
        try:
            yield finish
        finally:
            end(beside)


def main(arguments):
    if os.environ.get("EFT_LIVE_INSIDE") != "yes":
        command = in_own_network(*arguments)
        os.execvpe(command[0], command, os.environ | INSIDE)
    cases = addresses.CASES + arrivals.CASES + adoption.CASES + far_ends.CASES + autoconf.CASES + inputs.CASES + options.CASES + recordings.CASES + budget.CASES + checksums.CASES + clocks.CASES + coalescing.CASES + crashes.CASES + crowds.CASES + handover.CASES + datagrams.CASES + discovery.CASES + instances.CASES + ipv6.CASES + isolation.CASES + marks.CASES + early.CASES + scripts.CASES + bbr.CASES + sharing.CASES + secure.CASES + segments.CASES + signatures.CASES + authentication.CASES
    cases += servers.CASES + suites.CASES + libuv.CASES + redis_tests.CASES
    cases += hangups.CASES + groups.CASES + guests.CASES + injections.CASES
    cases += programs.CASES + past.CASES + paths.CASES + poison.CASES + proxied.CASES + queues.CASES + regroups.CASES + returns.CASES + rootless.CASES + round_trips.CASES + sandboxes.CASES + standbys.CASES + stopped.CASES + updates.CASES + visits.CASES + watchdog.CASES
    only_waiting = arguments[:1] == ["--waiting"]
    wanted = arguments[1:] if only_waiting else arguments
    flags, wanted = (wanted[:1], wanted[1:]) if wanted[:1] == ["--ipv6"] else ([], wanted)
    if only_waiting or not wanted:
        cases = [case for case in cases if waits(case) == only_waiting]
    if flags:
        cases = cases_over_ipv6(cases, wanted)
    if only_waiting or wanted:
        return run_all(cases, wanted, lock="waiting" if only_waiting else "lock")
    share()  # Before others work.
    with waiting_ones_beside(flags) as finish:
        status = run_all(cases, wanted)
        return finish() or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
