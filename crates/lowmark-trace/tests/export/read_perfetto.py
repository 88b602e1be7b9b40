"""Reads a Perfetto trace with the published protobuf classes, prints counts, and checks what they know."""

import collections
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

trace = perfetto_trace_pb2.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

counts = collections.Counter()
symbols, tracks, named = {}, {}, set()


def known(message):
    """Nothing in it that the published schema does not have."""
    before = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == before, message


for packet in trace.packet:
    known(packet)
    assert packet.trusted_packet_sequence_id == 1
    for symbol in packet.interned_data.kernel_symbols:
        symbols[symbol.iid] = symbol.str.decode()
    data = packet.WhichOneof("data")
    if data == "ftrace_events":
        for event in packet.ftrace_events.event:
            which = event.WhichOneof("event")
            counts[event.generic.event_name if which == "generic" else which] += 1
            if which == "mm_shrink_slab_start":
                named.add(symbols[event.mm_shrink_slab_start.shrink])
            if which == "mm_vmscan_direct_reclaim_begin":
                # GFP_HIGHUSER_MOVABLE or GFP_KERNEL in the bits of 6.18.
                assert event.mm_vmscan_direct_reclaim_begin.gfp_flags in (0x100cca, 0xcc0)
            if which == "generic":
                fields = {f.name: f.WhichOneof("value") for f in event.generic.field}
                assert fields.get("nid", "int_value") == "int_value", fields
                assert fields.get("lru", "str_value") == "str_value", fields
                assert fields.get("page", "uint_value") == "uint_value", fields
    elif data == "track_event":
        event = packet.track_event
        assert event.track_uuid in tracks, event
        counts[f"track_event {event.type}"] += 1
        if event.type == perfetto_trace_pb2.TrackEvent.TYPE_COUNTER:
            track = tracks[event.track_uuid]
            rate = track.name.endswith("per second")
            assert track.counter.unit_name == ("pages/s" if rate else "pages"), track
            if track.name.startswith("nr_"):
                assert event.counter_value in (500, 400, 250, 200), event
    else:
        counts[data] += 1
        if data == "track_descriptor":
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if data == "clock_snapshot":
            clocks = {clock.clock_id for clock in packet.clock_snapshot.clocks}
            assert perfetto_trace_pb2.BUILTIN_CLOCK_BOOTTIME in clocks
        if data == "system_info":
            assert packet.system_info.tracing_service_version == "lowmark 0.0.0-test"
assert named <= {"sync", "Normal"}, named
names = {track.thread.thread_name for track in tracks.values() if track.HasField("thread")}
assert "kswapd0" in names, names
for name, count in sorted(counts.items()):
    print(name, count)
