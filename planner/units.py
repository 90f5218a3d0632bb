"""Unit factors: catalog and file units to SI and back. Inside ``model/`` everything is SI."""

MIB = 2.0**20
GIB = 2.0**30
GB = 1e9
TERA = 1e12
MILLI = 1e-3
SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0
HOURS_PER_YEAR = 8760.0
MILLION = 1e6
