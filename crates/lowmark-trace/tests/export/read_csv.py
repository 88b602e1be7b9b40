"""Reads an export in CSV with Python's own reader and compares it with one in Parquet, value by value."""

import csv
import pathlib
import sys

import pyarrow.parquet as pq

csv_directory, parquet_directory = map(pathlib.Path, sys.argv[1:3])
for path in sorted(csv_directory.iterdir()):
    other = pq.read_table(parquet_directory / (path.stem + ".parquet"))
    columns = [column.to_pylist() for column in other.columns]
    addresses = {i for i, name in enumerate(other.column_names)
                 if name in ("page", "shr", "mm") or name.endswith("_mm")}
    scanned, last, rows = 0, 0, 0
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file, strict=True)
        names = next(reader)
        assert names == other.column_names, names
        at = names.index("nr_scanned") if "nr_scanned" in names else None
        for rows, row in enumerate(reader, 1):
            for i, text in enumerate(row):
                value = columns[i][rows - 1]
                if i in addresses and value is not None:
                    value = f"{value:016x}"
                assert text == ("" if value is None else str(value)), (path.stem, names[i], text, value)
            scanned += int(row[at]) if at is not None and row[at] else 0
            last = max(last, int(row[0]))
    assert rows == other.num_rows
    print(f"{path.stem} rows {rows} nr_scanned {scanned} last {last}")
