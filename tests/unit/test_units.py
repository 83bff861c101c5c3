"""Quantities: what is read, what is refused and why, and that nothing is lost in writing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.units import (
    MAX_DURATION,
    MAX_RATE,
    MAX_SIZE,
    UnitError,
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
    write_duration,
    write_rate,
    write_size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400Gbps", 400_000_000_000),
        ("400 Gb/s", 400_000_000_000),
        ("20Mb/s", 20_000_000),
        ("1.5Gbit/s", 1_500_000_000),
        ("50GB/s", 400_000_000_000),
        ("1MBps", 8_000_000),
        ("1KiB/s", 8192),
        ("100kbps", 100_000),
        ("100Kbps", 100_000),
        ("7bps", 7),
        ("0.5B/s", 4),
        ("0", 0),
        (0, 0),
        ("0bps", 0),
    ],
)
def test_rates(text: object, expected: int) -> None:
    assert parse_rate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16GiB", 17_179_869_184),
        ("2MB", 2_000_000),
        ("512B", 512),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1kiB", 1024),
        ("1.5KiB", 1536),
        ("0.000000001GB", 1),
        ("1024PiB", MAX_SIZE),
        (0, 0),
    ],
)
def test_sizes(text: object, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10ms", 0.01),
        ("2s", 2.0),
        ("5us", 5e-6),
        ("5\u00b5s", 5e-6),
        ("5\u03bcs", 5e-6),
        ("3ns", 3e-9),
        ("1.5min", 90.0),
        ("2h", 7200.0),
        ("0.3s", 0.3),
        (" 10 ms ", 0.01),
        (0, 0.0),
    ],
)
def test_durations(text: object, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("parse", "value", "says"),
    [
        (parse_rate, 400, "400 needs a unit, e.g. 400Gbps"),
        (parse_rate, 1.5, "1.5 needs a unit"),
        (parse_rate, "400G", "did you mean 400Gb/s or 400GB/s?"),
        (parse_rate, "400gbps", "did you mean 400Gbps or 400GBps?"),
        (parse_rate, "400Gb", "did you mean 400Gb/s or 400Gbps?"),
        (parse_rate, "10ms", "write e.g. 400Gbps"),
        (parse_rate, "1.5b/s", "not a whole number of bit/s: write 2b/s"),
        (parse_rate, "-5Gbps", "must not be negative"),
        (parse_rate, "11Pbps", "out of range"),
        (parse_rate, float("inf"), "not a number with a unit"),
        (parse_rate, float("nan"), "not a number with a unit"),
        (parse_rate, "1e9bps", "not a number with a unit"),
        (parse_rate, True, "needs a number with a unit"),
        (parse_rate, None, "needs a number with a unit"),
        (parse_rate, ["400Gbps"], "needs a number with a unit"),
        (parse_size, 512, "512 needs a unit, e.g. 16MiB"),
        (parse_size, "16G", "did you mean 16GB or 16GiB?"),
        (parse_size, "16gib", "did you mean 16GiB?"),
        (parse_size, "8Gb", "is in bits, and sizes are in bytes: write 8GB if bytes were meant, 1GB if not"),
        (parse_size, "1Mibit", "write 1MiB if bytes were meant, 128KiB if not"),
        (parse_size, "3bit", "write 3B if bytes were meant"),
        (parse_size, "0.3B", "not a whole number of bytes"),
        (parse_size, "1025PiB", "out of range"),
        (parse_size, 10**50, "not a number with a unit"),
        (parse_duration, 10, "10 needs a unit, e.g. 10ms"),
        (parse_duration, "5m", "did you mean 5min?"),
        (parse_duration, "10 MS", "did you mean 10ms?"),
        (parse_duration, "ms", "not a number with a unit"),
        (parse_duration, "", "not a number with a unit"),
        (parse_duration, "1m30s", "not a number with a unit"),
        (parse_duration, "0.0001ns", "out of range"),
        (parse_duration, "999999999h", "out of range"),
        (parse_duration, "\u0663s", "not a number with a unit"),
    ],
)
def test_refusals_say_what_to_write(parse: Callable[[object], float], value: object, says: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(value)
    assert says in str(caught.value)


@given(st.integers(0, MAX_RATE))
def test_a_written_rate_reads_back(rate: int) -> None:
    assert parse_rate(write_rate(rate)) == rate


@given(st.integers(0, MAX_SIZE))
def test_a_written_size_reads_back(size: int) -> None:
    assert parse_size(write_size(size)) == size


@given(st.floats(1e-12, MAX_DURATION, exclude_min=True) | st.just(0.0))
def test_a_written_duration_reads_back_bit_for_bit(seconds: float) -> None:
    assert parse_duration(write_duration(seconds)) == seconds


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none() | st.binary())
def test_nothing_else_is_ever_raised(value: object) -> None:
    for parse in (parse_rate, parse_size, parse_duration):
        try:
            number = parse(value)
        except UnitError:
            continue
        assert 0 <= number <= max(MAX_RATE, MAX_SIZE)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (write_rate(400 * 10**9), "400Gbps"),
        (write_rate(1), "1bps"),
        (write_size(2**34), "16GiB"),
        (write_size(2_000_000), "2MB"),
        (write_size(1001), "1001B"),
        (write_duration(0.01), "10ms"),
        (write_duration(90.0), "90s"),
        (write_duration(1e-9), "1ns"),
        (format_rate(4e11), "400 Gb/s"),
        (format_rate(999.96e9), "1 Tb/s"),
        (format_rate(0), "0 b/s"),
        (format_size(16_381_470_720), "15.26 GiB"),
        (format_size(1024), "1 KiB"),
        (format_size(1000), "1000 B"),
        (format_duration(0.62131), "621.3 ms"),
        (format_duration(12345.6), "12350 s"),
        (format_duration(0.00099999), "1 ms"),
        (format_duration(0), "0 ns"),
        (format_duration(-0.5), "-500 ms"),
        (format_duration(float("inf")), "inf"),
    ],
)
def test_written_and_shown_forms(written: str, expected: str) -> None:
    assert written == expected
