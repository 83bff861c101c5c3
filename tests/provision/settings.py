"""How this machine reaches packages, handed on to a clean root file system: apt, pip, certificates, proxies.

Nothing here knows a mirror or an index. Where a setting names a path of this machine, the path is mounted below
/machine in the clean root, and the setting names it there.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOUNTED_AT = "/machine"
SUITE = "bookworm"
PIP_CONFIG = "/etc/pip-of-machine.conf"
_ENVIRONMENT = re.compile(r"PIP_\w+|\w+_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE", re.IGNORECASE)
_PATH = re.compile(r"(file://)?(/[^\s\"'=,;]+)")
_APT = re.compile(r"Acquire::(?!IndexTargets|Changelogs)[^ ]+ \".+\";$")
_APT_SOURCE = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"


@dataclass
class Settings:
    """What a clean root gets, as the files of a directory that `write` makes."""

    mounts: set[Path] = field(default_factory=set)

    def write(self, directory: Path) -> None:
        """Write them all: sources.list, apt.conf, pip.conf, environment, mirror and mounts (a path a line)."""
        sources = _apt_sources()
        files = {
            "sources.list": "".join(f"{line}\n" for line in sources),
            "mirror": next(line.split()[1] for line in sources if line.split()[2] == SUITE),
            "apt.conf": "".join(f"{self.moved(line)}\n" for line in _run("apt-config", "dump") if _APT.match(line)),
            "pip.conf": "".join(self._pip()),
            "environment": "".join(f"{name}={self.moved(value)}\n" for name, value in _environment()),
        }
        files["mounts"] = "".join(f"{path}\n" for path in sorted(self.mounts))
        for name, text in files.items():
            (directory / name).write_text(text)

    def moved(self, value: str) -> str:
        """A setting's value with every path of this machine that exists as the clean root will see it."""
        return _PATH.sub(self._move, value)

    def _move(self, match: re.Match[str]) -> str:
        scheme, path = match[1] or "", Path(match[2])
        if not path.exists():
            return match[0]
        # An index on disk links to files beside its own directory.
        beside = bool(scheme) and path.parent != Path("/")
        self.mounts.add(path.parent if beside else path)
        return f"{scheme}{MOUNTED_AT}{path}"

    def _pip(self) -> Iterator[str]:
        sections: dict[str, list[str]] = defaultdict(list)
        for line in _run(sys.executable, "-m", "pip", "config", "list"):
            key, _, quoted = line.partition("=")
            section, _, name = key.partition(".")
            if not key.startswith(":env:"):
                sections[section].append(f"{name} = {self.moved(ast.literal_eval(quoted))}".replace("\n", "\n  "))
        for section, lines in sections.items():
            yield "".join(f"{line}\n" for line in (f"[{section}]", *lines))


def _apt_sources() -> list[str]:
    """Debian's own sources for the suite, its updates and security fixes."""
    command = ("apt-get", "indextargets", "--format", _APT_SOURCE, "Created-By: Packages", "Origin: Debian")
    if not (sources := _run(*command)):
        _run("apt-get", "--quiet", "--quiet", "update")
        sources = _run(*command)
    return [line for line in dict.fromkeys(sources) if line.split()[2].startswith(SUITE)]


def _environment() -> Iterator[tuple[str, str]]:
    yield "PIP_CONFIG_FILE", PIP_CONFIG
    for name, value in os.environ.items():
        if _ENVIRONMENT.fullmatch(name) and name != "PIP_CONFIG_FILE":
            yield name, value


def _run(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
