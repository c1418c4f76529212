import gzip

import numpy as np
import pandas as pd
import pytest

from analysis.wsmeter.measurements import FileError, read_measurements


def said(path, reader=read_measurements):
    """Return the message of the error that reading the file raises."""
    with pytest.raises(FileError) as caught:
        reader(path)
    return str(caught.value)


def parquet(path, table):
    table.to_parquet(path)
    return path


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "parquet.gz"])
def test_every_form_of_file_reads_the_same(tmp_path, form):
    table = pd.DataFrame({"job": ["web", "db"], "machine": [1, 2], "weight": [1.0, 2.0], "value": [0.5, 7]})
    plain, path = tmp_path / "plain", tmp_path / f"table.{form}"
    table.to_csv(plain, index=False) if "csv" in form else table.to_parquet(plain)
    path.write_bytes(gzip.compress(plain.read_bytes()) if form.endswith("gz") else plain.read_bytes())
    reading = read_measurements(path)
    assert reading.notes == ()
    pd.testing.assert_frame_equal(reading.table, table.assign(machine=["1", "2"]), check_dtype=False)


def test_a_gzip_file_cut_off_is_refused_with_the_faults_before(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["value", "x", *map(str, rng.random(5000))]
    whole = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    first, last = said(path).splitlines()
    assert first == '2:1: value: should be a number, got "x"'
    assert last.endswith(":1: file: should be a whole gzip file, got one cut off")


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(b"value\n1\n")[:10] + b"rubbish of some length")
    assert said(path) == "1:1: file: should be a whole gzip file, got a damaged one"


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("job,value\na,1\nrésumé,1\n".encode("latin-1"))
    assert said(path) == "3:1: file: should be UTF-8 text, got byte 0xe9"


def test_a_parquet_file_cut_off_is_refused(tmp_path):
    path = parquet(tmp_path / "table.parquet", pd.DataFrame({"value": [1.0, 2.0]}))
    path.write_bytes(path.read_bytes()[:-20])
    assert said(path) == "1:1: file: should be a whole Parquet file, got one that is cut off or damaged"


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_measurements(tmp_path / "none.csv")
