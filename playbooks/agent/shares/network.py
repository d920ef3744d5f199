"""Limit the bytes per second that a control group sends and receives, with BPF programs attached to the group.

The kernel has no controller for network bandwidth. BPF programs attached to a cgroup v2 process each packet of its
sockets. These two drop packets above the rate, as the kernel's example hbm (Host Bandwidth Manager) does: TCP then
slows down. They change nothing else on the host, and end with the group. Traffic over the loopback interface is not
limited.

Standard library only, Python 3.6 and later.
"""

import os
import socket
import struct
import sys

NUMBERS = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "riscv64": 280, "loongarch64": 280}  # of bpf(2)
CREATE_MAP, LOOK_UP, LOAD, ATTACH = 0, 1, 5, 8  # commands of bpf(2)
ARRAY, CGROUP_SKB = 2, 8  # types of a map and of a program
ALLOW_MULTI = 2  # programs of systemd and of groups below stay
INGRESS, EGRESS = 0, 1  # types of attachment, and the keys of the map
DROP = {INGRESS: 0, EGRESS: 2}  # verdicts; 2 also tells the sender that its network is congested
LOOPBACK = 1  # the number of this interface in each network namespace
BURST_NS = 100000000  # a group that was idle may send the amount of this time in one burst
FP = 10  # the register with the stack's address


def instruction(code, target=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, target | source << 4, offset, value)


def constant(target, value, source=0):
    """Load 64 bits into a register. ``source`` 1: the value is the descriptor of a map."""
    low, high = struct.unpack("<ii", struct.pack("<Q", value))
    return instruction(0x18, target, source, 0, low) + instruction(0, 0, 0, 0, high)


def program(map_fd, direction, rate):
    """Return the instructions of a policer: each packet moves the time at which the next one may pass.

    The map's entry has this time in ns, and the number of packets seen. Two processors that start after a pause may
    both count as the first; nothing else is lost, because additions are atomic.
    """
    drop = instruction(0xB7, 0, value=DROP[direction]) + instruction(0x95)
    police = b"".join(
        [
            instruction(0x85, value=5),  # r0 = ktime_get_ns()
            instruction(0x79, 1, 9),  # r1 = time of the next packet
            instruction(0xBF, 2, 0),
            instruction(0x17, 2, value=BURST_NS),  # r2 = r0 - BURST_NS
            instruction(0x3D, 1, 2, 2),  # if r1 < r2: it was idle
            instruction(0x7B, 9, 2),
            instruction(0xBF, 1, 2),
            instruction(0x2D, 1, 0, 7),  # if r1 > r0: drop, which follows ``passed``
            instruction(0x27, 7, value=1000000000),
            constant(2, rate),
            instruction(0x3F, 7, 2),  # r7 = time that the packet takes at this rate
            instruction(0xDB, 9, 7),  # added atomically
        ]
    )
    passed = instruction(0xB7, 0, value=1) + instruction(0x95)
    counted = b"".join(
        [
            instruction(0xBF, 9, 0),
            instruction(0xB7, 1, value=1),
            instruction(0xDB, 9, 1, 8),  # packets seen += 1
            instruction(0x15, 8, 0, len(police) // 8, LOOPBACK),
        ]
    )
    return b"".join(
        [
            instruction(0x61, 7, 1, 0),  # r7 = length of the packet
            instruction(0x61, 8, 1, 40),  # r8 = number of the interface
            instruction(0x62, FP, 0, -4, direction),
            constant(1, map_fd, 1),
            instruction(0xBF, 2, FP),
            instruction(0x07, 2, value=-4),
            instruction(0x85, value=1),  # r0 = address of the map's entry
            instruction(0x15, 0, 0, (len(counted) + len(police)) // 8, 0),
            counted,
            police,
            passed,
            drop,
        ]
    )


class Kernel(object):
    """The system call bpf(2) of this machine. Raise OSError if there is none."""

    def __init__(self):
        try:
            import ctypes
        except ImportError as error:
            raise OSError("its Python has no ctypes") from error
        number = NUMBERS.get(os.uname().machine)
        if number is None or sys.byteorder != "little" or sys.maxsize < 1 << 32:
            raise OSError("BPF programs are not supported on %s" % os.uname().machine)
        self.ctypes, self.number = ctypes, number
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.syscall.restype = ctypes.c_long

    def call(self, command, attributes):
        text = self.ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        size = self.ctypes.c_uint(128)
        result = self.syscall(self.ctypes.c_long(self.number), self.ctypes.c_int(command), text, size)
        if result < 0:
            error = self.ctypes.get_errno()
            raise OSError(error, "bpf: " + os.strerror(error))
        return result

    def address(self, buffer):
        return self.ctypes.addressof(buffer)

    def new_map(self):
        return self.call(CREATE_MAP, struct.pack("<IIIII", ARRAY, 4, 16, 2, 0))

    def load(self, code, direction):
        text = self.ctypes.create_string_buffer(code, len(code))
        licence = self.ctypes.create_string_buffer(b"Dual MIT/GPL")  # the kernel lends its clock to such programs only
        head = struct.pack("<IIQQ", CGROUP_SKB, len(code) // 8, self.address(text), self.address(licence))
        return self.call(LOAD, head + struct.pack("<IIQII16sII", 0, 0, 0, 0, 0, b"fleetmark", 0, direction))

    def attach(self, group, code, direction):
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.call(ATTACH, struct.pack("<IIII", folder, code, direction, ALLOW_MULTI))
        finally:
            os.close(folder)

    def packets(self, map_fd, direction):
        """Return how many packets the program of a direction has seen."""
        key = self.ctypes.create_string_buffer(struct.pack("<I", direction), 4)
        value = self.ctypes.create_string_buffer(16)
        self.call(LOOK_UP, struct.pack("<IIQQQ", map_fd, 0, self.address(key), self.address(value), 0))
        return struct.unpack("<QQ", value.raw)[1]


def hold(group, rate):
    """Limit the sending and the receiving rate of a group to ``rate`` bytes/s each. Raise OSError if the kernel does
    not.

    This process must be in the group. It sends itself a packet over the loopback interface, which both programs must
    see, so that a limit without effect is detected before any step runs.
    """
    kernel = Kernel()
    opened = [kernel.new_map()]
    try:
        for direction in (INGRESS, EGRESS):
            opened.append(kernel.load(program(opened[0], direction, max(1, int(rate))), direction))
            kernel.attach(group, opened[-1], direction)
        send_to_itself()
        if not all(kernel.packets(opened[0], direction) for direction in (INGRESS, EGRESS)):
            raise OSError("the BPF program at %s sees no packets of its processes" % group)
    finally:
        for number in opened:
            os.close(number)  # the group keeps its programs alive, and the programs keep the map alive


def send_to_itself():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        endpoint.settimeout(5)
        endpoint.bind(("127.0.0.1", 0))
        endpoint.sendto(b"fleetmark", endpoint.getsockname())
        endpoint.recv(16)


def has_rdma(root=""):
    """Return whether programs can send past the kernel's sockets by RDMA. ``root``: the parent folder of /sys."""
    folder = root + "/sys/class/infiniband"
    return os.path.isdir(folder) and bool(os.listdir(folder))
