"""Base of the models on hand features: fit, predict, save and open, with arrays as their whole state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from roadaware import config as configs
from roadaware.arrays import Floats
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.io.sources import to_printable
from roadaware.models.card import ModelCard
from roadaware.models.crossing.features import Labelled, Observed, Trial

_MOST_LABELS = 1000
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Fitted:
    """The fitted parameters.

    Args:
        arrays: all that predicting needs.
        chosen: the settings that won on validation.
        trials: every candidate with its score on validation, in the order tried.
    """

    arrays: Arrays
    chosen: dict[str, Any]
    trials: tuple[Trial, ...] = field(default=())


class TabularModel(ABC):
    """A model that is fitted on train, chosen on validation and then never changes.

    With two labels it gives one probability, that of label 1; otherwise one for each label.
    """

    card: ClassVar[ModelCard]
    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, fitted: Fitted | None = None) -> None:
        self.config = config
        self._fitted = fitted

    @classmethod
    def create(cls, **fields: Any) -> Self:
        """An unfitted model with these fields of its config.

        Raises:
            UsageError: if a field is unknown.
        """
        return cls(configs.from_dict(cls.config_class, fields))

    @property
    def fitted(self) -> Fitted:
        """The fitted parameters.

        Raises:
            UsageError: if the model was not fitted.
        """
        if self._fitted is None:
            raise UsageError(f"the model {self.card.name} has not been fitted; call fit or open a saved one")
        return self._fitted

    @property
    def n_scores(self) -> int:
        """The columns of a prediction."""
        return 1 if self.config.labels == 2 else int(self.config.labels)

    def fit(self, examples: Labelled, validation: Labelled) -> Self:
        """A fitted copy: candidates learn from `examples`, `validation` chooses among them.

        Raises:
            InputError: if either is empty, the examples show one label only, or shapes or labels do not fit.
        """
        for name, part in (("train", examples), ("validation", validation)):
            _check(name, part)
            _check_truth(name, part, int(self.config.labels))
        return type(self)(self.config, self._fit(examples, validation))

    def predict(self, examples: Observed) -> Floats:
        """(n, k) probabilities: k = 1 with two labels, otherwise one column per label, rows summing to 1.

        Raises:
            UsageError: if the model was not fitted.
            InputError: if shapes do not fit.
        """
        fitted = self.fitted
        _check("given", examples)
        if not len(examples.boxes):
            return np.zeros((0, self.n_scores))
        try:
            found = self._predict(fitted, examples)
        except (IndexError, ValueError, KeyError, TypeError) as error:
            message = f"the model {self.card.name} does not fit these samples: {to_printable(str(error))}"
            raise InputError(message, hint="take the samples it was fitted on, or fit it again") from error
        if found.shape != (len(examples.boxes), self.n_scores) or not np.isfinite(found).all():
            raise InputError(f"the model {self.card.name} answers with no probabilities: its file is broken")
        return found

    def save(self, path: Path) -> None:
        """Write the fitted model as one file of plain arrays.

        Raises:
            UsageError: if the model was not fitted.
            DiskError: if the file cannot be written.
        """
        facts = {
            "model": self.card.name,
            "config": configs.to_dict(self.config),
            "chosen": self.fitted.chosen,
            "trials": [configs.to_dict(trial) for trial in self.fitted.trials],
        }
        save_arrays(path, self.fitted.arrays, facts)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The model that `save` wrote.

        Raises:
            DamagedError: if the file is not whole.
            InputError: if it holds another model.
        """
        arrays, facts = open_arrays(path)
        if facts.get("model") != cls.card.name:
            told = to_printable(str(facts.get("model")), 60)
            raise InputError(f"expected a model {cls.card.name}, found {told}", where=str(path))
        try:
            config = configs.from_dict(cls.config_class, facts["config"])
            configs.check_range("labels", config.labels, 2, _MOST_LABELS)
            trials = tuple(configs.from_dict(Trial, trial) for trial in facts["trials"])
            return cls(config, Fitted(arrays, dict(facts["chosen"]), trials))
        except (KeyError, TypeError, ValueError, UsageError) as error:
            message = f"the facts of the model do not fit: {to_printable(str(error))}"
            raise DamagedError(message, where=str(path)) from error

    @abstractmethod
    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted: ...

    @abstractmethod
    def _predict(self, fitted: Fitted, examples: Observed) -> Floats: ...


def _check(name: str, part: Observed) -> None:
    boxes = np.asarray(part.boxes)
    if boxes.ndim != 3 or boxes.shape[-1] != 4 or boxes.shape[1] < 1:
        raise InputError(f"the {name} boxes should be (n, frames, 4), not {boxes.shape}")
    shapes = {
        "vehicle_action": (boxes.shape[:2], part.vehicle_action),
        "width_px": (boxes.shape[:1], part.width_px),
        "height_px": (boxes.shape[:1], part.height_px),
    }
    for field_name, (expected, values) in shapes.items():
        if np.shape(values) != expected:
            raise InputError(f"the {name} {field_name} should be {expected}, not {np.shape(values)}")
    if not np.isfinite(boxes).all():
        raise InputError(
            f"the {name} boxes hold {int((~np.isfinite(boxes)).sum())} numbers that are not finite"
        )


def _check_truth(name: str, part: Labelled, labels: int) -> None:
    truth = np.asarray(part.truth)
    if truth.shape != part.boxes.shape[:1]:
        raise InputError(f"{len(part.boxes)} {name} samples have {truth.size} answers")
    if not len(truth):
        raise InputError(f"the {name} split has no samples; a model needs some to be fitted and chosen on")
    if truth.min() < 0 or truth.max() >= labels:
        raise InputError(f"the {name} answers run {truth.min()}..{truth.max()}; there are {labels} labels")
    if name == "train" and len(np.unique(truth)) < 2:
        raise InputError(
            f"all {len(truth)} train samples have the label {truth[0]}; nothing can be learned",
            hint="check the list of the train split and the annotations of its videos",
        )
