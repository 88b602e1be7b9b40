"""Reads an export in Parquet with pyarrow: checks types, nulls and row groups, prints counts and sums."""

import pathlib
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

GROUP_ROWS_MIN = 65536

directory = pathlib.Path(sys.argv[1])
counters = None
for path in sorted(directory.iterdir()):
    file = pq.ParquetFile(path)
    metadata, schema = file.metadata, file.schema_arrow
    assert metadata.metadata[b"lowmark.version"] == b"0.0.0-test", metadata.metadata
    assert metadata.metadata[b"lowmark.table"].decode() == path.stem, metadata.metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert all(rows >= GROUP_ROWS_MIN for rows in groups[:-1]), groups
    column = metadata.row_group(0).column(0)
    assert column.compression == "SNAPPY", column.compression
    table = file.read()
    table.validate(full=True)
    if path.stem == "counters":
        counters = table
        continue
    assert schema.names[:4] == ["t_ns", "cpu", "pid", "comm"], schema.names
    assert schema.field("t_ns").type == pa.int64() and not schema.field("t_ns").nullable
    assert schema.field("cpu").type == pa.uint32() and schema.field("cpu").nullable
    assert schema.field("pid").type == pa.int32() and schema.field("pid").nullable
    assert schema.field("comm").type == pa.string() and not schema.field("comm").nullable
    types = {"nid": pa.int64(), "pfn": pa.uint64(), "page": pa.uint64(), "gfp_flags": pa.string(),
             "lru": pa.string(), "flags": pa.string(), "reason": pa.string()}
    for name, wanted in types.items():
        if name in schema.names:
            assert schema.field(name).type == wanted, (path.stem, schema.field(name))
            assert schema.field(name).nullable
    if "gfp_flags" in schema.names:
        values = set(table["gfp_flags"].to_pylist())
        assert values <= {"GFP_KERNEL", "GFP_HIGHUSER_MOVABLE", None}, values
    if path.stem == "mm_vmscan_lru_isolate":
        # Fields of older kernels are there, without values.
        assert table["isolate_mode"].null_count == table.num_rows
        assert table["nr_scanned"].null_count == 0
        assert table["lru"].unique().to_pylist() == [
            "inactive_anon", "active_anon", "inactive_file", "active_file"]
    if "retval" in schema.names and table["retval"].null_count == 0:
        assert pc.max(table["retval"]).as_py() < 0
    scanned = 0
    if "nr_scanned" in schema.names:
        scanned = pc.sum(table["nr_scanned"]).as_py()
    last = pc.max(table["t_ns"]).as_py()
    print(f"{path.stem} rows {table.num_rows} nr_scanned {scanned} last {last} groups {len(groups)}")
if counters is not None:
    assert counters.schema.names == ["t_ns", "counter", "value"], counters.schema
    assert counters["counter"].unique().to_pylist() == ["nr_free_pages"]
    print(f"counters {counters.num_rows} sum {pc.sum(counters['value']).as_py()}")
