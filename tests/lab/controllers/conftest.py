"""Every test of the controller runs twice: the applications must do the same on both OpenFlow libraries."""

from __future__ import annotations

import pytest

from tests import libraries


@pytest.fixture(autouse=True, params=libraries.LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library that the test's controller runs on."""
    name = str(request.param)
    libraries.use(name, monkeypatch)
    return name
