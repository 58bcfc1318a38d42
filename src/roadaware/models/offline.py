"""Offline: while a model is opened, this thread opens no socket, and no library reports what is run with it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from roadaware.errors import InputError

_OFFLINE = "HF_HUB_OFFLINE"
_SOCKETS = (
    "socket.__new__", "socket.connect", "socket.sendto", "socket.sendmsg",
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
)  # fmt: skip
_thread = threading.local()


class _Switch:
    """What is shared by all threads: how many are within, and what the library's switch was before."""

    lock = threading.Lock()
    within = 0
    before = False
    watched = False


def import_onnxruntime() -> Any:
    """ONNX Runtime, without the thread that reports its use to its maker, and the identifier it keeps of a machine.

    Its packages for Linux and macOS have both since 2026, switched on; the variable counts as it is imported.
    Where it was imported before, the calls that it offers stop further reports.

    Raises:
        ImportError: if it is not installed, or does not work.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    runtime = import_module("onnxruntime")
    runtime.disable_telemetry_events()
    return runtime


@contextmanager
def block_network(where: str) -> Iterator[None]:
    """Within: the library of the hub is set offline, and a socket of this thread is refused.

    Environment variables are read when libraries are imported, which may be long before; so the switch that
    they set is set here, and what is asked nevertheless ends at the interpreter's own audit of sockets.

    Raises:
        InputError: if anything within opens a socket or looks up an address.
    """
    from huggingface_hub import constants  # of the extra `models`; ONNX Runtime works without

    outer = getattr(_thread, "where", None)
    with _Switch.lock:
        if not _Switch.watched:
            sys.addaudithook(_refuse)  # once: such a hook cannot be taken away
            _Switch.watched = True
        if not _Switch.within:
            _Switch.before = getattr(constants, _OFFLINE, False)
            setattr(constants, _OFFLINE, True)
        _Switch.within += 1
    _thread.where = where
    try:
        yield
    finally:
        _thread.where = outer
        with _Switch.lock:
            _Switch.within -= 1
            if not _Switch.within:
                setattr(constants, _OFFLINE, _Switch.before)


def _refuse(event: str, details: tuple[Any, ...]) -> None:
    if event in _SOCKETS and (where := getattr(_thread, "where", None)) is not None:
        raise InputError(
            "opening it asked for the network, which no model here needs; nothing was sent",
            where=where,
            hint="save the whole model with `save_pretrained` into one folder",
        )
