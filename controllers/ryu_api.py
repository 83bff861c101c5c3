"""The one place that picks the OpenFlow library, and the few names of it that the applications use.

The default is os-ken 4, the maintained Ryu, with native threads. `EMU_RYU=ryu` picks Ryu 4.34 with eventlet instead;
EMU_CONTROLLER_PYTHON then names an interpreter that has it.
The applications run on both unchanged, and therefore wait, sleep and spawn through `hub` only. Three traps to know:

- `hub.Event.wait(timeout)` and `hub.Timeout` do not time out with native threads; `hub.Queue.get(timeout=…)` does with
  both, so every wait in the applications is a queue.
- With native threads a lost connection is noticed only when something is sent on it. `configure` therefore turns on
  the library's own echo requests, which also find a switch that is connected but answers no more.
- Ryu 4.34 imports a name that newer eventlets no longer have; it must exist before Ryu is imported. Nothing is monkey-
  patched: all sockets and waits of the applications come from `hub`.

Only the controller process imports this module: it costs 0.4 s.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

Library = Literal["os_ken", "ryu"]
Handler = TypeVar("Handler", bound=Callable[..., None])


def _asked_library() -> Library:
    match os.environ.get("EMU_RYU", ""):
        case "" | "os_ken":
            return "os_ken"
        case "ryu":
            return "ryu"
        case other:
            raise ValueError(f"EMU_RYU={other}: it is either ryu or os_ken, which is also the default")


LIBRARY = _asked_library()

ECHO_INTERVAL = 0.7
"""Seconds between two echo requests to a switch: the time after which a closed connection is noticed."""
UNANSWERED_ECHOES = 1
"""With so many echo requests unanswered and one more sent, a switch counts as lost: 2.1 to 2.8 s."""
SEND_TIMEOUT = 2.0
"""Seconds for which the library may be stuck in sending to one switch."""


def _prepare_import() -> None:
    """Choose native threads for os-ken; give Ryu the world that it expects."""
    if LIBRARY == "os_ken":
        os.environ["OSKEN_HUB_TYPE"] = "native"
        return
    wsgi: Any = importlib.import_module("eventlet.wsgi")
    if not hasattr(wsgi, "ALREADY_HANDLED"):
        wsgi.ALREADY_HANDLED = object()


def _module(name: str) -> Any:  # noqa: ANN401 - the library has no types
    return importlib.import_module(f"{LIBRARY}.{name}")


_prepare_import()
_app_manager = _module("base.app_manager")
_handler = _module("controller.handler")

hub = _module("lib.hub")
ofp_event = _module("controller.ofp_event")
ofproto_v1_4 = _module("ofproto.ofproto_v1_4")
AppManager = _app_manager.AppManager
MAIN_DISPATCHER: str = _handler.MAIN_DISPATCHER
DEAD_DISPATCHER: str = _handler.DEAD_DISPATCHER
CONFIG_DISPATCHER: str = _handler.CONFIG_DISPATCHER
HANDSHAKE_DISPATCHER: str = _handler.HANDSHAKE_DISPATCHER
OFP_HANDLER = f"{LIBRARY}.controller.ofp_handler"
VERSION = f"{LIBRARY} {metadata.version('os-ken' if LIBRARY == 'os_ken' else 'ryu')}"

SLEEP_GRAIN_NS = 300_000 if LIBRARY == "os_ken" else 1_500_000
"""By how much a sleep of this library's hub may overrun: so long before an instant, sleeping gives way to yielding."""

if TYPE_CHECKING:

    class App:
        """What the applications use of the library's application class."""

        def __init__(self, *args: object, **kwargs: object) -> None: ...

        def start(self) -> object:
            """Start the event loop; called once by the library."""
            ...

else:
    App = _app_manager.RyuApp if LIBRARY == "ryu" else _app_manager.OSKenApp


def set_ev_cls(event: Any, dispatchers: str | Sequence[str]) -> Callable[[Handler], Handler]:  # noqa: ANN401
    """The library's decorator for event handlers, with a type."""
    states = dispatchers if isinstance(dispatchers, str) else list(dispatchers)  # it takes a tuple for one state
    return cast("Callable[[Handler], Handler]", _handler.set_ev_cls(event, states))


def configure(host: str, port: int) -> None:
    """Set where the library listens for switches and how it finds lost ones. Call before the applications start."""
    conf = _module("cfg").CONF
    conf(args=[], project=LIBRARY, default_config_files=[], default_config_dirs=[])
    conf.set_override("ofp_listen_host", host)
    conf.set_override("ofp_tcp_listen_port", port)
    conf.set_override("socket_timeout", SEND_TIMEOUT)
    conf.set_override("echo_request_interval", ECHO_INTERVAL)
    conf.set_override("maximum_unreplied_echo_requests", UNANSWERED_ECHOES)
