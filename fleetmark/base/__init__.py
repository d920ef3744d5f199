"""The base of all other packages: errors, measurements, facts, units, sentences. Imports nothing else of Fleetmark."""
