#!/usr/bin/env python3
"""The live tests: real programs on a real stack.

Without arguments all of them run, otherwise those whose names contain one of the arguments. EFT_LIVE_SECONDS sets how
long each program is under load. With --ipv6 first, stacks have IPv6 addresses in place of IPv4 ones, and cases that name
addresses themselves are left out. They run in a network namespace of their own."""

import os
import sys

import addresses
import adoption
import authentication
import autoconf
import budget
import crashes
import crowds
import datagrams
import early
import groups
import guests
import handover
import hangups
import injections
import inputs
import ipv6
import libuv
import marks
import options
import past
import paths
import programs
import proxied
import recordings
import regroups
import returns
import rootless
import sandboxes
import segments
import signatures
import servers
import standbys
import suites
import updates
import visits
import watchdog
from harness import ROOT, over_ipv6, run_all


# Their cases name addresses themselves, of one version or of both, or have none.
OWN_ADDRESSES = [autoconf, groups, guests, ipv6, libuv, rootless, suites]


def runs_over_ipv6(case):
    """Whether it would be another case then."""
    own = hasattr(case, "of_one_version") or any(case in module.CASES for module in OWN_ADDRESSES)
    return not own and not case.__name__.endswith("_over_ipv6")


if __name__ == "__main__":
    if os.environ.get("EFT_LIVE_INSIDE") != "yes":
        command = [str(ROOT / "scripts/own-network"), sys.executable, *sys.argv]
        os.execvpe(command[0], command, os.environ | {"EFT_LIVE_INSIDE": "yes"})
    cases = addresses.CASES + adoption.CASES + autoconf.CASES + inputs.CASES + options.CASES + recordings.CASES + budget.CASES + crashes.CASES + crowds.CASES + handover.CASES + datagrams.CASES + ipv6.CASES + marks.CASES + early.CASES + segments.CASES + signatures.CASES + authentication.CASES
    cases += servers.CASES + suites.CASES + libuv.CASES
    cases += hangups.CASES + groups.CASES + guests.CASES + injections.CASES
    cases += programs.CASES + past.CASES + paths.CASES + proxied.CASES + regroups.CASES + returns.CASES + rootless.CASES + sandboxes.CASES + standbys.CASES + updates.CASES + visits.CASES + watchdog.CASES
    wanted = sys.argv[1:]
    if wanted[:1] == ["--ipv6"]:
        wanted, cases = wanted[1:], [over_ipv6(case) for case in cases if runs_over_ipv6(case)]
    sys.exit(run_all(cases, wanted))
