"""As much of Ray as the seam calls, in this process: actors answer at once, and die where a test says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class ActorDiedError(RayError):
    pass


class Ref:
    def __init__(self, value: Any) -> None:
        self.value = value


class FakeRay:
    """Stands in for the module.

    Args:
        cpus: of the cluster.
        dies: whether an actor dies at a call, of the number of the actor and the name of the method.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, cpus: int = 2, dies: Callable[[int, str], bool] = lambda actor, method: False) -> None:
        self.cpus, self.dies = cpus, dies
        self.numbers = itertools.count()
        self.killed: list[int] = []
        self.options: dict[str, Any] = {}
        self.addresses: list[str | None] = []
        self.failures: list[str] = []
        """What `init` raises, call by call."""

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str | None, **how: Any) -> None:
        self.addresses.append(address)
        if self.failures:
            raise RuntimeError(self.failures.pop(0))

    def shutdown(self) -> None:
        pass

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cpus)}

    def remote(self, **options: Any) -> Callable[[type], Any]:
        self.options = options
        return lambda kind: SimpleNamespace(remote=lambda: FakeActor(self, kind()))

    def put(self, value: Any) -> Ref:
        return Ref(value)

    def wait(self, refs: Sequence[Ref], *, num_returns: int, timeout: float) -> tuple[list[Ref], list[Ref]]:
        return list(refs[:num_returns]), list(refs[num_returns:])

    def get(self, ref: Ref) -> Any:
        if isinstance(ref.value, Exception):
            raise ref.value
        return ref.value

    def kill(self, actor: FakeActor) -> None:
        self.killed.append(actor.number)


class FakeActor:
    def __init__(self, ray: FakeRay, held: Any) -> None:
        self.number = next(ray.numbers)
        self.enter = SimpleNamespace(remote=self._answer(ray, held.enter, "enter"))
        self.work_on = SimpleNamespace(remote=self._answer(ray, held.work_on, "work_on"))

    def _answer(self, ray: FakeRay, call: Callable[..., Any], name: str) -> Callable[..., Ref]:
        def remote(*given: Any) -> Ref:
            if ray.dies(self.number, name):
                return Ref(ActorDiedError("its node is gone"))
            return Ref(call(*[each.value if isinstance(each, Ref) else each for each in given]))

        return remote
