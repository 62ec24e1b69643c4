"""Estimators as files: saved to a folder, loaded again, exported for other programs."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Placement
from invariantnet.estimator.onnx import Deployed, export_onnx
from invariantnet.estimator.persistence import (
    MODEL,
    RUN,
    UNFINISHED,
    CandidateRecord,
    Learned,
    ModelRecord,
    OwnSymmetry,
    Parameters,
    Trainings,
    check_digest,
    interrupted,
    read_model_record,
    read_tensors,
    versions,
    write_model,
)
from invariantnet.estimator.restoring import (
    CANDIDATES,
    NotRegisteredError,
    constructor_arguments,
    learned_attributes,
    restored_symmetries,
)
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.likelihoods import Likelihood
from invariantnet.nn import Ensemble
from invariantnet.nn.folding import is_exact
from invariantnet.symmetries.deviation import Deviation
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.config import History

Backbone = Callable[[tuple[int, ...], int], nn.Module]
"""Makes a network from the shape of one input and the number of outputs."""

NETWORK = "network."
"""Prefix of the tensors that hold the weights of the network."""


class BackboneError(ValueError):
    """A backbone of the user's own failed, or is not the one that the model was fitted with."""


class StoredEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that becomes a record with tensors, and can be restored from them."""

    likelihood: ClassVar[Likelihood]
    learned_fields: ClassVar[tuple[str, ...]]
    """Fields of `Learned` that only this kind of estimator has."""
    backbone: str | Backbone
    hidden: int
    method: str
    placement_: Placement
    symmetries: str | Sequence[str | AnySymmetry]
    input_shape_: tuple[int, ...]
    n_features_in_: int
    outputs_: int
    fingerprint_: str
    threads_: int
    candidates_: list[AnySymmetry]
    hypotheses_: list[Hypothesis]
    symmetry_: AnySymmetry
    trained_symmetry_: AnySymmetry
    """What the network was trained for, if it is restricted to a part of it now."""
    posterior_: SymmetryPosterior
    history_: History
    network_: nn.Module
    deviation_: Deviation | None

    def save(self, folder: str | Path) -> None:
        """Write `model.safetensors` and `run.json` into a folder.

        Args:
            folder: Where to write; it is made if need be.

        Raises:
            ValueError: If the folder cannot be written, or the labels do not fit into JSON.
        """
        check_is_fitted(self, "network_")
        write_model(Path(folder), self._to_record(), self._tensors())

    @classmethod
    def load(cls, folder: str | Path, *, backbone: Backbone | None = None) -> Self:
        """Read what `save` wrote, or the folder of `invariantnet fit`.

        Args:
            folder: Folder of the model.
            backbone: The backbone of the user's own that the model was fitted with, as no code is stored.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If a file is missing, damaged, of another program, or does not fit the others.
        """
        folder = Path(folder)
        record = read_model_record(folder)
        if record.kind != cls.__name__:
            raise ValueError(f"{folder / RUN} holds an {record.kind}: load it with that class.")
        tensors = read_tensors(folder / MODEL)
        if record.parameters.backbone is None and backbone is None:
            raise ValueError("this model has a backbone of your own: pass it to load, as no code is stored.")
        try:
            estimator = cls._from_record(record, tensors, backbone)
        except (BackboneError, NotRegisteredError):
            raise
        except Exception as error:  # the files of a stranger can hold anything anywhere
            if (folder / UNFINISHED).exists():
                raise interrupted(folder) from None
            fault = next(iter(str(error).splitlines()), type(error).__name__)
            raise ValueError(f"{folder}: {RUN} and {MODEL} do not fit together ({fault}): fit again.") from None
        check_digest(folder, MODEL, record.model_sha256)
        return estimator

    def export(self, path: str | Path) -> None:
        """Write an ONNX file: inputs (n, *input_shape), outputs as `predict_proba` or `predict` gives them.

        The file's metadata names classes, layout of the inputs, symmetry and version.

        Args:
            path: File to write.

        Raises:
            ValueError: If the packages of the extra `onnx` are missing, or the file cannot be written.
        """
        check_is_fitted(self, "network_")
        export_onnx(self._deployed(), Path(path))

    @property
    @abstractmethod
    def trainings(self) -> Trainings:
        """How the networks of a fit are trained."""

    @abstractmethod
    def make_final_network(self) -> nn.Module:
        """The network for `symmetry_`, untrained."""

    @abstractmethod
    def _restrict(self, symmetry: str | AnySymmetry) -> None:
        """Set `symmetry_` to a part of what the network was trained for."""

    @abstractmethod
    def _placement_of_the_backbone(self) -> Placement:
        """Where networks are averaged."""

    @abstractmethod
    def _backbone_of_the_final_network(self) -> nn.Module:
        """The network that is averaged over `symmetry_`, untrained."""

    @abstractmethod
    def _combine_symmetries_and_models(self) -> None:
        """Set `hypotheses_` from `candidates_`."""

    def _deployed(self) -> Deployed:
        """What an exported network is and means."""
        return Deployed(self.network_, self.likelihood, self.input_shape_, self.symmetry_.name)

    def _to_record(self) -> ModelRecord:
        return ModelRecord(
            kind=type(self).__name__,
            versions=versions(),
            parameters=self._stored_parameters(),
            learned=self._learned(),
            candidates=tuple(map(_candidate_record, self.candidates_)),
            chosen=getattr(self, "trained_symmetry_", self.symmetry_).name,
            exact=is_exact(self.network_),
            deviation=self.deviation_,
            verdict=self.posterior_.verdict,
            posterior=self.posterior_,
            training=self.trainings,
            history=self.history_,
        )

    def _stored_parameters(self) -> Parameters:
        values = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        if callable(values["backbone"]):
            values["backbone"] = None
        if isinstance(values["symmetries"], Group | Range):
            values["symmetries"] = (values["symmetries"],)
        if not isinstance(values["symmetries"], str):
            values["symmetries"] = tuple(self._stored_symmetry(s) for s in values["symmetries"])
        if not isinstance(values["random_state"], int | None):
            values["random_state"] = None
        # To a fit, True and 1 mean the same; in a file, each has its own type.
        values |= {"verbose": int(values["verbose"])} | {
            name: bool(values[name]) for name in ("joins", "second_opinion")
        }
        return Parameters(**values)

    def _stored_symmetry(self, symmetry: str | AnySymmetry) -> str | OwnSymmetry:
        if isinstance(symmetry, str):
            return symmetry
        # Equal groups were compared once, under one of their names; a range of no extent under that of its group.
        if isinstance(symmetry, Range) and symmetry.exact:
            return symmetry.name
        return OwnSymmetry(symmetry.name, self.candidates_.index(symmetry))

    def _learned(self) -> Learned:
        optional = ("classes", "feature_names_in", "y_mean", "y_scale", "single", "restricted_to")
        return Learned(
            input_shape=self.input_shape_,
            n_features_in=self.n_features_in_,
            outputs=self.outputs_,
            fingerprint=self.fingerprint_,
            threads=self.threads_,
            **{name: _plain(getattr(self, f"{name}_", None)) for name in optional},
        )

    def _tensors(self) -> dict[str, Tensor]:
        found = {f"{NETWORK}{name}": value for name, value in self.network_.state_dict().items()}
        for k, symmetry in enumerate(self.candidates_):
            group = symmetry.group if isinstance(symmetry, Range) else symmetry
            if group is not None:
                found[f"{CANDIDATES}{k}"] = torch.from_numpy(group.generators)
        # Copies: safetensors refuses tensors that share memory, such as those of a layer used twice.
        return {name: value.detach().cpu().contiguous().clone() for name, value in found.items()}

    @classmethod
    def _from_record(cls, record: ModelRecord, tensors: dict[str, Tensor], backbone: Backbone | None) -> Self:
        if missing := [name for name in cls.learned_fields if getattr(record.learned, name) is None]:
            raise ValueError(f"{', '.join(missing)} of an {cls.__name__} is missing")
        candidates, chosen = restored_symmetries(record, tensors)
        estimator = cls(**constructor_arguments(record.parameters, candidates, backbone))
        for name, value in learned_attributes(record.learned).items():
            setattr(estimator, name, value)
        estimator.candidates_, estimator.symmetry_ = candidates, chosen
        estimator.posterior_, estimator.history_ = record.posterior, record.history
        estimator.deviation_ = record.deviation
        if record.learned.restricted_to is not None:
            estimator._restrict(record.learned.restricted_to)
        estimator._combine_symmetries_and_models()
        if unknown := {*record.posterior.best_models} - {h.model.name for h in estimator.hypotheses_}:
            raise ValueError(f"no model is called {min(unknown)[:60]!r}")
        weights = {n.removeprefix(NETWORK): t for n, t in tensors.items() if n.startswith(NETWORK)}
        estimator.network_ = estimator._restored_network(weights)
        return estimator

    def _restored_network(self, weights: dict[str, Tensor]) -> nn.Module:
        if not callable(self.backbone):
            self.placement_ = self._placement_of_the_backbone()
            self._check_size(weights)
            return self._filled(self.make_final_network(), weights)
        try:
            self.placement_ = self._placement_of_the_backbone()
            network = self.make_final_network()
        except Exception as error:
            raise BackboneError(
                f"your backbone failed for inputs of shape {self.input_shape_} and {self.outputs_} outputs "
                f"({type(error).__name__}: {error}): mend it."
            ) from error
        try:
            return self._filled(network, weights)
        except RuntimeError as error:
            fault = " ".join(str(error).split())
            raise BackboneError(
                f"the stored weights are not those of your backbone ({fault}): pass the backbone that was fitted."
            ) from None

    def _filled(self, network: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
        network = Ensemble.for_state(network, weights, self.likelihood)
        network.load_state_dict(weights)
        return network.eval()

    def _check_size(self, weights: dict[str, Tensor]) -> None:
        """Refuse a width in the record that would take more memory than the file with the weights does."""
        if self.method == "paper":
            if weights["0.A"].shape[1:] != (self.hidden,):
                raise ValueError(f"weights of shape {tuple(weights['0.A'].shape)} for {self.hidden} neurons")
            size = 4 * len(self.candidates_) * self.n_features_in_ * self.hidden
            must_fit(size, "the network", "fit a smaller one")
            return
        with torch.device("meta"):
            promised = sum(v.numel() for v in self._backbone_of_the_final_network().state_dict().values())
        own = [v for name, v in weights.items() if name.removeprefix("network.").startswith("module.")]
        if (there := sum(v.numel() for v in own)) != promised:
            raise ValueError(f"{there} weights for a network of {promised}")


def _candidate_record(symmetry: AnySymmetry) -> CandidateRecord:
    if isinstance(symmetry, Group):
        return CandidateRecord(symmetry.name, symmetry.order, symmetry.shape)
    order = 1 if symmetry.group is None else symmetry.group.order
    extents = tuple(extent.name for extent in symmetry.extents)
    return CandidateRecord(symmetry.name, order, symmetry.shape, extents, symmetry.nodes)


def _plain(value: Any) -> Any:
    """Numbers and lists of numpy as those of Python, lists as tuples."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(_plain(v) for v in value) if isinstance(value, tuple | list) else value
