"""Mininet's prompt as it has to be in a lab: for terminals and for scripts, and never the end of the lab.

It speaks through Mininet's log, as Mininet's own does.
"""

from __future__ import annotations

import inspect
import os
import sys
from select import POLLIN, poll
from typing import Any

from controllers.channel import ControllerError
from controllers.epochs import CircuitError
from emu.errors import EmuError
from emu.lab.mininet_package import ensure_mininet
from emu.lab.network import LabNet
from topologies.fabric import FabricError

ensure_mininet()

from mininet.cli import CLI  # noqa: E402 - Mininet must have been found first
from mininet.log import lg, output, setLogLevel  # noqa: E402

__all__ = ["LabPrompt", "output"]

_REFUSALS = (EmuError, CircuitError, FabricError, ControllerError)


class LabPrompt(CLI):  # type: ignore[misc]  # Mininet is untyped
    """Mininet's prompt in a lab; talks until the user leaves. `refused` counts the commands that could not be used."""

    prompt = "mininet> "
    doc_header = "Commands (help COMMAND explains one):"

    def __init__(self, net: LabNet, welcome: str) -> None:
        """Talk at once, with the standard input. welcome: what a person at a terminal reads first."""
        self.refused = 0
        self._welcome = welcome
        self._prepare_output()
        if not os.isatty(sys.stdin.fileno()):
            self.prompt = ""
        super().__init__(net, stdin=sys.stdin)

    def _prepare_output(self) -> None:
        """Let Mininet's log, where its prompt writes, go to the standard output, errors too, in their order."""
        lg.ch.setStream(sys.stdout)
        setLogLevel("output")

    @classmethod
    def initReadline(cls) -> None:
        """Edit lines, and complete them by tab, but keep no history: a shell leaves no file behind. Mininet's name."""
        if os.isatty(0):
            import readline  # noqa: F401, PLC0415 - importing it is what makes `input` use it

    def run(self) -> None:
        """Say what there is, then talk."""
        if self.prompt:
            output(self._welcome)
        super().run()

    # -- how commands go -------------------------------------------------------------------------------------------

    def onecmd(self, line: str) -> bool | None:
        """Do one command; what it refuses, and what goes wrong in it, is a line and not the end of the shell."""
        try:
            stop: bool | None = super().onecmd(line)
        except _REFUSALS as error:
            self._refuse(str(error))
        except Exception as error:  # Mininet's commands raise whatever they meet
            self._refuse(f"{type(error).__name__}: {error}")
        else:
            return stop
        return None

    def emptyline(self) -> None:
        """Do nothing. Mininet's name."""

    def default(self, line: str) -> None:
        """Run a command on a node: `h0 COMMAND`; names of hosts in it stand for their addresses."""
        word, _, _ = line.strip().partition(" ")
        if word in self.mn:
            super().default(line)
        else:
            self._refuse(f"there is no command or node {word!r}; `help` and `nodes` list what there is")

    def waitForNode(self, node: Any) -> None:  # noqa: ANN401
        """Show what a node's command prints until it ends. Mininet's name.

        At a terminal keys go to the command; the rest of a script does not, since its lines are for the shell.
        """
        if self.isatty():
            super().waitForNode(node)
            return
        poller = poll()
        poller.register(node.stdout, POLLIN)
        while node.waiting:
            try:
                poller.poll()
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def completenames(self, text: str, *ignored: Any) -> list[str]:  # noqa: ANN401
        """Commands and nodes that begin with `text`."""
        return [*super().completenames(text, *ignored), *(name for name in self.mn if name.startswith(text))]

    def completedefault(self, text: str, *_: Any) -> list[str]:  # noqa: ANN401
        """Nodes that begin with `text`."""
        return [name for name in self.mn if name.startswith(text)]

    def _refuse(self, why: str) -> None:
        self.refused += 1
        output(f"*** {why}\n")

    def do_help(self, line: str) -> None:
        """List the commands, or explain one: help [COMMAND]"""
        text = inspect.getdoc(getattr(type(self), f"do_{line.strip()}", None)) if line.strip() else None
        if text:
            output(f"{text}\n")
        else:
            super().do_help(line)
