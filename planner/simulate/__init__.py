"""Step-level simulator of a replica fleet: what the open-loop formulas are checked against."""

from planner.simulate.arrivals import Arrivals, random_arrivals, sampled_arrivals
from planner.simulate.deployment import Deployment, Routing, deployment
from planner.simulate.fleet import simulate
from planner.simulate.run import Level, Run, Timeline

__all__ = [
    "Arrivals",
    "Deployment",
    "Level",
    "Routing",
    "Run",
    "Timeline",
    "deployment",
    "random_arrivals",
    "sampled_arrivals",
    "simulate",
]
