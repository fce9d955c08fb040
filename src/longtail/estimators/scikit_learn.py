"""What scikit-learn asks of an estimator, without importing it.

Its pipelines, searches and `clone` look for these methods, not for a base class; and to import
`sklearn.base` takes over a second and 60 MB, which every training would spend.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from longtail.errors import InputError

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["Parameters", "classifier_tags", "not_fitted"]


class Parameters:
    """The parameters of a dataclass, as `sklearn.base.BaseEstimator` hands them out.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> model = LongtailClassifier(dimension=64).set_params(epochs=3)
    >>> model, model.get_params()["epochs"]
    (LongtailClassifier(dimension=64, epochs=3), 3)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - as it is called
        """Return the parameters by name; no parameter has parameters of its own.

        Parameters
        ----------
        deep : bool
            Not used.
        """
        return {name: getattr(self, name) for name in sorted(_names(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        InputError
            If there is no such parameter.
        """
        for name, value in parameters.items():
            if name not in _names(self):
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                    f"{sorted(_names(self))}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Name the parameters that are not as they come."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in _fields(self)
            if repr(getattr(self, field.name)) != repr(_default(field))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _fields(estimator: Any) -> list[Field[Any]]:
    """Return the parameters in the order of the constructor."""
    return [field for field in fields(estimator) if field.init]


def _names(estimator: Any) -> list[str]:
    return [field.name for field in _fields(estimator)]


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def classifier_tags() -> Tags:
    """Return what scikit-learn is to know of a classifier of texts or sparse rows."""
    # Only scikit-learn asks for them, which is of an extra.
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # noqa: PLC0415

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True, multi_output=True),
        classifier_tags=ClassifierTags(multi_label=True),
        input_tags=InputTags(sparse=True, string=True),
        transformer_tags=None,
        regressor_tags=None,
    )


def not_fitted(estimator: Any) -> Exception:
    """Return scikit-learn's error for an estimator that has not been fitted.

    Without scikit-learn, one of the same kinds.
    """
    kind: type[Exception] = _NotFittedError
    if find_spec("sklearn") is not None:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415 - it is installed

        kind = NotFittedError
    return kind(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )


class _NotFittedError(ValueError, AttributeError):
    """What scikit-learn's error is."""
