"""Time series, on files that the tests write themselves."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import Series, read_series, windows_of_series


def write(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_series_reads_the_last_or_a_named_column(tmp_path):
    path = write(tmp_path, "year,a, b\n1,10,5\n2,20,6\n\n3,30,7\n")
    np.testing.assert_array_equal(read_series(path), [5, 6, 7])
    np.testing.assert_array_equal(read_series(path, "a"), [10, 20, 30])
    with pytest.raises(BadArgument, match=r"column = 'c'.*year, a, b"):
        read_series(path, "c")


def test_missing_cells(tmp_path):
    path = write(tmp_path, "t,v\n1,1\n2,\n3,NA\n4,4\n")
    with pytest.raises(BadArgument, match="2 cells are empty"):
        read_series(path)
    np.testing.assert_allclose(read_series(path, missing="interpolate"), [1, 2, 3, 4])
    with pytest.raises(BadArgument, match="missing = 'drop'"):
        read_series(path, missing="drop")


@pytest.mark.parametrize(
    ("text", "message"),
    [("t,v\n", "no rows"), ("", "no rows"), ("t,v\n1,x\n", "line 2 holds 'x', not a number")],
)
def test_bad_series_are_refused(tmp_path, text, message):
    with pytest.raises(BadArgument, match=message):
        read_series(write(tmp_path, text))


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
