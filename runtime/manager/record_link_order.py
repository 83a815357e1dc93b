"""Records which functions of Cloudwit run, for link_order.ld: the linker puts them side by side, and the pages of all others stay on disk.

Needed when the toolchain or many dependencies changed: the list does no harm when it is old, it only fits less. From the root, with the scene that
is to be recorded (any flags of Cloudwit, on a cluster, ended by SIGTERM; one after the other):

    CARGO_TARGET_DIR=target/dist cargo rustc --profile dist --target x86_64-unknown-linux-musl -p cloudwit --bin cloudwit -- -Cstrip=none
    cp target/dist/x86_64-unknown-linux-musl/dist/cloudwit /tmp/named
    python runtime/manager/record_link_order.py run /tmp/named /tmp/hits --kubeconfig=... --cloud-provider=sim ...
    python runtime/manager/record_link_order.py write /tmp/named /tmp/hits

A breakpoint at the start of each function tells when it runs for the first time; then it is taken away. Linux on x86-64 alone.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

TRACEME, CONT, GETREGS, SETREGS, SETOPTIONS = 0, 7, 12, 13, 0x4200
FOLLOW_THREADS_AND_KILL_AT_EXIT = 0x8 | 0x100000
ALL_THREADS = 0x40000000  # __WALL
BREAKPOINT = b"\xcc"
RIP = 16
Registers = ctypes.c_ulonglong * 27
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
HASH = re.compile(r"17h[0-9a-f]{16}E.*")
LONGEST = 60


def functions(binary):
    """Names by address; where the linker folded several into one, all of them."""
    found = {}
    for line in subprocess.run(["nm", binary], capture_output=True, text=True, check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1] in "tTwW":
            found.setdefault(int(parts[0], 16), []).append(parts[2])
    return found


def run(binary, hits, *arguments):
    child = os.fork()
    if child == 0:
        LIBC.ptrace(TRACEME, 0, None, None)
        os.execv(binary, [binary, *arguments])
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    os.waitpid(child, 0)
    LIBC.ptrace(SETOPTIONS, child, None, FOLLOW_THREADS_AND_KILL_AT_EXIT)
    maps = Path(f"/proc/{child}/maps").read_text().splitlines()
    base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(os.path.realpath(binary)))
    with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory, open(hits, "a", buffering=1) as out:
        saved = {}
        for address in functions(binary):
            saved[base + address] = os.pread(memory.fileno(), 1, base + address)
            os.pwrite(memory.fileno(), BREAKPOINT, base + address)
        LIBC.ptrace(CONT, child, None, None)
        return follow(child, memory.fileno(), base, saved, out)


def follow(child, memory, base, saved, out):
    """Until the child ends; gives its exit code."""
    seen, registers = set(), Registers()
    while True:
        thread, status = os.waitpid(-1, ALL_THREADS)
        if not os.WIFSTOPPED(status):
            if thread == child:
                return os.waitstatus_to_exitcode(status)
            continue
        passed = os.WSTOPSIG(status)
        if passed == signal.SIGTRAP and status >> 16 == 0:
            LIBC.ptrace(GETREGS, thread, None, ctypes.byref(registers))
            address = registers[RIP] - 1
            if address in saved:
                if address not in seen:
                    seen.add(address)
                    os.pwrite(memory, saved[address], address)
                    print(f"{address - base:x}", file=out)
                registers[RIP] = address
                LIBC.ptrace(SETREGS, thread, None, ctypes.byref(registers))
        LIBC.ptrace(CONT, thread, None, None if passed in (signal.SIGTRAP, signal.SIGSTOP) else passed)


def pattern(name):
    """The section of a function. Without the hash, which changes with each dependency: so all instances of a generic function come along."""
    known = HASH.sub("17h*", name)
    return f".text.{known if len(known) <= LONGEST else known[:LONGEST] + '*'}"


def write(binary, hits):
    names = functions(binary)
    called = dict.fromkeys(int(line, 16) for line in open(hits))
    patterns = dict.fromkeys(pattern(names[address][0]) for address in called)
    lines = "\n".join(f"    *({pattern})" for pattern in patterns)
    (Path(__file__).parent / "link_order.ld").write_text(
        "/* What runs, side by side, in the order of its first call. Written by record_link_order.py, which tells more. */\n"
        f"SECTIONS {{\n  .text.runs : {{\n{lines}\n  }}\n}}\nINSERT BEFORE .text;\n"
    )
    print(f"{len(called)} of {len(names)} functions ran, {len(patterns)} names")


if __name__ == "__main__":
    sys.exit({"run": run, "write": write}[sys.argv[1]](*sys.argv[2:]))
