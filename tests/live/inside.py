"""Makes system calls inside a running process: stops it, and restores its registers and stack afterwards."""

import ctypes
import os
import platform
import signal
import struct

AVAILABLE = platform.machine() == "x86_64"
ATTACH, DETACH, STEP, GETREGS, SETREGS = 16, 17, 9, 12, 13
# Offsets in user_regs_struct.
R10, R9, R8, RAX, RDX, RSI, RDI, ORIG_RAX, RIP, RSP = 7, 8, 9, 10, 12, 13, 14, 15, 16, 19
ARGUMENTS = (RDI, RSI, RDX, R10, R8, R9)
# Bytes below the end of the stack that are left to the function that runs.
ROOM = 8192

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


class Inside:
    """A traced process that makes calls on demand while this object lives."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        ptrace(ATTACH, self.pid)
        os.waitpid(self.pid, 0x40000000)
        self.memory = open(f"/proc/{self.pid}/mem", "r+b", buffering=0)
        self.before = (ctypes.c_ulonglong * 27)()
        ptrace(GETREGS, self.pid, self.before)
        self.at = self.before[RSP] - ROOM & ~0xFF
        self.stack = self.read(self.at, 4096)
        self.instruction = self.find_instruction()
        return self

    def __exit__(self, *_):
        self.write(self.at, self.stack)
        ptrace(SETREGS, self.pid, self.before)
        self.memory.close()
        ptrace(DETACH, self.pid)

    def read(self, at, size):
        self.memory.seek(at)
        return self.memory.read(size)

    def write(self, at, data):
        self.memory.seek(at)
        self.memory.write(data)

    def find_instruction(self):
        """The address of a system call instruction in its code."""
        for line in open(f"/proc/{self.pid}/maps"):
            span, rights, *_ = line.split()
            start, end = (int(n, 16) for n in span.split("-"))
            if "x" in rights and start < 1 << 47 and (found := self.read(start, end - start).find(b"\x0f\x05")) >= 0:
                return start + found
        raise AssertionError("no system call in its code")

    def call(self, number, *arguments):
        """Makes a call and returns its result, negative for an error. Bytes and strings are put into its memory."""
        registers = (ctypes.c_ulonglong * 27)(*self.before)
        at = self.at
        for place, argument in zip(ARGUMENTS, arguments):
            if isinstance(argument, (bytes, str)):
                data = argument.encode() + b"\0" if isinstance(argument, str) else argument
                self.write(at, data)
                argument, at = at, at + len(data) + 15 & ~15
            registers[place] = argument & (1 << 64) - 1
        registers[RAX], registers[ORIG_RAX] = number, (1 << 64) - 1
        registers[RIP] = self.instruction
        while True:
            ptrace(SETREGS, self.pid, registers)
            ptrace(STEP, self.pid)
            _, status = os.waitpid(self.pid, 0x40000000)
            stopped = os.WSTOPSIG(status) if os.WIFSTOPPED(status) else None
            assert stopped is not None, f"it ended: {status}"
            if stopped == signal.SIGTRAP:
                break
            # Its own timer's signal is held back.
        after = (ctypes.c_ulonglong * 27)()
        ptrace(GETREGS, self.pid, after)
        return struct.unpack("q", struct.pack("Q", after[RAX]))[0]
