#!/usr/bin/env python3
"""Reads spools and prints their records as text, one a line, then names and state.

Written from docs/spool-format.md alone, to show that the page is enough. Columns that are compressed are given to
the program `zstd`; everything else is in the standard library.
"""

import subprocess
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)
MASK = (1 << 64) - 1


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


class Column:
    """Bytes read from front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        if self.at + length > len(self.data):
            raise ValueError("a column ends in the middle of a record")
        self.at += length
        return self.data[self.at - length:self.at]

    def byte(self):
        return self.take(1)[0]

    def number(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MASK or (byte == 0 and shift > 0):
                    raise ValueError("a malformed number")
                return value
        raise ValueError("a malformed number")

    def signed(self):
        return unfold(self.number())

    def difference(self, base):
        return base + self.signed() & MASK

    def is_at_end(self):
        return self.at == len(self.data)


def unfold(value):
    return value >> 1 ^ -(value & 1)


def columns(cursor):
    """Section 3.2: the column table and the columns."""
    entries = []
    for _ in range(cursor.number()):
        encoding, length = cursor.byte(), cursor.number()
        entries.append((encoding, length, cursor.number() if encoding == 1 else length))
    found = []
    for encoding, length, stored in entries:
        data = cursor.take(stored)
        if encoding == 1:
            data = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
        if len(data) != length:
            raise ValueError("a column does not decompress")
        found.append(Column(data))
    if not cursor.is_at_end():
        raise ValueError("bytes are left over")
    return found


def quoted(data):
    special = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    plain = lambda byte: chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
    return '"' + "".join(special.get(byte) or plain(byte) for byte in data) + '"'


KINDS = ["elf", "file", "vdso", "kernel", "generated", "unknown"]
REASONS = ["outside_capture", "no_unwind_info", "bad_cfa", "null_return_address", "depth_limit", "loop", "no_registers"]
TAGS, NUMBERS, STRINGS, FRAME_IMAGE, FRAME_ADDRESS, RUN, RUN_FRAMES = range(7)
TIME, THREAD, CPU, WEIGHT, LEAF, CALLERS = range(7, 13)


class Block:
    """Section 3: one block of records."""

    def __init__(self, payload):
        cursor = Column(payload)
        self.epoch, self.images, self.processes, self.threads, self.frames, self.nodes = (
            cursor.number() for _ in range(6))
        self.shift, self.base, interval = cursor.number(), cursor.number(), cursor.number()
        self.time = self.base
        cursor.difference(self.base), cursor.number()
        self.records, self.samples = cursor.number(), cursor.number()
        self.columns = columns(cursor)
        self.mapping, self.addresses = 0, {}
        self.fresh = self.frames_at_sample = self.frames
        self.cpus = [[self.base, interval, 0, 0, 0] for _ in range(64)]
        self.callers = [0] * 4096

    def lines(self):
        tags = self.columns[TAGS]
        while not tags.is_at_end():
            tag = tags.byte()
            if tag >= 128:
                self.string()
            else:
                yield self.RECORDS[tag](self)
        if not all(column.is_at_end() for column in self.columns):
            raise ValueError("bytes are left over")

    def n(self):
        return self.columns[NUMBERS].number()

    def string(self):
        return self.columns[STRINGS].take(self.n())

    def text(self):
        return quoted(self.string())

    def hex(self):
        return self.string().hex() or "-"

    def t(self):
        self.time = self.time + (unfold(self.n()) << self.shift) & MASK
        return self.time

    def process(self):
        return self.processes - 1 - self.n()

    def thread(self):
        return self.threads - 1 - self.n()

    def cpu(self):
        number = self.n()
        return number - 1 if number else "-"

    def flag(self):
        return ["false", "true"][self.n()]

    def range(self):
        start = self.columns[NUMBERS].difference(self.mapping)
        self.mapping = start + self.n()
        return f"{start:#x}-{self.mapping:#x}"

    def address(self, image, column):
        self.addresses[image] = self.columns[column].difference(self.addresses.get(image, 0))
        return f"{self.addresses[image]:#x}"

    def start_epoch(self):
        self.images = self.processes = self.threads = self.frames = self.nodes = 0
        self.fresh = self.frames_at_sample = 0
        self.addresses = {}
        self.callers = [0] * 4096
        for cpu in self.cpus:
            cpu[3] = 0
        return "epoch"

    def settings(self):
        event, rate, stack, flags = self.text(), self.n(), self.n(), self.n()
        kernel, children = (["false", "true"][flags >> bit & 1] for bit in (0, 1))
        return (f"settings event={event} rate={rate} stack={stack} kernel={kernel} children={children} "
                f"start={self.t()} realtime={self.n()}")

    def host(self):
        return (f"host architecture={self.text()} release={self.text()} boot={self.text()} "
                f"kernel-id={self.hex()} cpu={self.text()} cpus={self.n()}")

    def image(self):
        self.images += 1
        return (f"image kind={KINDS[self.n()]} path={self.text()} id={self.hex()} device={self.n()}:{self.n()} "
                f"inode={self.n()} size={self.n()} modified={self.n()}")

    def define_process(self):
        line = f"process time={self.t()} pid={self.n()} generation={self.n()} parent="
        ago = self.n()
        line += str(self.processes - ago) if ago else "-"
        self.processes += 1
        return line

    def define_thread(self):
        self.threads += 1
        return f"thread time={self.t()} process={self.process()} tid={self.n()}"

    def frame(self):
        self.frames += 1
        kind = self.columns[FRAME_IMAGE].number()
        if kind == 0:
            return "frame joined"
        if kind == 1:
            return f"frame truncated={REASONS[self.columns[FRAME_ADDRESS].number()]}"
        return f"frame image={kind - 2} address={self.address(kind - 2, FRAME_ADDRESS)}"

    def refer_to(self, frame):
        self.fresh = max(self.fresh, frame + 1)
        return frame

    def frame_of_run(self):
        code = self.columns[RUN_FRAMES].number()
        return self.refer_to(self.fresh + code if code < 2 else code - 2)

    def leaf(self):
        code = self.columns[LEAF].number()
        leaf = [self.frames_at_sample, self.frames - 1][code] if code < 2 else code - 2
        self.frames_at_sample = self.frames
        return self.refer_to(leaf)

    def run(self):
        parent, length = self.nodes - self.columns[RUN].number(), self.columns[RUN].number()
        frames = ",".join(str(self.frame_of_run()) for _ in range(length))
        self.nodes += length
        return f"stack parent={parent} frames={frames}"

    def sample(self):
        column = self.columns
        cpu = column[CPU].number()
        last = self.cpus[cpu % 64]
        time = last[0] + (((last[1] >> self.shift) + unfold(column[TIME].number())) << self.shift) & MASK
        thread, weight = column[THREAD].difference(last[3]), column[WEIGHT].difference(last[4])
        leaf, callers = self.leaf(), column[CALLERS].number()
        callers = self.nodes + 1 - callers if callers else self.callers[leaf % 4096]
        self.callers[leaf % 4096] = callers
        self.go_on(last, time)
        last[3:] = thread, weight
        return f"sample time={time} thread={thread} cpu={cpu} weight={weight} leaf={leaf} callers={callers}"

    @staticmethod
    def go_on(last, time):
        latest, interval, before = last[:3]
        distance = time - latest & MASK
        residual = (distance - interval + (1 << 63) & MASK) - (1 << 63)
        if abs(residual) < interval >> 6:
            interval = interval + (residual >> 6) & MASK
        elif distance < 1_000_000_000 and abs(distance - before) < distance >> 6:
            interval = distance
        last[:3] = time, interval, distance

    def fork(self):
        time, child = self.t(), self.process()
        return f"fork time={time} parent={self.processes - self.n()} child={child}"

    def mapping_record(self):
        return (f"mapping time={self.t()} process={self.process()} range={self.range()} "
                f"offset={self.n():#x} image={self.n()}")

    def generated(self):
        time, image = self.t(), self.n()
        return (f"generated-name time={time} image={image} address={self.address(image, NUMBERS)} "
                f"size={self.n():#x} name={self.text()}")

    def symbol(self):
        image = self.n()
        return f"symbol image={image} address={self.address(image, NUMBERS)} size={self.n():#x} name={self.text()}"

    RECORDS = {
        1: start_epoch, 2: settings, 3: host, 4: image, 5: define_process, 6: define_thread, 7: frame, 8: run, 9: sample,
        10: lambda s: f"comm time={s.t()} process={s.process()} comm={s.text()}",
        11: lambda s: f"command-line time={s.t()} process={s.process()} arguments={s.text()}",
        12: lambda s: f"thread-name time={s.t()} thread={s.thread()} name={s.text()}",
        13: fork,
        14: lambda s: f"exec time={s.t()} process={s.process()}",
        15: lambda s: f"process-exit time={s.t()} process={s.process()}",
        16: lambda s: f"thread-exit time={s.t()} thread={s.thread()}",
        17: mapping_record,
        18: lambda s: f"unmapping time={s.t()} process={s.process()} range={s.range()}",
        19: lambda s: f"lost time={s.t()} cpu={s.cpu()} events={s.n()}",
        20: lambda s: f"throttle time={s.t()} cpu={s.cpu()} throttled={s.flag()}",
        21: lambda s: f"gap start={s.t()} end={s.t()}",
        22: lambda s: f"pause time={s.t()} paused={s.flag()}",
        23: generated, 24: symbol,
        25: lambda s: f"annotation time={s.t()} process={s.process()} key={s.text()} value={s.text()}",
        26: lambda s: f"counter name={s.text()} value={s.n()}",
        27: lambda s: f"end time={s.t()}",
    }


def names(payload):
    """Section 6: one line for each address."""
    lengths, text, entries, calls = columns(Column(payload))
    strings = [text.take(lengths.number()) for _ in range(lengths.number())]
    last = (None, None, 0)
    for _ in range(entries.number()):
        epoch, image, address = entries.number(), entries.number(), entries.number()
        address += last[2] if last[:2] == (epoch, image) else 0
        last = (epoch, image, address)
        start, origin = address - entries.signed() & MASK, entries.byte()
        line = f"name epoch={epoch} image={image} address={address:#x} start={start:#x} origin={origin}"
        for _ in range(entries.number()):
            function, file = quoted(strings[calls.number()]), quoted(strings[calls.number()])
            line += f" {function} at {file}:{calls.number()}:{calls.number()}"
        yield line


def read(data):
    if data[:8] != b"\x89SPK\r\n\x1a\n" or crc32c(data[:12]) != u32(data, 12) or data[8:10] != b"\x01\0":
        raise ValueError("not a spool of version 1")
    at, state, newest, sequence = 16, None, [], 0
    while len(data) - at >= 24:
        header = data[at:at + 24]
        if header[:4] != b"\xb1SPB" or crc32c(header[:20]) != u32(header, 20) or u32(header, 8) != sequence:
            raise ValueError(f"no block at {at}")
        payload = data[at + 24:at + 24 + u32(header, 12)]
        if len(payload) < u32(header, 12):
            break
        if crc32c(payload) != u32(header, 16):
            raise ValueError(f"a wrong checksum at {at}")
        kind = header[4]
        if kind == 1:
            yield from Block(payload).lines()
        elif kind == 3:
            newest = list(names(payload))
        elif kind == 4:
            state = {1: "finished", 2: "aborted"}[payload[0]]
        elif kind != 2 and not header[5] & 1:
            raise ValueError(f"an unknown block at {at}")
        at += 24 + len(payload)
        sequence += 1
    yield from newest
    yield f"state {state or f'torn at {at}'}"


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            for line in read(file.read()):
                print(line)
