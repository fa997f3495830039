#!/usr/bin/env python3
"""The live tests: real programs on a real stack.

Without arguments all of them run, otherwise those whose names contain one of the arguments. EFT_LIVE_SECONDS sets how
long each program is under load. They run in a network namespace of their own."""

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
from harness import ROOT, run_all

if __name__ == "__main__":
    if os.environ.get("EFT_LIVE_INSIDE") != "yes":
        command = [str(ROOT / "scripts/own-network"), sys.executable, *sys.argv]
        os.execvpe(command[0], command, os.environ | {"EFT_LIVE_INSIDE": "yes"})
    cases = addresses.CASES + adoption.CASES + autoconf.CASES + inputs.CASES + options.CASES + recordings.CASES + budget.CASES + crashes.CASES + crowds.CASES + handover.CASES + datagrams.CASES + ipv6.CASES + marks.CASES + early.CASES + segments.CASES + signatures.CASES + authentication.CASES
    cases += servers.CASES + suites.CASES + libuv.CASES
    cases += hangups.CASES + groups.CASES + guests.CASES + injections.CASES
    cases += programs.CASES + past.CASES + paths.CASES + proxied.CASES + regroups.CASES + returns.CASES + rootless.CASES + sandboxes.CASES + standbys.CASES + updates.CASES + visits.CASES + watchdog.CASES
    sys.exit(run_all(cases, sys.argv[1:]))
