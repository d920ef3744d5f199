"""Forecast demand from past use by exponential smoothing of its logarithm, and estimate the error in a backtest.

Error, trend and season are additive in the logarithm (ETS; Hyndman, Koehler, Ord and Snyder, Forecasting with
Exponential Smoothing, 2008), so a forecast is log-normal. The candidate models have no trend, a trend or a damped
trend. If the history covers two seasons, each candidate is also tried with a season. The model with the lowest AICc is
used.
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

LEAST = 8  # minimum number of values
HIGH = 0.9  # the quantile whose coverage the backtest counts
_ORIGINS = 8  # maximum number of forecasts in a backtest
_DEVIATE = 1.2815515655446004  # the HIGH quantile of the standard normal distribution
_NOISE = 1e-6  # minimum standard deviation of a logarithm


@dataclass(kw_only=True, frozen=True, slots=True)
class Forecast:
    """The forecast demand by period after the history.

    - ``median``: the median demand; ``sigma``: the standard deviation of its logarithm
    - ``model``: the model in ETS notation, such as ``A,Ad,N``
    - ``origins``: the number of forecasts in the backtest; each uses only the values before it
    - ``error``: the mean absolute error of these forecasts, relative to the actual use
    - ``covered``: the share of actual values at or below the forecast's p90
    - ``widened``: the factor on sigma that matches it to the errors; 1 if they were no larger than predicted
    - ``residuals``: by past period, the logarithm of the use less that of its one-step forecast
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
    """Forecast ``steps`` periods after ``use``.

    All values of ``use`` must be above 0. ``season`` is the number of periods in a season, or 1 without one. Raise
    ValueError for fewer than ``LEAST`` values, and FleetmarkError if statsmodels is not installed.
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
    # Imported lazily: the import takes a second, and only a forecast needs it.
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
        warnings.simplefilter("ignore")  # convergence warnings; the backtest shows the quality of the fit
        return model.fit(disp=False)


def _criterion(logs: Floats, form: Form, season: int) -> float:
    value = float(_fitted(logs, form, season).aicc)
    return value if math.isfinite(value) else math.inf


def _after(logs: Floats, form: Form, season: int, steps: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the logarithm in the next ``steps`` periods."""
    result = _fitted(logs, form, season).get_prediction(start=len(logs), end=len(logs) + steps - 1)
    deviation = np.sqrt(np.maximum(np.asarray(result.forecast_variance, dtype=float), _NOISE**2))
    return np.asarray(result.predicted_mean, dtype=float), deviation
