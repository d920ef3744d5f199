"""Forecast demand from past use: exponential smoothing of its logarithm, with its error in a backtest.

Error, trend and season are additive in the logarithm (ETS; Hyndman, Koehler, Ord and Snyder, Forecasting with
Exponential Smoothing, 2008), so a forecast is log-normal. Of no trend, a trend and a damped one, each without and with
a season where two of them are known, the one with the least AICc counts.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.errors import required

Floats = npt.NDArray[np.float64]

LEAST = 8  # values
HIGH = 0.9  # the quantile whose coverage the backtest counts
_ORIGINS = 8  # most forecasts of a backtest
_DEVIATE = 1.2815515655446004  # of HIGH in a normal distribution
_NOISE = 1e-6  # least standard deviation of a logarithm


@dataclass(kw_only=True, frozen=True, slots=True)
class Forecast:
    """Demand by period after the history. ``median``, and ``sigma``, the standard deviation of its logarithm.

    ``model``: as ETS is written, ``A,Ad,N``. Of the backtest, ``origins`` forecasts of a past that each did not know:
    ``error``: mean absolute error as a share of the use; ``covered``: share of uses at or below the forecast's p90;
    ``widened``: what sigma was multiplied by, so that it fits the errors; 1 where they were no larger.
    ``residuals``: by how much the logarithm of each use exceeded its forecast of one period before.
    """

    median: Floats
    sigma: Floats
    model: str
    origins: int
    error: float
    covered: float
    widened: float
    residuals: Floats


def forecast(use: Sequence[float], steps: int, season: int = 1) -> Forecast:
    """``steps`` periods after ``use``, which is above 0 throughout; ``season``: its periods, 1 for none.

    Raise ValueError for fewer than ``LEAST`` values, FleetmarkError if statsmodels is not installed.
    """
    if len(use) < LEAST:
        raise ValueError(f"{len(use)} values, at least {LEAST} are needed")
    logs = np.log(np.asarray(use, dtype=float))
    form = min(_forms(len(logs), season), key=lambda form: _criterion(logs, form, season))
    mean, spread = _after(logs, form, season, steps)
    least = max(LEAST - 2, 2 * season + 1 if form[2] else 0)
    errors, scaled = [], []
    origins = range(max(len(logs) - _ORIGINS, least), len(logs))
    for origin in origins:
        ahead = min(steps, len(logs) - origin)
        expected, deviation = _after(logs[:origin], form, season, ahead)
        off = logs[origin : origin + ahead] - expected
        errors += np.abs(np.expm1(-off)).tolist()
        scaled += (off / deviation).tolist()
    widened = max(math.sqrt(float(np.mean(np.square(scaled)))), 1.0)
    covered = float(np.mean(np.array(scaled) <= _DEVIATE))
    name = ",".join(("A", "N" if not form[0] else "Ad" if form[1] else "A", "A" if form[2] else "N"))
    return Forecast(
        median=np.exp(mean),
        sigma=spread * widened,
        model=name,
        origins=len(origins),
        error=float(np.mean(errors)),
        covered=covered,
        widened=widened,
        residuals=np.asarray(_fitted(logs, form, season).resid, dtype=float),
    )


Form = tuple[bool, bool, bool]
"""Trend, damped, season."""


def _forms(count: int, season: int) -> list[Form]:
    seasons = (False, True) if season > 1 and count > 2 * season + 4 else (False,)
    return [(*trend, s) for trend, s in itertools.product(((False, False), (True, False), (True, True)), seasons)]


def _fitted(logs: Floats, form: Form, season: int) -> Any:
    # Imported here: it takes a second, and only a forecast needs it.
    models = required("statsmodels.tsa.exponential_smoothing.ets", "plan", "a forecast from past use")
    trend, damped, seasonal = form
    model = models.ETSModel(
        pd.Series(logs),
        error="add",
        trend="add" if trend else None,
        damped_trend=damped,
        seasonal="add" if seasonal else None,
        seasonal_periods=season if seasonal else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence; the backtest tells how good it is
        return model.fit(disp=False)


def _criterion(logs: Floats, form: Form, season: int) -> float:
    value = float(_fitted(logs, form, season).aicc)
    return value if math.isfinite(value) else math.inf


def _after(logs: Floats, form: Form, season: int, steps: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the logarithm in the periods that follow."""
    result = _fitted(logs, form, season).get_prediction(start=len(logs), end=len(logs) + steps - 1)
    deviation = np.sqrt(np.maximum(np.asarray(result.forecast_variance, dtype=float), _NOISE**2))
    return np.asarray(result.predicted_mean, dtype=float), deviation
