#!/usr/bin/env python3
"""The live tests: real programs on a real stack. Without arguments all; else those whose name
contains one of the arguments. EFT_LIVE_SECONDS sets how long each program is under load."""

import sys

import budget
import crashes
import datagrams
import inputs
import past
import programs
import recordings
from harness import run_all

if __name__ == "__main__":
    cases = inputs.CASES + recordings.CASES + budget.CASES + crashes.CASES + datagrams.CASES
    cases += programs.CASES + past.CASES
    sys.exit(run_all(cases, sys.argv[1:]))
