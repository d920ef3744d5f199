"""A small demand file as text, and changes to it."""

from __future__ import annotations

SMALL = """\
currency: EUR
date: 2026-12-01
periods: {start: 2027-Q1, count: 4}
discount: 8%
energy_price: 0.2
pue: 1.3
workloads:
  web:
    unit: icelake servers
    demand: [100, 110, 120, 130]
    utilisation: 65%
skus:
  icelake:
    price: not sold
    power: {idle: 200 W, peak: 0.5 kW}
    rack_units: 1
    worth: {web: 1}
  genoa:
    price: 12000
    power: {idle: 220, peak: 700 W}
    rack_units: 2
    lead: 4 months
    age_limit: 5 years
    worth: {web: 1.83}
sites:
  ams: {power: 120 kW, rack_units: 400}
  fra: {}
fleet:
  - {sku: icelake, site: ams, count: 200, age: 10 quarters}
"""


def changed(old: str, new: str, text: str = SMALL) -> str:
    assert old in text
    return text.replace(old, new, 1)
