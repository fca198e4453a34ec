"""Time series, on files that the tests write themselves."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data._given import Series
from headcount.data._series import read_series, windows_of_series


def write(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_series_reads_the_last_or_a_named_column(tmp_path):
    path = write(tmp_path, "year,a, b\n1,10,5\n2,20,6\n\n3,30,7\n")
    np.testing.assert_array_equal(read_series(path), [5, 6, 7])
    np.testing.assert_array_equal(read_series(path, "a"), [10, 20, 30])
    by_year = write(tmp_path, "country,2020,2021\nAustria,1,2\nBhutan,3,4\n")
    np.testing.assert_array_equal(read_series(by_year, "2021"), [2, 4])
    path = write(tmp_path, "year,a, b\n1,10,5\n")
    with pytest.raises(BadArgument, match=r"column = 'c'.*year, a, b"):
        read_series(path, "c")


def test_missing_cells(tmp_path):
    path = write(tmp_path, "t,v\n1,1\n2,\n3,NA\n4,4\n")
    with pytest.raises(BadArgument, match="2 cells are empty"):
        read_series(path)
    np.testing.assert_allclose(read_series(path, missing="interpolate"), [1, 2, 3, 4])
    with pytest.raises(BadArgument, match="missing = 'drop'"):
        read_series(path, missing="drop")


BAD = [
    ("t,v\n", "no rows"),
    ("", "no rows"),
    ("t,v\n1,x\n", "line 2 holds 'x', not a finite number"),
    ("date,value\nx,1,234.5\n", "line 2 has 3 cells where the header has 2"),
    ("t,v\n1,1\n2\n", "line 3 has 1 cells where the header has 2"),
    ("t,v\n\n\n1,1_000\n", "line 4 holds '1_000', not a finite number"),
    ('t,v\n"a\nb",1\n1,inf\n', "line 4 holds 'inf', not a finite number"),
    ("v\n1e999\n", "line 2 holds '1e999', not a finite number"),
    ("1,2.5\n2,3.5\n", "line 1 holds only numbers, where the names of the columns belong"),
    ("2020-01-01,1.5\n2020-01-02,2.5\n", "line 1 has '1.5' where the name of the last column"),
    ("2020-01-01,NA\n2020-01-02,2.5\n", "line 1 has 'NA' where the name of the last column"),
    ("\nv,t,v\n1,1,1\n", "line 2 names a column 'v' twice"),
    ("t,,\n1,1,1\n", "line 1 names a column '' twice"),
    (f"t,v\n1,{'9' * 200_000}\n", "line 2 is no line of a CSV file: field larger than"),
    ('t,v\n1,"2\n', "line 2 is no line of a CSV file: unexpected end of data"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    BAD,
    ids=range(len(BAD)),
)
def test_bad_series_are_refused(tmp_path, text, message):
    with pytest.raises(BadArgument, match=message):
        read_series(write(tmp_path, text))


def test_a_series_in_another_encoding_is_told_by_its_name(tmp_path):
    path = tmp_path / "series.csv"
    for encoding, told in (("utf-16", "is in UTF-16"), ("latin-1", "line 1 is not UTF-8")):
        path.write_text("t,größe\n1,1\n2,2\n", encoding=encoding)
        with pytest.raises(BadArgument, match=f"{told}.*save it as UTF-8"):
            read_series(path)
    path.write_text("v,t\n1,1\n2,2\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(read_series(path, "v"), [1, 2])


def test_a_row_of_empty_cells_is_a_missing_value(tmp_path):
    path = write(tmp_path, "t,v\n1,1\n,\n3,3\n")
    np.testing.assert_array_equal(read_series(path, missing="interpolate"), [1, 2, 3])


def test_windows_are_cut_in_time_and_standardised_by_training(tmp_path):
    values = np.arange(20.0) ** 1.5
    path = write(tmp_path, "v\n" + "\n".join(map(str, values)) + "\n")
    train, validation = windows_of_series(path, 3, validation=0.4)
    standard = (values - values[:12].mean()) / values[:12].std()
    assert train.x.shape == (9, 3, 1)
    assert validation.x.shape == (5, 3, 1)
    np.testing.assert_allclose(train.x[4, :, 0], standard[4:7])
    np.testing.assert_allclose(train.y, standard[3:12])
    np.testing.assert_allclose(validation.x[0, :, 0], standard[12:15])
    np.testing.assert_allclose(validation.y, standard[15:20])
    sparse, _ = windows_of_series(path, 3, validation=0.4, stride=4)
    np.testing.assert_allclose(sparse.x, train.x[::4])


def test_windows_refuse_what_does_not_fit(tmp_path):
    path = write(tmp_path, "v\n" + "1\n" * 20)
    with pytest.raises(BadArgument, match="constant training part"):
        windows_of_series(path, 2)
    with pytest.raises(BadArgument, match="does not fit twice"):
        windows_of_series(path, 4)
    with pytest.raises(BadArgument, match=r"validation = 1.0"):
        windows_of_series(path, 2, validation=1.0)
    with pytest.raises(BadArgument, match="stride = 0"):
        windows_of_series(path, 2, stride=0)


@pytest.mark.parametrize("clip", [False, True])
def test_directions_say_whether_the_next_value_goes_up(tmp_path, clip):
    values = [0.0, 5.0, 4.0, 4.0, 9.0, 1.0, 2.0, 0.0, 3.0, 8.0, 7.0, 1.0, 6.0, 2.0]
    path = write(tmp_path, "v\n" + "\n".join(map(str, values)) + "\n")
    shown = Series(path, 2, labels="direction", clip=clip, validation=0.3).sample(8, seed=0)
    plain = Series(path, 2, validation=0.3).sample(8, seed=0)
    train = np.array(values[:10])
    standard = (train - train.mean()) / train.std()
    for x, y, label in zip(plain.x, plain.y, shown.y, strict=True):
        at = next(
            i for i in range(8) if np.allclose(standard[i : i + 3], [*x[:, 0], y], atol=1e-12)
        )
        assert label == (-1.0 if values[at + 2] < values[at + 1] else 1.0)
    assert set(shown.y) == {-1.0, 1.0}
    with pytest.raises(BadArgument, match="labels = 'up'"):
        Series(path, 2, labels="up").sample(2, seed=0)
